"""MADARA's No-Filter accuracy by people's labels, beside the one by accepted answers, on both halves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mdqa.agreement.learning import answer_is_right
from mdqa.agreement.ratings import Consensus
from mdqa.benchmarks.base import in_split
from mdqa.records import RunResult
from mdqa.reports.base import Column, Report, Row, change, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.grouping import Group, finished, groups, older, sources
from mdqa.scoring.answers import exact_match

NEEDS = "labelled items about finished MADARA runs that took the treatment nf (No-Filter)"

METHOD, TREATMENT = "madara", "nf"

HALVES = ("calibration", "held-out", "all")


def report(runs: Mapping[str, RunResult], labels: Iterable[Consensus]) -> Report:
    """The share of No-Filter answers that are right: by the accepted answers (before), by people (after).

    People's labels say whether the run's answer is right (:func:`~mdqa.agreement.learning.answer_is_right`). The
    difference is over the runs that have both. ``calibrate --labels`` takes what people say into the profile.
    """
    found = {one.run: answer_is_right(runs[one.run], one.label) for one in labels if _counts(runs.get(one.run))}
    by_run = {run_id: said for run_id, said in found.items() if said is not None}
    made = groups([runs[run_id] for run_id in by_run], only=())
    rows = [row for group in made for half in HALVES if (row := _row(group, half, by_run)) is not None]
    return Report(
        name="no_filter_by_people",
        title="No-Filter accuracy by people",
        source="MADARA, Section 3.2, with people's labels in place of accepted answers.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="half", title="Half"),
            Column(key="gold", title="By accepted answers, before", unit="%", digits=1),
            Column(key="answered", title="of", digits=0),
            Column(key="people", title="By people, after", unit="%", digits=1),
            Column(key="judged", title="of", digits=0),
            Column(key="change", title="Difference", unit="%", digits=1),
            Column(key="n", title="Questions with both", digits=0),
        ),
        rows=tuple(rows),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Accepted answers by exact match after SQuAD's normalisation; people accept wordings that it does not. "
                "Use them with: python -m mdqa calibrate --method madara --labels, or the tick in Profiles.",
                INTERVALS,
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _counts(run: RunResult | None) -> bool:
    """Whether a run is there and read all documents, uncut and unfiltered."""
    if run is None or run.overflow != "refuse" or not finished([run], METHOD):
        return False
    return run.routing is not None and run.routing.treatment == TREATMENT


def _row(group: Group, half: str, by_run: Mapping[str, bool]) -> Row | None:
    inside = {item.id for item in in_split([run.question for run in group.runs.values()], half)}
    own = [run for run in group.runs.values() if run.question.id in inside]
    if not own:
        return None
    known = [run for run in own if run.question.answers]
    gold = [exact_match(run.answer, run.question.answers) for run in known]
    said = [float(by_run[run.id]) for run in known]
    return {
        "group": group.label,
        "half": half,
        **mean("gold", gold, sources(known)),
        "answered": len(known),
        **mean("people", [float(by_run[run.id]) for run in own], sources(own)),
        "judged": len(own),
        **change("change", said, gold, sources(known)),
        "n": len(known),
    }
