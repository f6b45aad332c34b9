"""Queues with finished runs for the tests of assignments and labels."""

from __future__ import annotations

from storage.assignments import Assigned
from storage.store import Store
from tests.storage.builders import complete, header, question

QUEUE = "Local and Global disagree"


def filled(store: Store, runs: int = 3, *, queue: str = QUEUE, **settings: object) -> list[int]:
    """A queue with runs r1, r2, ... over documents d0, d1, d2, and settings; the row ids of its items."""
    for number in range(1, runs + 1):
        name = f"r{number}"
        store.runs.begin(header(name, question=question(name, f"Question {number}?")))
        store.runs.finish(complete(name, question=question(name, f"Question {number}?")))
        store.queues.send(name, queue, "ada")
    if settings:
        store.queue_settings.change(queue, "ada", **settings)  # type: ignore[arg-type]
    return [item.id for item in store.queues.items(queue)]


def take(store: Store, person: str, queue: str = QUEUE) -> Assigned:
    """The next item, which must be there."""
    found = store.assignments.next_item(queue, person)
    assert found is not None, f"nothing for {person}"
    return found


def label(store: Store, person: str, said: str = "first", **more: object) -> Assigned:
    """Take the next item and label it."""
    form = take(store, person)
    store.labels.answer(form.token, person, said, **more)  # type: ignore[arg-type]
    return form
