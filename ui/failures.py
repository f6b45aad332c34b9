"""The verbs of the Failures tab, without Gradio: look at a page of runs, take some of them, do something with them.

Runs are taken by their ids, never by their place in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mdqa.errors import InputError, MdqaError
from mdqa.registry import METHODS
from storage.export import export
from storage.runs import RunFilter, UnknownRun
from storage.saved_filters import FilterProblem
from ui.actions import run_again, title_of
from ui.context import Context
from ui.filtering import Wanted
from ui.guard import explained
from ui.inputs import page_within
from ui.queueing import DISAGREEMENT, TO_LOOK_AT, queued, send
from ui.views.failures import FailuresView

PAGE = 25
MOST_AGAIN = 20
"""Runs that are put in line at once."""

MOST_SENT = 1_000
MOST_EXPORTED = 500


@dataclass(frozen=True)
class Again:
    """What became of runs that were to run once more: ids of the ``new`` ones, and in words why others did not."""

    new: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Sent:
    """How many runs are new in a queue, how many were there already, and how many are not there any more."""

    new: int
    there: int
    gone: int


def look(context: Context, wanted: Wanted) -> FailuresView:
    """The page of runs that is asked for; the last one where there are fewer."""
    runs = context.store.runs
    counts = runs.facets(wanted.filters)
    page = page_within(wanted.page, counts.total, PAGE)
    rows = runs.list(wanted.filters, PAGE, page * PAGE, wanted.order)
    methods = {*METHODS, *counts.values["method"]}
    queues = (queue.name for queue in context.store.queues.queues())
    return FailuresView(
        wanted=wanted.turned(page),
        rows=tuple(rows),
        counts=counts,
        first=page * PAGE,
        titles={name: title_of(name) for name in methods},
        queued=queued(context, [row.id for row in rows]),
        queues=tuple(dict.fromkeys([TO_LOOK_AT, DISAGREEMENT, *queues])),
        saved=tuple(context.store.saved_filters.list()),
        any_runs=bool(counts.total) or bool(runs.list(limit=1)),
    )


def taken(context: Context, wanted: Wanted, picked: Sequence[str], everything: bool, most: int, verb: str) -> list[str]:
    """The ids to do something with: those that were picked, or all that match, in the order of the list.

    Raises:
        InputError: none were picked, or more than ``most``; ``verb`` says what was to be done ("sent").
    """
    filters = wanted.filters if everything else RunFilter(ids=tuple(dict.fromkeys(picked)))
    found = context.store.runs.ids(filters, most + 1, wanted.order)
    if not found:
        raise InputError("tick the runs first, or take all that match; those that were deleted count no more")
    if len(found) > most:
        number = context.store.runs.count(filters)
        raise InputError(f"{number:,} runs are chosen, and {most:,} can be {verb} at once; choose fewer or filter more")
    return found


def again(context: Context, ids: Sequence[str]) -> Again:
    """Put runs in line once more with the settings that they had, one after the other.

    Where the line is full or a run cannot be repeated, the others are put in all the same.
    """
    new: list[str] = []
    refused: dict[str, int] = {}
    for run_id in ids:
        try:
            new.append(run_again(context, run_id, {}))
        except MdqaError as problem:
            words = explained(problem)
            refused[words] = refused.get(words, 0) + 1
    return Again(tuple(new), tuple(f"{number} not: {words}" for words, number in refused.items()))


def send_all(context: Context, ids: Sequence[str], queue: str, who: str, note: str = "") -> Sent:
    """Put runs into a queue, all in one step; InputError for a name or a note that cannot be kept."""
    new = there = gone = 0
    with context.store.write():
        for run_id in ids:
            try:
                fresh = send(context, run_id, queue, who, note)
            except UnknownRun:
                gone += 1
                continue
            new, there = new + fresh, there + (not fresh)
    return Sent(new, there, gone)


def export_lines(context: Context, ids: Sequence[str], path: Path) -> int:
    """Write runs as JSON lines, each with its question, documents and verdicts; how many there were."""
    return export(context.store, path, filters=RunFilter(ids=tuple(ids)))


def save_filter(context: Context, name: str, wanted: Wanted, who: str) -> bool:
    """Keep the filter under a name; False where another one of that name is replaced. InputError for a bad name."""
    try:
        return context.store.saved_filters.save(name, wanted.filters, who, wanted.order)
    except FilterProblem as problem:
        raise InputError(str(problem), place="Saved filter") from None


def rename_filter(context: Context, name: str, new: str) -> None:
    """Give a saved filter another name; InputError where that cannot be."""
    try:
        context.store.saved_filters.rename(name, new)
    except FilterProblem as problem:
        raise InputError(str(problem), place="Saved filter") from None


def delete_filter(context: Context, name: str) -> None:
    """Delete a saved filter; InputError if it is not there any more."""
    try:
        context.store.saved_filters.delete(name)
    except FilterProblem as problem:
        raise InputError(str(problem), place="Saved filter") from None
