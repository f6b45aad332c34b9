"""The verbs of the annotation queues, without Gradio: which queue fits a run, sending it there, taking it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mdqa.errors import InputError, StorageError
from mdqa.records import RunResult
from storage.queues import MAX_NOTE, QueueItem, queue_name
from ui.context import Context
from ui.views.duquad import disagree

DISAGREEMENT = "Local and Global disagree"
TO_LOOK_AT = "To look at"


def proposed(run: RunResult) -> str:
    """The queue that fits a run: that of the disagreements where DuQUAD's agents disagree, else the general one."""
    return DISAGREEMENT if disagree(run) else TO_LOOK_AT


def queue_names(context: Context, run: RunResult) -> list[str]:
    """The queues to choose from: the proposed one, then the other one of ours, then all that there are."""
    own = sorted((DISAGREEMENT, TO_LOOK_AT), key=lambda name: name != proposed(run))
    return list(dict.fromkeys([*own, *(queue.name for queue in context.store.queues.queues())]))


def places(context: Context, run_id: str) -> list[QueueItem]:
    """The queues that a run is in, with who sent it and why."""
    return context.store.queues.of_run(run_id)


def stands_out(run: RunResult, found: Sequence[QueueItem]) -> bool:
    """Whether a run should be sent: DuQUAD's agents disagree, and it is not in the queue of the disagreements."""
    return proposed(run) == DISAGREEMENT and not _among(found, DISAGREEMENT)


def queued(context: Context, run_ids: Iterable[str]) -> dict[str, list[str]]:
    """Names of the queues that each of these runs is in; runs in none are left out."""
    found = context.store.queues.of_runs(run_ids)
    return {run_id: [item.queue for item in items] for run_id, items in found.items()}


def send(context: Context, run_id: str, queue: str, who: str, note: str = "") -> bool:
    """Put a run into a queue, which is made if need be; False if it is there already, and then nothing changes.

    Raises:
        UnknownRun: the run is not there any more.
        InputError: the queue's name or the note cannot be kept.
    """
    about = note.strip()
    if len(about) > MAX_NOTE:
        raise InputError(f"it has {len(about):,} characters; shorten it to {MAX_NOTE:,}", place="Note")
    return context.store.queues.send(run_id, checked_name(queue), who, about)


def take_out(context: Context, run_id: str, queue: str, who: str) -> bool:
    """Take a run out of a queue, as a further entry of its log; False if it is not in it.

    Raises:
        InputError: that is no name of a queue.
    """
    name = checked_name(queue)
    return _among(places(context, run_id), name) and context.store.queues.remove(run_id, name, who)


def _among(found: Sequence[QueueItem], name: str) -> bool:
    return any(item.queue.casefold() == name.casefold() for item in found)


def checked_name(name: str) -> str:
    """A queue's name as it is kept; InputError if that is none."""
    if not isinstance(name, str):  # a box that takes any name takes any value
        raise InputError("is no text; reload the page", place="Queue")
    try:
        return queue_name(name)
    except StorageError as problem:  # its text is about what was typed, and names no path
        raise InputError(str(problem), place="Queue") from None
