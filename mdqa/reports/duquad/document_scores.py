"""Does the DocScore tell gold documents from others, and are the documents that the agents cite gold? Table 11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, ratio
from mdqa.reports.duquad.stored import HOW, METHOD, opinion
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.losses import own_stage

NEEDS = f"finished DuQUAD runs with pruning over questions whose gold documents are marked; make them with: {HOW}"


@dataclass(frozen=True)
class Seen:
    """One run: the DocScores of gold and other candidates, and how many cited ids are gold and in all."""

    gold: tuple[float, ...]
    other: tuple[float, ...]
    cited_gold: int
    cited: int


def report(runs: Sequence[RunResult]) -> Report:
    """Mean DocScore and share of the cited ids, for gold documents and for others; how well the score separates them.

    ``cited`` pools the ids that both agents cite, each agent's own; as the two shares of Table 11 sum up to 100, they
    are read here as shares of the cited ids. ``auc`` is the chance that a gold document scores above another one
    (ties half): ``auc`` over pairs within a question, ``auc_pooled`` over all pairs. Only candidates have a DocScore.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and own_stage(run, "doc_score") is not None]
    made = groups(usable, ignore=("threshold", "compare_ablations"), pool=True)
    rows = [row for group in made for row in _rows(group)]
    return Report(
        name="document_scores",
        title="DocScore and cited documents: gold against others",
        source="DuQUAD, Table 11.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="documents", title="Documents"),
            Column(key="doc_score", title="Mean DocScore"),
            Column(key="scored", title="Scored", digits=0),
            Column(key="cited", title="Share of cited ids", unit="%", digits=1),
            Column(key="citations", title="Cited ids", digits=0),
            Column(key="auc", title="AUC within questions"),
            Column(key="auc_pooled", title="AUC over all"),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(
            kind="bars", x="documents", y="doc_score", series="group", low="doc_score_low", high="doc_score_high"
        ),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Only documents that an agent cited have a DocScore. AUC: how often a gold document scores above "
                "another one, ties half; 0.5 tells nothing.",
                "Intervals are 95% bootstrap intervals that draw questions with all their documents.",
                left_out(len(mine), len(usable), "no gold document is marked, or there was no pruning"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def auc(gold: Sequence[float], other: Sequence[float]) -> tuple[float, int]:
    """Pairs of a gold and another document that have the gold one first (ties half), and pairs in all."""
    signs = np.sign(np.subtract.outer(np.asarray(gold, dtype=np.float64), np.asarray(other, dtype=np.float64)))
    return float(((signs + 1) / 2).sum()), int(signs.size)


def _seen(run: RunResult) -> Seen:
    gold = set(run.question.gold_ids)
    found = own_stage(run, "doc_score")
    scores = found.scores.get("DocScore", {}) if found is not None else {}
    known = [(document, score.value) for document, score in scores.items() if score.value is not None]
    said = [voice for role in ("local_agent", "global_agent") if (voice := opinion(run, role)) is not None]
    cited = [document for voice in said for document in voice.documents]
    return Seen(
        gold=tuple(value for document, value in known if document in gold),
        other=tuple(value for document, value in known if document not in gold),
        cited_gold=sum(document in gold for document in cited),
        cited=len(cited),
    )


def _rows(group: Group) -> list[Row]:
    seen = [_seen(run) for run in group.runs.values()]
    pairs = [auc(one.gold, one.other) for one in seen]
    wins, number = auc([v for one in seen for v in one.gold], [v for one in seen for v in one.other])
    cited = [one.cited for one in seen]
    names = sources(group.runs.values())
    rows: list[Row] = []
    for name, values, citations in (
        ("gold", [one.gold for one in seen], [one.cited_gold for one in seen]),
        ("others", [one.other for one in seen], [one.cited - one.cited_gold for one in seen]),
    ):
        rows.append(
            {
                "group": group.label,
                "documents": name,
                **ratio("doc_score", [sum(v) for v in values], [len(v) for v in values], names),
                "scored": sum(map(len, values)),
                **ratio("cited", citations, cited, names),
                "citations": sum(citations),
                "n": len(seen),
            }
        )
    rows[0] |= ratio("auc", [won for won, _ in pairs], [count for _, count in pairs], names)
    rows[0]["auc_pooled"] = wins / number if number else None
    return rows
