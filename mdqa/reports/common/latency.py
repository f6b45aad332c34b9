"""What accuracy costs in time (DuQUAD, Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS, answers_of, by_place, place_of, scored, titled
from mdqa.reports.grouping import Group, groups, left_out, older

NEEDS = (
    "finished runs over questions with accepted answers, of several methods made on one machine; make them with: "
    "python -m mdqa evaluate --methods direct,retrieve_read,duquad --output DIR (or answer, once per method)"
)


def report(runs: Sequence[RunResult]) -> Report:
    """Mean time per question and accuracy (SubEM) of every method, one point each.

    ``front`` marks the methods that no other one of the same model and data set beats in both.
    """
    answered = scored(runs)
    usable = [run for run in answered if run.cost.own_work]
    made = groups(usable)
    rows = [row for same in by_place(made) for row in _rows(same)]
    return Report(
        name="accuracy_latency",
        title="Accuracy and latency",
        source="DuQUAD, Figure 5.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            Column(key="seconds", title="Time", unit="s", digits=2),
            Column(key="sub_em", title="SubEM", unit="%", digits=1),
            Column(key="front", title="Beaten by none in both"),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="points", x="seconds", y="sub_em", series="variant", low="sub_em_low", high="sub_em_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Means per question. Time is wall time on the machine that made the run, with whatever else ran on it: "
                "compare only runs of one machine. Methods that answered other questions than the rest are no fair "
                "neighbours: look at n.",
                INTERVALS,
                left_out(len(runs), len(answered), "they did not end well, or no accepted answer is known"),
                left_out(
                    len(answered),
                    len(usable),
                    "the program answered them in part from what it remembered of earlier ones, which takes less time",
                ),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(same: Sequence[Group]) -> list[Row]:
    rows: list[Row] = []
    points: list[tuple[float, float]] = []
    for group in same:
        given = list(answers_of(group).values())
        names = [one.source for one in given]
        seconds = [one.run.cost.seconds for one in given]
        right = [one.scores["sub_em"] for one in given]
        points.append((sum(seconds) / len(seconds), sum(right) / len(right)))
        rows.append(
            {
                "group": place_of(group),
                "variant": titled(group),
                **mean("seconds", seconds, names),
                **mean("sub_em", right, names),
                "n": len(given),
            }
        )
    for row, point in zip(rows, points, strict=True):
        beaten = any(other[0] <= point[0] and other[1] >= point[1] and other != point for other in points)
        row["front"] = None if beaten else "yes"
    return rows
