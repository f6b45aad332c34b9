"""Do different models keep the same evidence? Table 12."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import HOW, METHOD
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.losses import own_stage

NEEDS = (
    "finished DuQUAD runs of two models or more over the same questions, with gold documents marked and the same "
    f"options; make them with: {HOW} --model A, and the same with --model B"
)

STABILITY, VARIABILITY = "Gold evidence stability", "Distractor variability"


def report(runs: Sequence[RunResult]) -> Report:
    """For every two models how far the gold documents that they keep are the same, and how far the others differ.

    The paper gives two numbers and no definition. Our reading: *gold evidence stability* is the Jaccard index of the
    gold documents that both models keep, *distractor variability* is 1 minus the Jaccard index of the other documents
    that they keep; means over the questions where at least one of the two keeps such a document. Kept is what the
    judge was given: the candidates after pruning.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and _kept(run) is not None]
    made = groups(usable, ignore=("compare_ablations",), pool=True)
    rows = [row for one, two in combinations(made, 2) if _alike(one, two) for row in _rows(one, two, made)]
    used = {name for row in rows for name in (row["first"], row["second"])}
    return Report(
        name="stability",
        title="Evidence kept by different models",
        source="DuQUAD, Table 12.",
        columns=(
            Column(key="group", title="Models"),
            Column(key="measure", title="Measure"),
            Column(key="value", title="Value", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="measure", y="value", series="group", low="value_low", high="value_high"),
        n=sum(len(group.runs) for group in made if group.label in used),
        note=joined(
            (
                "Our reading of the paper's two numbers: stability is the Jaccard index of the gold documents that two "
                "models keep; variability is 1 minus that of the other documents they keep. Questions where neither "
                "keeps such a document say nothing and are not counted in n.",
                INTERVALS,
                left_out(len(mine), len(usable), "no gold document is marked, or no candidates are stored"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def jaccard(one: Collection[str], two: Collection[str]) -> float | None:
    """Shared members over all members of two sets; None if both are empty."""
    either = set(one) | set(two)
    return len(set(one) & set(two)) / len(either) if either else None


def _kept(run: RunResult) -> tuple[str, ...] | None:
    found = own_stage(run, "doc_score") or own_stage(run, "candidates")
    return found.kept if found is not None else None


def _alike(one: Group, two: Group) -> bool:
    return one.model != two.model and (one.data, one.config) == (two.data, two.config)


def _rows(one: Group, two: Group, made: Sequence[Group]) -> list[Row]:
    """Both measures over the questions that the two groups share; none if they share none."""
    pairs = [(run, two.runs[question]) for question, run in one.runs.items() if question in two.runs]
    if not pairs:
        return []
    kept = [tuple(set(_kept(run) or ()) for run in pair) for pair in pairs]
    marked = [set(first.question.gold_ids) for first, _ in pairs]
    same = [jaccard(a & gold, b & gold) for (a, b), gold in zip(kept, marked, strict=True)]
    rest = [jaccard(a - gold, b - gold) for (a, b), gold in zip(kept, marked, strict=True)]
    names = sources(first for first, _ in pairs)
    several = len({(group.data, str(group.config)) for group in made}) > 1
    about = one.label.removeprefix(one.model) if several else ""
    common: Row = {"group": f"{one.model} and {two.model}{about}", "first": one.label, "second": two.label}
    rows: list[Row] = []
    for measure, values in ((STABILITY, same), (VARIABILITY, [None if j is None else 1 - j for j in rest])):
        known = [(value, name) for value, name in zip(values, names, strict=True) if value is not None]
        value = mean("value", [v for v, _ in known], [name for _, name in known])
        rows.append({**common, "measure": measure, **value, "n": len(known)})
    return rows
