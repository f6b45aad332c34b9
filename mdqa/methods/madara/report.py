"""What every treatment came to over many questions, and where the others lost: from result lines with ``compare``.

A treatment that reads documents alone can lose an answer in three places. *Selection*: no document with evidence was
kept. *Extraction*: one was kept, but no reading of a kept document gives the answer. *Vote*: a reading gave it and
another answer won. Each question that a vote gets wrong is counted at the first of these, so that the shares add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mdqa.methods.madara.plans import PLANS
from mdqa.records import Opinion, Question, RunResult
from mdqa.scoring.answers import HEADLINE
from mdqa.statistics.bootstrap import mean_interval
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import mcnemar

Row = dict[str, Any]

SHOWN = ("em", "sub_em", "f1")
BASELINE = "nf"
FAMILIES = {"scoring": ("three_agent", "cot", "sda", "sda_cot", "atf")}
"""Tests that are corrected together, as in appendix G.3; all others are the family ``isolation``."""


_BOUNDS = {"gold_alone": "Best reading of a gold document", "any_alone": "Best reading of any document"}


@dataclass(frozen=True)
class Outcomes:
    """One question's outcomes: opinions by the treatment's key, and each document's reading by the document's id."""

    question: Question
    treatments: Mapping[str, Opinion]
    readings: Mapping[str, str]


def outcomes(results: Sequence[RunResult]) -> list[Outcomes]:
    """The outcomes of all runs that are ok, compared their treatments and have accepted answers."""
    found = []
    for result in results:
        treatments = {o.group: o for o in result.opinions if o.role == "treatment"}
        if result.status == "ok" and treatments and result.question.answers:
            readings = {o.documents[0]: o.answer for o in result.opinions if o.role == "reading"}
            found.append(Outcomes(result.question, treatments, readings))
    return found


def report(items: Sequence[Outcomes], metric: str = "em") -> list[Row]:
    """One row per treatment, in the order of the paper's tables; then what the single readings could give at best.

    Every row has ``n`` and, per metric, the mean (0 to 1) with its 95% bootstrap interval. Rows other than No-Filter
    have ``mcnemar`` against it on ``metric`` (em or sub_em), exact, over the questions that both have, with Holm's
    correction in the family of the scoring treatments or that of isolation. Votes have ``losses``: the share of all
    questions that were lost in selection, extraction and vote, by ``metric``.
    """
    keys = [key for key in PLANS if any(key in item.treatments for item in items)]
    keys += sorted({key for item in items for key in item.treatments} - set(keys))
    rows = [_row(key, [item for item in items if key in item.treatments], metric) for key in keys]
    _compare(rows, items, metric)
    return rows + _bounds([item for item in items if item.readings])


def _row(key: str, items: Sequence[Outcomes], metric: str) -> Row:
    answers = [(item, item.treatments[key].answer) for item in items]
    row: Row = {"treatment": key, "title": items[0].treatments[key].title, "n": len(items)}
    row |= _scores([[answer] for _, answer in answers], items)
    row["kept"] = asdict(mean_interval([len(item.treatments[key].documents) for item in items]))
    row["routed"] = sum(item.treatments[key].chosen for item in items)
    alone = PLANS[key].alone if key in PLANS else key.startswith("pde")
    marked = [item for item in items if item.question.gold_ids and item.readings]
    if alone and marked:
        row["losses"] = _losses(key, marked, metric)
    return row


def _scores(answers: Sequence[Sequence[str]], items: Sequence[Outcomes]) -> Row:
    """Per metric the mean over questions of the best of their answers (0 where there is none)."""
    return {
        name: asdict(
            mean_interval(
                [
                    max((function(answer, item.question.answers) for answer in given), default=0.0)
                    for given, item in zip(answers, items, strict=True)
                ]
            )
        )
        for name, function in HEADLINE.items()
    }


def _losses(key: str, items: Sequence[Outcomes], metric: str) -> Row:
    counts = {"right": 0, "selection": 0, "extraction": 0, "vote": 0}
    for item in items:
        opinion, accepted = item.treatments[key], item.question.answers
        right = HEADLINE[metric]
        if right(opinion.answer, accepted):
            place = "right"
        elif any(right(item.readings[document], accepted) for document in opinion.documents):
            place = "vote"
        elif set(opinion.documents) & set(item.question.gold_ids):
            place = "extraction"
        else:
            place = "selection"
        counts[place] += 1
    return {"n": len(items), **{name: count / len(items) for name, count in counts.items()}}


def _compare(rows: Sequence[Row], items: Sequence[Outcomes], metric: str) -> None:
    """Add each row's test against No-Filter."""
    families, tests = [], []
    for row in rows:
        both = [item for item in items if {row["treatment"], BASELINE} <= set(item.treatments)]
        if row["treatment"] == BASELINE or not both:
            continue
        right = HEADLINE[metric]
        mine, theirs = (
            [float(right(item.treatments[key].answer, item.question.answers) > 0) for item in both]
            for key in (row["treatment"], BASELINE)
        )
        family = next((name for name, keys in FAMILIES.items() if row["treatment"] in keys), "isolation")
        row["mcnemar"] = {"to": BASELINE, "metric": metric, "family": family, **asdict(mcnemar(mine, theirs))}
        families.append(family)
        tests.append(row)
    for row, p in zip(tests, holm([row["mcnemar"]["p"] for row in tests], families), strict=True):
        row["mcnemar"]["p_holm"] = p


def _bounds(items: Sequence[Outcomes]) -> list[Row]:
    """What no selection and no vote can exceed: gold documents read alone, and the best of all single readings."""
    if not items:
        return []
    rows = []
    for key, title in _BOUNDS.items():
        which = {i.question.id: i.question.gold_ids if key == "gold_alone" else i.question.document_ids for i in items}
        some = [item for item in items if which[item.question.id]]
        if some:
            answers = [[i.readings[d] for d in which[i.question.id] if d in i.readings] for i in some]
            rows.append({"bound": key, "title": title, "n": len(some), **_scores(answers, some)})
    return rows


def table(rows: Sequence[Row]) -> str:
    """The report as a table for people, shares in percent."""
    header = ("", "n", "EM", "SubEM", "F1", "b : c", "p", "p (Holm)", "lost in selection / extraction / vote")
    lines = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    test, losses = row.get("mcnemar"), row.get("losses")
    return (
        row["title"],
        str(row["n"]),
        *("{mean:.1f} ({low:.1f}-{high:.1f})".format(**{k: 100 * v for k, v in row[m].items()}) for m in SHOWN),
        f"{test['b']} : {test['c']}" if test else "",
        f"{test['p']:.3g}" if test else "",
        f"{test['p_holm']:.3g}" if test else "",
        " / ".join(f"{100 * losses[place]:.0f}" for place in ("selection", "extraction", "vote")) if losses else "",
    )
