"""What options of a method are worth: its runs with different values of them, all else being equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mdqa.records import RunResult
from mdqa.registry import method_class
from mdqa.reporting import changed_options
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import (
    BESIDE,
    INTERVALS,
    MEASURES,
    answers_of,
    beside,
    columns_beside,
    correct,
    measured,
    scored,
)
from mdqa.reports.grouping import Group, groups, left_out, older

METRIC = "sub_em"

Measure = Callable[[RunResult], float | None]
"""A number of a run; None where it has none."""


@dataclass(frozen=True)
class Study:
    """A table of a paper in which some options vary.

    Attributes:
        name, title, source, needs: as in a report.
        method: whose runs.
        options: those that vary; all others must be equal.
        words: a setting of them as the table calls it.
        more: further columns with the number that each takes from a run.
        note: how the numbers are to be read, beside what every such report says.
    """

    name: str
    title: str
    source: str
    needs: str
    method: str
    options: tuple[str, ...]
    words: Callable[[Mapping[str, Any]], str]
    more: Mapping[str, tuple[Column, Measure]] = field(default_factory=dict)
    note: str = ""


def by_setting(runs: Sequence[RunResult], study: Study) -> Report:
    """SubEM, EM and F1 of every setting of the study's options, against the method's defaults (else the first setting).

    Differences are paired over the questions that both settings answered; McNemar's exact test is on SubEM, with Holm's
    correction over the settings of a group.
    """
    usable = [run for run in scored(runs) if run.method == study.method and set(study.options) <= set(run.config)]
    made = [group for group in groups(usable, ignore=(*study.options, *BESIDE)) if len(_settings(group, study)) > 1]
    rows = [row for group in made for row in _rows(group, study)]
    correct(rows)
    mine = [run for run in runs if run.method == study.method]
    return Report(
        name=study.name,
        title=study.title,
        source=study.source,
        columns=(
            Column(key="group", title="Runs"),
            Column(key="setting", title="Setting"),
            *MEASURES,
            *(column for column, _ in study.more.values()),
            *columns_beside(METRIC, "the first row's"),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="setting", y=METRIC, series="group", low=f"{METRIC}_low", high=f"{METRIC}_high"),
        n=sum(int(row["n"] or 0) for row in rows),
        note=joined(
            (
                study.note,
                "All other options are equal within a group. Settings are set against the method's defaults where "
                "these were run, else against the first row, over the questions that both answered.",
                INTERVALS,
                left_out(
                    len(mine),
                    sum(len(group.members) for group in made),
                    "they did not end well, no accepted answer is known, or nothing was run that differs in these "
                    "options only",
                ),
                older([setting for group in made for setting in _settings(group, study)]),
            )
        ),
        needs="" if rows else study.needs,
    )


def _settings(group: Group, study: Study) -> list[Group]:
    """The group's runs by setting, the defaults first."""
    defaults = method_class(study.method).Config().model_dump(mode="json")
    standard = {name: defaults[name] for name in study.options}
    return sorted(groups(group.members, only=study.options), key=lambda one: _away(one.config, standard))


def _label(group: Group) -> str:
    """Model and data set, and what else is not the method's default."""
    changed = changed_options(group.method, group.config)
    return ", ".join(filter(None, (group.model, group.data, *(f"{name}={value}" for name, value in changed.items()))))


def _away(config: Mapping[str, Any], standard: Mapping[str, Any]) -> int:
    return sum(config.get(name, value) != value for name, value in standard.items())


def _rows(group: Group, study: Study) -> list[Row]:
    settings = _settings(group, study)
    first = answers_of(settings[0])
    rows: list[Row] = []
    for setting in settings:
        mine = answers_of(setting)
        row: Row = {"group": _label(group), "setting": study.words(setting.config), **measured(mine)}
        for key, (_, measure) in study.more.items():
            known = [(one.source, value) for one in mine.values() if (value := measure(one.run)) is not None]
            row |= mean(key, [value for _, value in known], [source for source, _ in known])
        rows.append({**row, **beside(mine, None if setting is settings[0] else first, METRIC)})
    return rows
