"""What other DocScore thresholds would have kept (Table 5)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.methods.duquad.evidence import prune
from mdqa.records import RunResult, Stage
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import HOW, METHOD, gold_first, ranking
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.evidence import gold_recall
from mdqa.scoring.losses import own_stage

NEEDS = f"finished DuQUAD runs with pruning over questions whose gold documents are marked; make them with: {HOW}"

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""The range of Table 5."""


def report(runs: Sequence[RunResult], thresholds: Sequence[float] = THRESHOLDS) -> Report:
    """Gold recall and number of documents after pruning at each threshold, by the method's own rule.

    The rule includes its fallback: where no DocScore reaches the threshold, one document is kept all the same. Recall
    is over all gold documents of a question, so what no agent cited counts as lost.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and _scored(run) is not None]
    made = groups(usable, ignore=("threshold", "compare_ablations"), pool=True)
    rows = [row for group in made for row in _rows(group, thresholds)]
    return Report(
        name="thresholds",
        title="Gold recall by DocScore threshold",
        source="DuQUAD, Table 5.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="setting", title="Threshold"),
            Column(key="recall", title="Gold recall", unit="%", digits=1),
            Column(key="kept", title="Documents kept", digits=2),
            Column(key="fallback", title="Nothing reaches it", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="lines", x="threshold", y="recall", series="group", low="recall_low", high="recall_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Computed from the stored DocScores with the rule of the method: where no score reaches the threshold, "
                "the best document is kept. Documents that no agent cited have no DocScore and count as lost.",
                INTERVALS,
                gold_first(usable),
                left_out(len(mine), len(usable), "no gold document is marked, or there was no pruning"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _scored(run: RunResult) -> Stage | None:
    found = own_stage(run, "doc_score")
    return found if found is not None and found.documents and "DocScore" in found.scores else None


def _rows(group: Group, thresholds: Sequence[float]) -> list[Row]:
    stages = [(run, found) for run in group.runs.values() if (found := _scored(run)) is not None]
    all_kept = [(found.documents, False) for _, found in stages]
    rows = [_row(group, stages, all_kept, "before pruning", None)]
    for threshold in thresholds:
        kept = []
        for run, found in stages:
            order = ranking(run) or run.question.document_ids
            best = next((document for document in order if document in found.documents), found.documents[0])
            verdict = prune(found.documents, found.scores["DocScore"], threshold, best)
            kept.append((verdict.kept, bool(verdict.fallback)))
        rows.append(_row(group, stages, kept, f"{threshold:g}", threshold))
    return rows


def _row(
    group: Group,
    stages: Sequence[tuple[RunResult, Stage]],
    kept: Sequence[tuple[tuple[str, ...], bool]],
    setting: str,
    threshold: float | None,
) -> Row:
    runs = [run for run, _ in stages]
    names = sources(runs)
    recalls = [
        gold_recall(documents, run.question.gold_ids) or 0.0 for run, (documents, _) in zip(runs, kept, strict=True)
    ]
    return {
        "group": group.label,
        "setting": setting,
        "threshold": threshold,
        **mean("recall", recalls, names),
        **mean("kept", [float(len(documents)) for documents, _ in kept], names),
        **(mean("fallback", [float(fell) for _, fell in kept], names) if threshold is not None else {"fallback": None}),
        "n": len(recalls),
    }
