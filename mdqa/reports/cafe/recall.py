"""How many heads and documents per head it takes to keep the evidence (Figure 3, recall), from any stored runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdqa.attention.heads import union_of_top
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.cafe.stored import HOW, METHOD, STAGES, heads_of
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.evidence import gold_recall
from mdqa.scoring.losses import own_stage

NEEDS = (
    "finished CAFE runs over questions whose gold documents are marked; runs with more heads tell of more: "
    f"{HOW} --set k1=8 --set k2=4"
)

DOCUMENTS = (1, 2, 4, 6, 8)
"""M, documents per head."""


def report(runs: Sequence[RunResult], documents: Sequence[int] = DOCUMENTS) -> Report:
    """Gold recall of the union of each head's top M documents for the K best heads (eq. 4 and 7), by stage, K and M.

    From the shares that a run stored of its own heads, so K goes up to the number of heads that it used. The second
    stage is judged on the documents that reached it: recall is over all gold documents of the question all the same.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and any(_heads(run, name) for name in STAGES)]
    made = groups(usable, only=("k1", "m1", "k2", "attending_rows", "doc_pool", "calibration"), pool=True)
    rows = [row for group in made for name in STAGES for row in _rows(group, name, documents)]
    return Report(
        name="cafe_recall",
        title="CAFE's recall by number of heads and documents per head",
        source="CAFE, Figure 3 (recall).",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="stage", title="Stage"),
            Column(key="heads", title="Heads (K)", digits=0),
            Column(key="documents", title="Documents per head (M)", digits=0),
            Column(key="recall", title="Gold recall", unit="%", digits=1),
            Column(key="kept", title="Documents in the union", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="grid", x="documents", y="stage_heads", series="recall"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Computed from the stored shares of each run's own heads, the best K of them. Heads that were found on "
                "other questions than these give an honest number; see the profile for what they were found on. "
                "Accuracy needs runs with each setting: report cafe_hyperparameters.",
                INTERVALS,
                left_out(len(mine), len(usable), "no gold document is marked, or no share of a head is stored"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _heads(run: RunResult, name: str) -> dict[str, np.ndarray]:
    found = own_stage(run, name)
    return heads_of(found) if found is not None else {}


def _rows(group: Group, name: str, documents: Sequence[int]) -> list[Row]:
    runs = [run for run in group.runs.values() if _heads(run, name)]
    names = sources(runs)
    shares = [np.stack(list(_heads(run, name).values())) for run in runs]  # per run (K, D)
    rows: list[Row] = []
    for heads in range(1, min((len(each) for each in shares), default=0) + 1):
        for top in documents:
            unions = [_union(run, name, each[:heads], top) for run, each in zip(runs, shares, strict=True)]
            recalls = [
                gold_recall(union, run.question.gold_ids) or 0.0 for run, union in zip(runs, unions, strict=True)
            ]
            rows.append(
                {
                    "group": group.label,
                    "stage": STAGES[name],
                    "stage_heads": f"{STAGES[name]}, K {heads}",
                    "heads": heads,
                    "documents": top,
                    **mean("recall", recalls, names),
                    **mean("kept", [float(len(union)) for union in unions], names),
                    "n": len(runs),
                }
            )
    return rows


def _union(run: RunResult, name: str, shares: np.ndarray, top: int) -> list[str]:
    found = own_stage(run, name)
    assert found is not None  # it has shares
    return [found.documents[index] for index in union_of_top(shares, top)]
