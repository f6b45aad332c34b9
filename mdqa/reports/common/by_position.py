"""Accuracy by where the gold document stands: lost in the middle (CAFE, Table 6; DuQUAD, Table 1, NQ-1 to NQ-20)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined
from mdqa.reports.common.answers import (
    BESIDE,
    INTERVALS,
    MEASURES,
    Answers,
    answers_of,
    beside,
    by_place,
    columns_beside,
    correct,
    first_of,
    measured,
    place_of,
    scored,
    titled,
)
from mdqa.reports.grouping import Group, groups, left_out, older, position_of

NEEDS = (
    "finished runs over questions with accepted answers whose gold document stands at two positions or more; make them "
    "with: python -m mdqa evaluate --positions 1,10,20 --output DIR (or answer, on questions that differ in position)"
)

METRIC = "sub_em"


def report(runs: Sequence[RunResult]) -> Report:
    """SubEM, EM and F1 by the position of the evidence, per method, and against direct answering at each position.

    The position is where the evidence was put, or where the one gold document stands; questions with several gold
    documents that nobody placed are left out. ``spread`` is the best position's SubEM minus the worst one's.
    """
    usable = [run for run in scored(runs) if position_of(run) is not None]
    made = [group for group in groups(usable, ignore=BESIDE, pool=True) if len(_positions(group)) > 1]
    rows = [row for same in by_place(made) for row in _rows(same)]
    correct(rows)
    return Report(
        name="accuracy_by_position",
        title="Accuracy by position of the gold document",
        source="CAFE, Table 6; DuQUAD, Table 1 (NQ-1 to NQ-20).",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            Column(key="where", title="Gold at"),
            *MEASURES,
            *columns_beside(METRIC, "the first method's"),
            Column(key="spread", title="Best minus worst position", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="lines", x="position", y=METRIC, series="variant", low=f"{METRIC}_low", high=f"{METRIC}_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "At each position a method is set against direct answering, or against the first method where there is "
                "none. p: McNemar's exact test on SubEM, with Holm's correction over all rows of a model and data set. "
                "The spread is a maximum minus a minimum: with few questions it is large by chance alone.",
                INTERVALS,
                left_out(
                    len(runs),
                    sum(len(group.members) for group in made),
                    "they did not end well, no accepted answer is known, the evidence has no one position, or all "
                    "questions of the group have it at the same",
                ),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _positions(group: Group) -> list[int]:
    return sorted({place for run in group.runs.values() if (place := position_of(run)) is not None})


def _at(answers: Answers, position: int) -> Answers:
    return {question: one for question, one in answers.items() if position_of(one.run) == position}


def _rows(same: Sequence[Group]) -> list[Row]:
    first = first_of(same)
    rows: list[Row] = []
    for group in (first, *(group for group in same if group is not first)):
        title, mine = titled(group), answers_of(group)
        own: list[Row] = []
        for position in _positions(group):
            here = _at(mine, position)
            own.append(
                {
                    "group": place_of(group),
                    "variant": title,
                    "where": str(position),
                    "position": position,
                    **measured(here),
                    **beside(here, None if group is first else _at(answers_of(first), position), METRIC),
                    "spread": None,
                }
            )
        values = [float(value) for row in own if isinstance(value := row[METRIC], int | float)]
        overall: Row = {
            "where": "all",
            "position": None,
            **measured(mine),
            **beside(mine, None if group is first else answers_of(first), METRIC),
        }
        rows += [*own, {**own[0], **overall, "spread": max(values) - min(values)}]
    return rows
