"""How much of the evidence each way of selecting documents keeps (Tables 1 and 7)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

from mdqa.records import RunResult, Stage
from mdqa.reports.base import Chart, Column, Report, Row, change, joined, mean
from mdqa.reports.common.answers import BESIDE, INTERVALS, by_place, first_of, place_of, titled
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.evidence import gold_precision, gold_recall
from mdqa.scoring.losses import own_stage

NEEDS = (
    "finished runs of in-context retrieval and CAFE over the same questions, whose gold documents are marked; make "
    "them with: python -m mdqa answer --method in_context, and --method cafe"
)

SELECTING: Mapping[str, str] = MappingProxyType(
    {
        "in_context": "in_context_retrieval",
        "cafe": "coarse_filtering",
        "retrieve_read": "retrieval",
        "main_rag": "judging",
        "madara": "selection",
        "duquad": "candidates",
    }
)
"""The stage of each method that decides which documents go on. The paper compares the first two."""


def report(runs: Sequence[RunResult]) -> Report:
    """Gold recall and precision of the documents that each method selects, and recall against in-context retrieval.

    How many documents a method keeps is its own affair (top 5 in in-context retrieval, the union over heads in CAFE):
    look at the number kept before recalls are compared. A run that keeps everything says nothing and is left out.
    """
    done = finished(runs)
    usable = [run for run in done if run.question.gold_ids and _selected(run) is not None]
    made = groups(usable, ignore=BESIDE)
    rows = [row for same in by_place(made) for row in _rows(same)]
    return Report(
        name="evidence_selection",
        title="Evidence selection: recall by method and data set",
        source="CAFE, Tables 1 and 7.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            Column(key="recall", title="Gold recall", unit="%", digits=1),
            Column(key="precision", title="Gold precision", unit="%", digits=1),
            Column(key="kept", title="Documents kept", digits=1),
            Column(key="given", title="of", digits=1),
            Column(key="difference", title="Recall minus the first row's", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="variant", y="recall", series="group", low="recall_low", high="recall_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Recall is over all gold documents of a question. Methods keep different numbers of documents, and "
                "whoever keeps more finds more. Differences are paired over the questions that both selected for.",
                INTERVALS,
                left_out(
                    len(done), len(usable), "no gold document is marked, or the method selects nothing (or everything)"
                ),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _selected(run: RunResult) -> Stage | None:
    """The run's own stage that selects, if it can leave documents out."""
    name = SELECTING.get(run.method, "")
    if run.method == "in_context" and run.config.get("form") != "indices":
        return None
    if run.method == "retrieve_read" and not _cuts(run):
        return None
    return own_stage(run, name)


def _cuts(run: RunResult) -> bool:
    top = run.config.get("top_k")
    return isinstance(top, int) and top < len(run.question.documents)


def _recalls(group: Group) -> dict[Hashable, float]:
    found = {}
    for question, run in group.runs.items():
        stage = _selected(run)
        recall = gold_recall(stage.kept, run.question.gold_ids) if stage is not None else None
        if recall is not None:
            found[question] = recall
    return found


def _rows(same: Sequence[Group]) -> list[Row]:
    first = first_of(same, "in_context")
    theirs = _recalls(first)
    rows: list[Row] = []
    for group in (first, *(group for group in same if group is not first)):
        runs, mine = list(group.runs.values()), _recalls(group)
        names = sources(runs)
        stages = [(run, stage) for run in runs if (stage := _selected(run)) is not None]
        precise = [(run, p) for run, s in stages if (p := gold_precision(s.kept, run.question.gold_ids)) is not None]
        common = [question for question in mine if question in theirs] if group is not first else []
        both = sources(group.runs[question] for question in common)
        rows.append(
            {
                "group": place_of(group),
                "variant": titled(group),
                **mean("recall", list(mine.values()), names),
                **mean("precision", [p for _, p in precise], sources(run for run, _ in precise)),
                **mean("kept", [float(len(stage.kept)) for _, stage in stages], names),
                "given": sum(len(stage.documents) for _, stage in stages) / len(stages),
                **change("difference", [mine[q] for q in common], [theirs[q] for q in common], both),
                "n": len(runs),
            }
        )
    return rows
