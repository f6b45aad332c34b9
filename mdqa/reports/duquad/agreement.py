"""Do the two agents agree, and does the judge side with the one that is right? Table 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import HOW, METHOD, opinion, right
from mdqa.reports.grouping import Group, finished, groups, left_out, older

NEEDS = f"finished DuQUAD runs with both agents over questions with accepted answers; make them with: {HOW}"

Outcome = tuple[bool, bool]
"""Whether the Global Agent and the Local Agent are right."""

OUTCOMES: Mapping[str, tuple[Outcome, ...]] = MappingProxyType(
    {
        "Both right": ((True, True),),
        "Global only": ((True, False),),
        "Local only": ((False, True),),
        "Both wrong": ((False, False),),
        "Disagreement": ((True, False), (False, True)),
    }
)
"""The columns of Table 10; a disagreement is a question that exactly one of them gets right."""


def report(runs: Sequence[RunResult]) -> Report:
    """How many questions both agents, one or none of them get right, and the share that the judge gets right of each.

    An answer is right where an accepted one stands in it (SubEM). The paper gives the judge's accuracy for
    disagreements; the other rows show where it overturns two right answers, or finds one that neither agent gave.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.answers and _outcome(run) is not None]
    made = groups(usable, ignore=("compare_ablations",))
    rows = [row for group in made for row in _rows(group)]
    return Report(
        name="agreement",
        title="Agreement of the Local and the Global Agent",
        source="DuQUAD, Table 10.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="outcome", title="Right"),
            Column(key="count", title="Questions", digits=0),
            Column(key="share", title="Share", unit="%", digits=1),
            Column(key="judge", title="The judge is right", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="outcome", y="share", series="group", low="share_low", high="share_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Right: an accepted answer stands in the answer (SubEM). Disagreement: exactly one agent is right; its "
                "row sums up the two above it that say which.",
                INTERVALS,
                left_out(len(mine), len(usable), "no accepted answer is known, or an agent was left out"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _outcome(run: RunResult) -> Outcome | None:
    """Which agents are right; None unless both spoke."""
    voices = opinion(run, "global_agent"), opinion(run, "local_agent")
    if voices[0] is None or voices[1] is None:
        return None
    return right(voices[0].answer, run), right(voices[1].answer, run)


def _rows(group: Group) -> list[Row]:
    runs = list(group.runs.values())
    found = [_outcome(run) for run in runs]
    rows: list[Row] = []
    for name, outcomes in OUTCOMES.items():
        judged = [
            float(right(run.answer, run)) for run, outcome in zip(runs, found, strict=True) if outcome in outcomes
        ]
        rows.append(
            {
                "group": group.label,
                "outcome": name,
                "count": len(judged),
                **mean("share", [float(outcome in outcomes) for outcome in found]),
                **mean("judge", judged),
                "n": len(runs),
            }
        )
    return rows
