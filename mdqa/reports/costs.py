"""What each method takes: calls, tokens and time, and how many times the first method's (DuQUAD, Table 9)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS, by_place, first_of, place_of, titled
from mdqa.reports.grouping import Group, finished, groups, left_out, older, own_work

NEEDS = (
    "finished runs of any method; for ratios also those of direct answering over the same questions, made with: "
    "python -m mdqa answer --method direct"
)

MEASURES: Mapping[str, Column] = MappingProxyType(
    {
        "llm_calls": Column(key="llm_calls", title="Model calls", digits=1),
        "prompt_tokens": Column(key="prompt_tokens", title="Prompt tokens sent", digits=0),
        "prefill_tokens_computed": Column(key="prefill_tokens_computed", title="Computed", digits=0),
        "completion_tokens": Column(key="completion_tokens", title="Written", digits=0),
        "seconds": Column(key="seconds", title="Time", unit="s", digits=1),
    }
)


SHORTENED = ("prefill_tokens_computed", "seconds")
"""What is less than the method's own in a run that found work of earlier runs in memory."""


def report(runs: Sequence[RunResult]) -> Report:
    """Mean cost per question of every method, with its ratio to direct answering over the questions that both answered.

    The ratio is that of the means, as in Table 9. ``prefill_tokens_computed`` are the sent prompt tokens that went
    through the model: keys and values that were used again are not computed again. Runs that were shortened by what
    the program remembered of earlier ones count for neither these nor the time.
    """
    done = finished(runs)
    made = groups(done, prefer=own_work)
    rows = []
    for same in by_place(made):
        first = first_of(same)
        rows += [_row(group, first) for group in (first, *(group for group in same if group is not first))]
    return Report(
        name="costs",
        title="Calls, tokens and time",
        source="DuQUAD, Table 9.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            *(
                column
                for key, measure in MEASURES.items()
                for column in (measure, Column(key=f"{key}_ratio", title="ratio", digits=2))
            ),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="variant", y="seconds", series="group", low="seconds_low", high="seconds_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Means per question; the ratio is to direct answering where there is any, else to the first row, over "
                "the questions that both answered. Time is wall time on the machine that made the run, with whatever "
                "else ran on it.",
                INTERVALS,
                left_out(len(runs), len(done), "they did not end well"),
                older(made),
                _shortened(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _row(group: Group, first: Group) -> Row:
    row: Row = {"group": place_of(group), "variant": titled(group)}
    common: list[Hashable] = [question for question in group.runs if question in first.runs]
    for key in MEASURES:
        row |= mean(key, [float(getattr(run.cost, key)) for run in group.runs.values() if _counts(run, key)])
        both = [q for q in common if _counts(group.runs[q], key) and _counts(first.runs[q], key)]
        mine, theirs = (sum(getattr(runs[q].cost, key) for q in both) for runs in (group.runs, first.runs))
        row[f"{key}_ratio"] = mine / theirs if theirs else None
    return {**row, "common": len(common), "n": len(group.runs)}


def _counts(run: RunResult, key: str) -> bool:
    return key not in SHORTENED or run.cost.own_work


def _shortened(made: Sequence[Group]) -> str:
    runs = [run for group in made for run in group.runs.values()]
    number = sum(not run.cost.own_work for run in runs)
    return (
        f"Computed tokens and time are without {number} of {len(runs)} runs, which the program answered in part from "
        "what it remembered of earlier ones."
        if number
        else ""
    )
