"""The queues with how far they are, and the practice items of one, for those who make queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.queue_settings import QueueSettings
from ui.queue_making import QueueState
from ui.views.markup import count, element, empty, escape, table, text

ORDERS: Mapping[str, str] = {
    "contested": "Most contested first",
    "as_sent": "As they were sent",
    "random": "Random",
}
"""Words for the orders of items."""


def queue_table(states: Sequence[QueueState]) -> str:
    """One line per queue."""
    if not states:
        return empty("There is no queue yet.", "Make one from stored runs here, or send a run to one from its result.")
    headers = ("Queue", "Items", "Labels", "People", "Working now", "Flagged", "Order", "Guidelines")
    return table(headers, map(_row, states), "queues")


def _row(state: QueueState) -> tuple[str, ...]:
    progress, settings = state.progress, state.settings
    practice = f", and {progress.practice} for practice" if progress.practice else ""
    bar = element("progress", "", "", max=max(progress.wanted, 1), value=progress.labels, aria_label="Labels")
    return (
        text("strong", state.queue.name, dir="auto"),
        escape(f"{count(progress.complete)} of {count(progress.items)} complete{practice}"),
        bar + " " + text("span", f"{count(progress.labels)} of {count(progress.wanted)} ({settings.overlap} per item)"),
        count(progress.people),
        count(progress.working),
        count(progress.flagged),
        escape(ORDERS[settings.order]),
        escape(f"version {settings.version}" if settings.version else "none yet"),
    )


def practice_table(settings: QueueSettings, questions: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """The practice items with their questions and right labels (in words), by run."""
    if not settings.practice_items:
        return text(
            "p", "No practice items yet. Everybody does them first and is told what was expected.", "mdqa-quiet"
        )
    rows = (
        (
            text("span", questions.get(item.run, "(the run was deleted)"), dir="auto"),
            text("span", labels.get(item.run, item.label), dir="auto"),
            text("span", item.feedback, dir="auto"),
        )
        for item in settings.practice_items
    )
    return table(("Question", "Expected", "Feedback"), rows, "practice", "Practice items, in their order")
