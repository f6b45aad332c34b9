"""Time to the first token (Table 8): listed, for no stored run can tell."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Report

NEEDS = (
    "a measurement and not stored runs: a run records its whole time and that of each stage, but not when the first "
    "token came; python -m mdqa bench cafe measures it for direct answering and CAFE side by side"
)


def report(runs: Sequence[RunResult]) -> Report:
    """Says where the numbers of Table 8 come from; never made from runs."""
    return Report(
        name="cafe_first_token",
        title="Time to the first token",
        source="CAFE, Table 8.",
        n=0,
        note="The time and tokens of whole runs are in the report costs.",
        needs=NEEDS,
    )
