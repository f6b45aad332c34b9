"""The verbs of making and steering queues, without Gradio: from a filter of runs, settings, practice items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mdqa.agreement.ratings import CHOICES
from mdqa.candidates import candidates_of
from mdqa.errors import InputError, StorageError
from mdqa.records import RunResult
from storage.assignments import Progress
from storage.queue_settings import LABELS, ItemOrder, PracticeItem, QueueSettings
from storage.queues import Queue, UnknownQueue
from storage.runs import RunFilter, UnknownRun
from ui.context import Context
from ui.queueing import DISAGREEMENT, checked_name
from ui.views.markup import short

LOW_MARGIN = 0.1
"""A decision by less than this of a measure is worth a look."""

MOST = 1_000
"""Runs that one filter puts into a queue at once."""

OTHERS = tuple(label for label in LABELS if label not in CHOICES)
"""Labels that a queue may do without: both, neither, cannot tell."""

GUIDELINES = """Decide by the documents alone, not by what you know.

- **A is right** or **B is right**: the documents support this answer and not the other one.
- **Both**: they say the same in other words, or the documents support both.
- **Neither**: the documents support none of them, or say something else.
- **Cannot tell**: the documents do not say enough, or contradict each other without a way to decide.

Mark every document that an answer can be checked against. Write a note where somebody else may see it differently."""
"""What a new queue begins with."""


@dataclass(frozen=True)
class Preset:
    """A filter that queues are made from: a name for the queue and which runs."""

    name: str
    filters: RunFilter


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "agents": Preset(DISAGREEMENT, RunFilter(disagreement="agents")),
        "judge": Preset("The judge is against the majority", RunFilter(disagreement="judge")),
        "treatments": Preset("Treatments disagree", RunFilter(disagreement="treatments")),
        "votes": Preset("The vote is split", RunFilter(disagreement="votes")),
        "margin": Preset("Low margin", RunFilter(margin_below=LOW_MARGIN)),
    }
)


@dataclass(frozen=True)
class Made:
    """What came of making a queue: runs ``added``, ``there`` already, and without an answer to decide about."""

    queue: str
    added: int
    there: int
    unusable: int


@dataclass(frozen=True)
class QueueState:
    """A queue with its settings and how far it is."""

    queue: Queue
    settings: QueueSettings
    progress: Progress


def queue_states(context: Context) -> list[QueueState]:
    """All queues by name."""
    store = context.store
    return [
        QueueState(queue, store.queue_settings.of(queue.name), store.assignments.progress(queue.name))
        for queue in store.queues.queues()
    ]


def make_queue(
    context: Context,
    who: str,
    name: str,
    filters: RunFilter,
    *,
    limit: int = MOST,
    overlap: int = 2,
    order: ItemOrder = "contested",
    guidelines: str = GUIDELINES,
    others: Sequence[str] | None = None,
) -> Made:
    """Make a queue of the finished runs that the filter finds, newest first, or add those that are new to it.

    Settings of a queue that is there are changed by a further version where they differ.

    Raises:
        InputError: the name or a setting cannot be used, or the filter finds nothing.
    """
    store, wanted = context.store, checked_name(name)
    found = store.runs.ids(replace(filters, status="ok"), min(max(limit, 1), MOST), "newest")
    usable = [run_id for run_id in found if candidates_of(store.runs.get(run_id))]
    if not usable:
        raise InputError("no finished run is like that; run some questions first, or choose another kind", place="Runs")
    with store.write():  # whole or not at all
        store.queues.make(wanted)
        added = sum(store.queues.send(run_id, wanted, who) for run_id in reversed(usable))
        change_settings(context, who, wanted, overlap=overlap, order=order, guidelines=guidelines, others=others)
    return Made(wanted, added, len(usable) - added, len(found) - len(usable))


def change_settings(
    context: Context,
    who: str,
    queue: str,
    *,
    guidelines: str,
    overlap: int,
    order: ItemOrder,
    others: Sequence[str] | None = None,
) -> QueueSettings:
    """Write the settings as a new version if they differ; InputError says what cannot be kept.

    ``others``: which labels there are beside those that an answer is right; None leaves them as they are.
    """
    labels = None if others is None else [label for label in LABELS if label in (*CHOICES, *others)]
    try:
        return context.store.queue_settings.change(
            queue, who, guidelines=guidelines, overlap=overlap, order=order, labels=labels
        )
    except StorageError as problem:
        raise _explained(problem) from None


def practice_choices(context: Context, queue: str) -> list[tuple[str, str]]:
    """The runs of a queue as choices: the question, and the run's id."""
    store = context.store
    found = []
    for item in store.queues.items(queue, limit=MOST) if queue else []:
        try:
            found.append((short(store.runs.row(item.run).question, 90), item.run))
        except UnknownRun:  # deleted in this moment
            continue
    return found


def label_choices(run: RunResult, labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """The labels that a run can get, with the answers they speak of."""
    shown = candidates_of(run)
    words = {"both": "Both", "neither": "Neither", "cannot_tell": "Cannot tell"}
    for label, candidate in zip(("first", "second"), shown, strict=False):
        words[label] = f"“{short(candidate.answer or '(no answer)', 60)}” is right"
    if len(shown) < 2:
        words.pop("both")
    return [(words[label], label) for label in labels if label in words]


def set_practice(context: Context, who: str, queue: str, run_id: str, label: str, feedback: str) -> QueueSettings:
    """Make a run of the queue a practice item, or change the one that it is. A further version of the settings.

    Raises:
        InputError: the run is not in the queue, or the label or feedback cannot be kept.
    """
    return _change_practice(context, who, queue, run_id, PracticeItem(run_id, label, feedback.strip()))


def drop_practice(context: Context, who: str, queue: str, run_id: str) -> QueueSettings:
    """Make a practice item an ordinary one again. A further version of the settings."""
    return _change_practice(context, who, queue, run_id, None)


def _change_practice(context: Context, who: str, queue: str, run_id: str, item: PracticeItem | None) -> QueueSettings:
    settings = context.store.queue_settings
    try:
        with context.store.write():
            items = [old for old in settings.of(queue).practice_items if old.run != run_id]
            return settings.change(queue, who, practice_items=[*items, *([item] if item else [])])
    except StorageError as problem:
        raise _explained(problem) from None


def _explained(problem: StorageError) -> InputError:
    """Settings are refused with a text about what was typed; it names no path."""
    if isinstance(problem, UnknownQueue):
        return InputError("there is no such queue (any more); choose another one", place="Queue")
    return InputError(str(problem), place="Settings")
