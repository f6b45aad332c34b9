"""Counting in a queue, inside a transaction: labels and people per item, and how far everybody is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from sqlite_utils import Database

from storage.encoding import now
from storage.queue_settings import QueueSettings, settings_of
from storage.queues import NEWEST

PRESENT = f"select queue_items.id from queue_items join {NEWEST} and newest.present where queue_items.queue = ?"
"""The items that are in a queue now."""


@dataclass(frozen=True)
class Progress:
    """How far a queue is, practice items left out.

    ``complete`` of the ``items`` have as many labels as ``overlap`` wants; ``labels`` are those that count towards
    it, of ``wanted``: an item's labels beyond the overlap do not. ``people`` gave a label, ``working`` have an item
    open now. ``flagged`` items were flagged.
    """

    items: int
    complete: int
    labels: int
    wanted: int
    people: int
    working: int
    flagged: int
    practice: int


@dataclass(frozen=True)
class OwnProgress:
    """How far one person is in a queue: labels given, items skipped, practice done of ``practice``, items ``left``."""

    labelled: int
    skipped: int
    left: int
    practised: int
    practice: int


@dataclass(frozen=True)
class Counted:
    """An item with its labels, how many different ones, and how many others have it open on a lease that runs."""

    item: int
    labels: int
    different: int
    leases: int


@dataclass(frozen=True)
class Look:
    """A queue as a person finds it at a moment: its items as they were sent, practice items apart by row id."""

    queue: int
    person: str
    moment: str
    settings: QueueSettings
    practice: dict[int, str]
    items: tuple[Counted, ...]

    @cached_property
    def here(self) -> frozenset[int]:
        """All items that are in the queue now, those for practice included."""
        return frozenset((*(one.item for one in self.items), *self.practice))

    @cached_property
    def wanting(self) -> dict[int, Counted]:
        """The items that still want people, counting labels and leases of others."""
        overlap = self.settings.overlap
        return {one.item: one for one in self.items if one.labels + one.leases < overlap}


def look(db: Database, queue: int, person: str) -> Look:
    """Count a queue's items by its row id, for a person (empty: for nobody)."""
    moment, settings = now(), settings_of(db, queue)
    practice = _practice(db, queue, settings)
    rows = db.execute(
        "select queue_items.id, count(a.id) filter (where a.state = 'labelled'), "
        "count(distinct a.label) filter (where a.state = 'labelled'), "
        "count(a.id) filter (where a.state = 'open' and a.expires > ? and a.annotator <> ?) "
        f"from queue_items join {NEWEST} and newest.present "
        "left join assignments a on a.item = queue_items.id and not a.practice "
        "where queue_items.queue = ? group by queue_items.id order by queue_items.id",
        [moment, person, queue],
    ).fetchall()
    items = tuple(Counted(*row) for row in rows if row[0] not in practice)
    return Look(queue, person, moment, settings, practice, items)


def progress_of(db: Database, view: Look) -> Progress:
    """How far the queue is."""
    people, working = db.execute(
        "select count(distinct annotator) filter (where state = 'labelled' and not practice), "
        "count(distinct annotator) filter (where state = 'open' and expires > ?) "
        f"from assignments where item in ({PRESENT})",
        [view.moment, view.queue],
    ).fetchone()
    (flagged,) = db.execute(
        f"select count(distinct item) from labels where queue = ? and action = 'flag' and item in ({PRESENT})",
        [view.queue, view.queue],
    ).fetchone()
    return Progress(
        items=len(view.items),
        complete=sum(one.labels >= view.settings.overlap for one in view.items),
        labels=sum(min(one.labels, view.settings.overlap) for one in view.items),
        wanted=len(view.items) * view.settings.overlap,
        people=people,
        working=working,
        flagged=flagged,
        practice=len(view.practice),
    )


def own_progress_of(db: Database, view: Look) -> OwnProgress:
    """How far the person of the view is."""
    closed = "select item, state from assignments where annotator = ? and state <> 'open'"
    done = {item: state for item, state in db.execute(closed, [view.person]) if item in view.here}
    states = [state for item, state in done.items() if item not in view.practice]
    return OwnProgress(
        labelled=states.count("labelled"),
        skipped=states.count("skipped"),
        left=sum(item not in done for item in (*view.wanting, *view.practice)),
        practised=sum(item in done for item in view.practice),
        practice=len(view.practice),
    )


def _practice(db: Database, queue: int, settings: QueueSettings) -> dict[int, str]:
    """The practice items that are in the queue, in their order: row ids with their runs."""
    if not settings.practice_items:
        return {}
    wanted = json.dumps([item.run for item in settings.practice_items])
    rows = db.execute(
        f"select run, id from queue_items where run in (select value from json_each(?)) and id in ({PRESENT})",
        [wanted, queue],
    ).fetchall()
    here = dict(rows)
    return {here[item.run]: item.run for item in settings.practice_items if item.run in here}
