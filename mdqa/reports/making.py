"""A report by its name, from runs and whatever else it can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.calibration import accepts
from mdqa.records import Profile, RunResult
from mdqa.registry import REPORTS, load
from mdqa.reports.base import Report

Line = Mapping[str, Any]
"""A line of a result file that is no run, such as one of the masking probes."""


def uses(name: str, what: str) -> bool:
    """Whether a report takes ``profiles`` or ``masking`` beside runs; ConfigError for an unknown report."""
    return accepts(load(REPORTS, name, "report"), what)


def make(
    name: str, runs: Sequence[RunResult], profiles: Sequence[Profile] = (), masking: Sequence[Line] = ()
) -> Report:
    """The report of this name; what it takes no notice of is not handed to it. ConfigError for an unknown one.

    ``profiles``: calibration profiles, the newest of a model first. ``masking``: lines of ``python -m mdqa masking``.
    """
    given = {"profiles": profiles, "masking": masking}
    report: Report = load(REPORTS, name, "report")(runs, **{k: v for k, v in given.items() if uses(name, k)})
    return report
