"""Every method on every data set: the main tables of the papers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mdqa.benchmarks.placing import source_id
from mdqa.comparison.numbers import rows as compared
from mdqa.comparison.observations import Observer, Series
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined
from mdqa.reports.common.answers import (
    BESIDE,
    INTERVALS,
    MEASURES,
    by_place,
    columns_beside,
    correct,
    first_of,
    place_of,
    scored,
    titled,
)
from mdqa.reports.grouping import Group, groups, left_out, older
from mdqa.result_lines import Group as Named
from mdqa.scoring.answers import HEADLINE

NEEDS = (
    "finished runs over questions with accepted answers, of several methods on the same questions; make them with: "
    "python -m mdqa evaluate --methods direct,in_context,retrieve_read,cafe --output DIR (or answer, once per method)"
)

METRIC = "sub_em"


def report(runs: Sequence[RunResult]) -> Report:
    """SubEM, EM and F1 of every method with its options, per model and data set, each set against direct answering.

    Oracle RAG of CAFE's Table 3 is direct answering with ``context=gold_only`` or over questions placed as ``oracle``.
    Where nothing was answered directly, the others are set against the method that comes first. McNemar's exact test is
    on SubEM, with Holm's correction over all rows of a model and data set.
    """
    usable = scored(runs)
    made = groups(usable, ignore=BESIDE)
    rows = [row for same in by_place(made) for row in _rows(same)]
    correct(rows)
    return Report(
        name="accuracy",
        title="Accuracy by method and data set",
        source="CAFE, Table 3; DuQUAD, Table 1.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            *MEASURES,
            *columns_beside(METRIC, "the first row's"),
            Column(key="effect", title="Cohen's h", digits=2),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="variant", y=METRIC, series="group", low=f"{METRIC}_low", high=f"{METRIC}_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Within each model and data set every method is set against direct answering, or against the first row "
                "where there is none, over the questions that both answered. SubEM is CAFE's metric and the reading of "
                "DuQUAD's accuracy. The papers' fine-tuned baseline (SFT) is a model of its own: its runs are "
                "those of that model.",
                INTERVALS,
                left_out(len(runs), len(usable), "they did not end well, or no accepted answer is known"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(same: Sequence[Group]) -> list[Row]:
    """The groups of one place, the first one first; all numbers are drawn together, as in an evaluation."""
    first = first_of(same)
    ordered = [first, *(group for group in same if group is not first)]
    observers: dict[Hashable, Observer] = {}
    names = {question: str(number) for number, question in enumerate({q: None for group in same for q in group.runs})}
    series = [_series(group, observers, names) for group in ordered]
    return [_row(group, found) for group, found in zip(ordered, compared(series), strict=True)]


def _series(group: Group, observers: dict[Hashable, Observer], names: Mapping[Hashable, str]) -> Series:
    """The group as the comparison takes it; different questions keep different names, whatever their ids are."""
    observations = []
    for question, run in group.runs.items():
        observer = observers.setdefault((source_id(run.question), run.question.answers), Observer())
        observations.append(replace(observer.observe(run), question=names[question]))
    return Series(Named(titled(group), group.model), {"entry": titled(group)}, observations)


def _row(group: Group, found: Mapping[str, Any]) -> Row:
    row: Row = {"group": place_of(group), "variant": titled(group)}
    for metric in HEADLINE:
        row |= _interval(metric, found[metric])
    change, test, effect = (found.get(name, {}).get(METRIC) for name in ("difference", "tests", "effect"))
    row |= {**_interval(f"{METRIC}_change", change), **_interval("effect", effect)}
    row |= {name: test[name] if test else None for name in ("b", "c", "p")}
    return row | {"p_holm": None, "common": test["n"] if test else 0, "n": found["n"]}


def _interval(key: str, found: Mapping[str, Any] | None) -> Row:
    values = found or {"mean": None, "low": None, "high": None}
    return {key: values["mean"], f"{key}_low": values["low"], f"{key}_high": values["high"]}
