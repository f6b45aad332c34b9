"""Accuracy by the number of documents (DuQUAD, Table 8; CAFE, Figure 1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined
from mdqa.reports.common.answers import (
    BESIDE,
    INTERVALS,
    MEASURES,
    Answers,
    Given,
    beside,
    columns_beside,
    correct,
    measured,
    scored,
    titled,
)
from mdqa.reports.grouping import Group, groups, left_out, position_of

NEEDS = (
    "finished runs over the same questions with accepted answers and with different numbers of documents (also the "
    "gold ones alone); make them with: python -m mdqa evaluate --documents 10,20 --output DIR"
)

METRIC = "sub_em"
ALONE = "oracle"
"""The setting with gold documents only (CAFE, Figure 1)."""


@dataclass(frozen=True)
class Series:
    """One method with its options on one data set: its answers by number of documents, the gold ones alone apart."""

    title: str
    place: str
    by_count: Mapping[int, Answers]
    alone: Answers


def report(runs: Sequence[RunResult]) -> Report:
    """SubEM, EM and F1 by the number of documents, and the change from the fewest, over the questions asked with both.

    A question counts as the same where its source and the position of its evidence are. Questions without their gold
    documents, or without any, are left out: the answer is not in them.
    """
    usable = [run for run in scored(runs) if _setting(run) in ("given", ALONE) and run.question.documents]
    found = [
        series
        for series in _series(groups(usable, ignore=BESIDE, pool=True))
        if len(series.by_count) + bool(series.alone) > 1
    ]
    rows = [row for series in found for row in _rows(series)]
    correct(rows)
    return Report(
        name="accuracy_by_documents",
        title="Accuracy by number of documents",
        source="DuQUAD, Table 8; CAFE, Figure 1.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            Column(key="setting", title="Documents"),
            *MEASURES,
            *columns_beside(METRIC, "with the fewest"),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(
            kind="lines", x="documents", y=METRIC, series="variant", low=f"{METRIC}_low", high=f"{METRIC}_high"
        ),
        n=sum(int(row["n"] or 0) for row in rows),
        note=joined(
            (
                "Changes are from the fewest documents to this number, paired over the questions that were asked with "
                "both (the same source, and the evidence at the same position). 'Only the other right' counts those "
                "that more documents cost. Gold documents alone are CAFE's upper line.",
                INTERVALS,
                left_out(
                    len(runs),
                    sum(int(row["n"] or 0) for row in rows),
                    "they did not end well, no accepted answer is known, their documents lack the evidence, all of "
                    "their method have one number of documents, or a newer run has the same question",
                ),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _setting(run: RunResult) -> str:
    placed = run.question.meta.get("placed")
    return str(placed.get("setting", "given")) if isinstance(placed, Mapping) else "given"


def _series(made: Sequence[Group]) -> list[Series]:
    """Groups that differ in how their documents were placed only, as one."""
    found: dict[tuple[str, str, str], list[Given]] = {}
    for group in made:
        base = group.data.partition("@")[0]
        place = ", ".join(part for part in (group.model, base) if part)
        answers = [Given(run, run.answer) for run in group.runs.values()]
        found.setdefault((group.method, titled(group), place), []).extend(answers)
    series = []
    for (_, title, place), answers in found.items():
        by_count: dict[int, dict[Hashable, Given]] = {}
        alone: dict[Hashable, Given] = {}
        for one in sorted(answers, key=lambda one: one.run.created):
            if _setting(one.run) == ALONE:
                alone[one.source] = one
            else:
                count = len(one.run.question.documents)
                by_count.setdefault(count, {})[one.source, position_of(one.run)] = one
        series.append(Series(title, place, dict(sorted(by_count.items())), alone))
    return series


def _rows(series: Series) -> list[Row]:
    common: Row = {"group": series.place, "variant": series.title}
    rows: list[Row] = []
    if series.alone:
        counts = {len(one.run.question.documents) for one in series.alone.values()}
        shown = str(counts.pop()) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        setting: Row = {"setting": f"gold only ({shown})", "documents": None}
        rows.append({**common, **setting, **measured(series.alone), **beside(series.alone, None, METRIC)})
    fewest = next(iter(series.by_count.values()), None)
    for count, mine in series.by_count.items():
        change = beside(mine, None if mine is fewest else fewest, METRIC)
        rows.append({**common, "setting": str(count), "documents": count, **measured(mine), **change})
    return rows
