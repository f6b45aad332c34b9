"""How many documents the Local Agent should read: gold recall and accuracy by k (Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import HOW, METHOD, gold_first, ranking, right
from mdqa.reports.grouping import Group, finished, groups, left_out, older
from mdqa.scoring.evidence import gold_recall_at

NEEDS = (
    "finished DuQUAD runs over questions whose gold documents are marked (recall), and for accuracy by k runs with "
    f"several k and accepted answers; make them with: {HOW} --set k=3"
)

RECALL, ACCURACY = "Recall@k", "Accuracy (SubEM)"


def report(runs: Sequence[RunResult]) -> Report:
    """Recall@k for every k from the stored scores, and the accuracy of the runs that were made with each k.

    Recall@k is the share of a question's gold documents among its k best, with ``local_ranker=sfs`` by the Structural
    Fusion Score; a run of any k tells it for all. k goes up to the largest number of documents; a question with fewer
    documents has them all from there on.
    """
    mine = finished(runs, METHOD)
    ranked = [run for run in mine if ranking(run) is not None and run.question.gold_ids]
    rows: list[Row] = []
    recalls = groups(ranked, ignore=("k", "compare_ablations"))
    for group in recalls:
        rows += _recall(group)
    answered = [run for run in mine if run.question.answers]
    by_k = groups(answered, ignore=("k", "compare_ablations"))
    for group in by_k:
        rows += _accuracy(group)
    return Report(
        name="local_documents",
        title="Documents for the Local Agent: recall and accuracy by k",
        source="DuQUAD, Figure 6.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="measure", title="Measure"),
            Column(key="k", title="k", digits=0),
            Column(key="value", title="Value", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="lines", x="k", y="value", series="measure", low="value_low", high="value_high"),
        n=len({run.id for run in (*ranked, *answered)}),
        note=joined(
            (
                "Recall@k is computed for every k from the ranking that each run stored; accuracy (SubEM) needs a run "
                "for each k and is shown for the k that were run.",
                INTERVALS,
                gold_first(ranked),
                left_out(len(mine), len(ranked), "no gold document is marked, or no document has a score"),
                older(recalls),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _recall(group: Group) -> list[Row]:
    orders = [(ranking(run) or (), run.question.gold_ids) for run in group.runs.values()]
    rows: list[Row] = []
    for k in range(1, max(len(order) for order, _ in orders) + 1):
        values = [found for order, gold in orders if (found := gold_recall_at(order, gold, k)) is not None]
        rows.append(_row(group.label, RECALL, k, values))
    return rows


def _accuracy(made: Group) -> list[Row]:
    """One row per k that was run, each question's newest run."""
    rows = []
    for group in groups(made.members, only=("k",)):
        k = group.config.get("k")
        if isinstance(k, int):
            rows.append(_row(made.label, ACCURACY, k, [float(right(run.answer, run)) for run in group.runs.values()]))
    return sorted(rows, key=lambda row: int(row["k"] or 0))


def _row(label: str, measure: str, k: int, values: Sequence[float]) -> Row:
    return {"group": label, "measure": measure, "k": k, **mean("value", values), "n": len(values)}
