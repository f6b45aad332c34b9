"""The verbs of reports, without Gradio: which there are, which stored runs they may use, make one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mdqa.calibration import builtin_profiles
from mdqa.errors import ConfigError
from mdqa.registry import REPORTS
from mdqa.reports.base import Report
from mdqa.reports.making import make as make_report
from storage.runs import RunFilter, UnknownRun
from ui.context import Context

NEWEST = 200
MOST = 2000
STEP = 25
"""Runs read between two words on the progress."""


@dataclass(frozen=True)
class Wish:
    """A report and the stored runs that it is made from: of one method and model or of all, the newest ``newest``."""

    name: str
    method: str = ""
    model: str = ""
    newest: int = NEWEST


@dataclass(frozen=True)
class Reading:
    """How far the stored runs have been read."""

    done: int
    total: int


def offered(name: str) -> Report:
    """A report without any run: its title, source and what it needs; ConfigError if there is none of this name."""
    return make_report(name, ())


def offered_reports() -> tuple[Report, ...]:
    """Every report as :func:`offered`."""
    return tuple(offered(name) for name in REPORTS)


def stored_models(context: Context) -> list[str]:
    """The models of the stored runs (of the newest :data:`MOST`), in alphabetical order."""
    return sorted({row.model for row in context.store.runs.list(RunFilter(status="ok"), limit=MOST)})


def make(context: Context, wish: Wish) -> Iterator[Reading | Report]:
    """Read the runs, saying how far, and at last the report; ConfigError for a wish that cannot be."""
    offered(wish.name)
    if not 1 <= wish.newest <= MOST:
        raise ConfigError(f"a report reads 1 to {MOST:,} runs, not {wish.newest:,}")
    filters = RunFilter(method=wish.method, model=wish.model, status="ok")
    rows = context.store.runs.list(filters, limit=wish.newest)
    runs = []
    for number, row in enumerate(rows, 1):
        try:
            runs.append(context.store.runs.get(row.id))
        except UnknownRun:  # deleted since the list was made
            continue
        if number % STEP == 0 or number == len(rows):
            yield Reading(number, len(rows))
    profiles = [p for p in (*context.store.profiles.list(), *builtin_profiles()) if wish.model in ("", p.model)]
    yield make_report(wish.name, runs[::-1], profiles)  # oldest first, as in result files
