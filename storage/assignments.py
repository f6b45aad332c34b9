"""Who decides which item of a queue next. An assignment is one item for one person, with the order of its candidates.

A person gets an item once; as many people get it as the queue wants, counting those who are at it now. An assignment
is held by a lease: somebody who leaves blocks nothing, since after it the item goes to others.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.encoding import clean_text, now
from storage.queue_counts import Look, OwnProgress, Progress, look, own_progress_of, progress_of
from storage.queue_settings import QueueSettings
from storage.queues import NEWEST, person_name, require_queue

if TYPE_CHECKING:
    from storage.store import Store

LEASE = timedelta(minutes=20)
"""How long an item is held for somebody who gives no sign of life."""


CLOSED = "this item is not open for you any more; go on with the next one"


class UnknownForm(StorageError):
    """There is no open assignment with this token for this person; the text is for people and names no path."""


@dataclass(frozen=True)
class Assigned:
    """An item for one person. ``token`` names it to the outside, belongs to one form, and is new after an undo.

    ``swapped``: the second candidate is shown as A. ``version``: of the settings that the person sees. ``given`` is
    when the form was opened first, ``expires`` until when it is held; both UTC.
    """

    token: str
    item: int
    run: str
    queue: str
    annotator: str
    swapped: bool
    practice: bool
    version: int
    given: str
    expires: str


@dataclass(frozen=True)
class Desk:
    """An item for somebody (None if there is nothing left), the rules, and how far they and everybody are."""

    form: Assigned | None
    settings: QueueSettings
    own: OwnProgress
    all: Progress


class AssignmentStore:
    """The assignments of a :class:`~storage.store.Store`; UnknownQueue where there is no such queue."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def next_item(self, queue: str, person: str, *, lease: timedelta = LEASE) -> Assigned | None:
        """The item that a person decides next, held for them; None if there is nothing (left) for them.

        First the practice items that they have not done, in their order. Then what is open with them: what they left,
        or took back by an undo, the earliest first. Then a new item of those that still want people, counting labels
        and leases that run. The queue's order says which: ``contested`` takes the items first whose labels so far
        differ (another voice decides most there), then those that want the fewest further labels (a complete item
        can be compared, two half ones cannot), then those that were sent first; ``as_sent`` takes those that were
        sent first, ``random`` any.

        The order of the candidates is drawn for this person and item and kept.
        """
        who = person_name(person)
        with self._store.write() as db:
            return _assign(db, look(db, require_queue(db, queue), who), lease)

    def form(self, token: str, person: str) -> Assigned:
        """The open assignment behind a token.

        Raises:
            UnknownForm: it is not this person's, or it is closed.
        """
        with self._store.read() as db:
            return open_form(db, token, person)

    def of_token(self, token: str, person: str) -> Assigned:
        """The assignment that a token belongs or belonged to, open or not (any more); UnknownForm if it is nobody's."""
        wanted = [clean_text(token), clean_text(person).strip()]
        with self._store.read() as db:
            if found := _find(db, "assignments.token = ? and annotator = ?", wanted):
                return found
            row = db.execute("select item from labels where token = ? and annotator = ?", wanted).fetchone()
            if row and (found := _find(db, "item = ? and annotator = ?", [row[0], wanted[1]])):
                return replace(found, token=wanted[0])
        raise UnknownForm(CLOSED)

    def renew(self, token: str, person: str, *, lease: timedelta = LEASE) -> None:
        """Hold an open item for longer, on a sign of life; nothing happens if it is not open (any more)."""
        expires = (datetime.now(UTC) + lease).isoformat(timespec="milliseconds")
        with self._store.write() as db:
            sql = "update assignments set expires = ? where token = ? and annotator = ? and state = 'open'"
            db.execute(sql, [expires, clean_text(token), clean_text(person).strip()])

    def progress(self, queue: str) -> Progress:
        """How far the queue is."""
        with self._store.read() as db:
            return progress_of(db, look(db, require_queue(db, queue), ""))

    def own_progress(self, queue: str, person: str) -> OwnProgress:
        """How far a person is in the queue. ``left`` counts what they could get now, what is open included."""
        who = person_name(person)
        with self._store.read() as db:
            return own_progress_of(db, look(db, require_queue(db, queue), who))

    def desk(self, queue: str, person: str, *, lease: timedelta = LEASE) -> Desk:
        """:meth:`next_item` and how far everybody is, in one step."""
        who = person_name(person)
        with self._store.write() as db:
            view = look(db, require_queue(db, queue), who)
            form = _assign(db, view, lease)
            own = own_progress_of(db, view)
        with self._store.read() as db:  # the lock is for what has to be one step
            return Desk(form, view.settings, own, progress_of(db, view))


def new_token() -> str:
    """A name for a form that nobody can guess."""
    return secrets.token_urlsafe(16)


def open_form(db: Database, token: str, person: str) -> Assigned:
    """:meth:`AssignmentStore.form` inside a transaction."""
    wanted = [clean_text(token), clean_text(person).strip()]
    found = _find(db, "assignments.token = ? and annotator = ? and state = 'open'", wanted)
    if found is None:
        raise UnknownForm(CLOSED)
    return found


def bounded_time(given: str, seconds: float, idle_seconds: float) -> tuple[float, float]:
    """What a browser says of its time, within what has passed since the form was opened."""
    passed = max((datetime.fromisoformat(now()) - datetime.fromisoformat(given)).total_seconds(), 0.0)
    active = min(max(seconds, 0.0), passed) if math.isfinite(seconds) else 0.0
    idle = min(max(idle_seconds, 0.0), passed - active) if math.isfinite(idle_seconds) else 0.0
    return round(active, 3), round(idle, 3)


def close_form(db: Database, form: Assigned, state: str, label: str, entry: int) -> None:
    """Mark an assignment as ``labelled`` or ``skipped`` by an entry of the log. Inside a write transaction."""
    db.execute(
        "update assignments set state = ?, label = ?, entry = ? where item = ? and annotator = ?",
        [state, label, entry, form.item, form.annotator],
    )


def last_closed(db: Database, queue: int, person: str) -> tuple[Assigned, int] | None:
    """What a person labelled or skipped last in a queue and did not undo, with the log's entry; None if nothing."""
    row = db.execute(
        "select assignments.item, entry from assignments cross join queue_items on queue_items.id = assignments.item "
        f"join {NEWEST} and newest.present where annotator = ? and state <> 'open' and queue_items.queue = ? "
        "order by entry desc limit 1",
        [person, queue],
    ).fetchone()
    found = _find(db, "item = ? and annotator = ?", [row[0], person]) if row else None
    return (found, row[1]) if found and row else None


def reopen_form(db: Database, form: Assigned, *, lease: timedelta = LEASE) -> None:
    """Open an assignment again with another token, from now on. Inside a write transaction."""
    expires = (datetime.now(UTC) + lease).isoformat(timespec="milliseconds")
    db.execute(
        "update assignments set state = 'open', label = '', entry = null, token = ?, given = ?, expires = ? "
        "where item = ? and annotator = ?",
        [new_token(), now(), expires, form.item, form.annotator],
    )


def _assign(db: Database, view: Look, lease: timedelta) -> Assigned | None:
    """The next item for the person of the view, held for them from now on. Inside a write transaction."""
    item = _undone_practice(db, view) or _open_item(db, view) or _new_item(db, view)
    if item is None:
        return None
    expires = (datetime.now(UTC) + lease).isoformat(timespec="milliseconds")
    db.execute(
        "insert into assignments (token, item, annotator, swapped, practice, version, state, label, given, expires) "
        "values (?, ?, ?, ?, ?, ?, 'open', '', ?, ?) on conflict (item, annotator) do update "
        "set practice = excluded.practice, version = excluded.version, expires = excluded.expires",
        [
            *(new_token(), item, view.person, secrets.randbits(1), item in view.practice or _practised(db, item, view)),
            *(view.settings.version, view.moment, expires),
        ],
    )
    return _find(db, "item = ? and annotator = ?", [item, view.person])


def _practised(db: Database, item: int, view: Look) -> bool:
    """Whether the person was told what is expected of an item; what they say of it never counts then."""
    told = "select 1 from labels where item = ? and annotator = ? and practice and action = 'label'"
    return db.execute(told, [item, view.person]).fetchone() is not None


def _undone_practice(db: Database, view: Look) -> int | None:
    done = "select 1 from assignments where item = ? and annotator = ? and state <> 'open'"
    return next((item for item in view.practice if not db.execute(done, [item, view.person]).fetchone()), None)


def _open_item(db: Database, view: Look) -> int | None:
    """What is open with a person already and is still theirs, or still wants people."""
    own = "select item, expires from assignments where annotator = ? and state = 'open' order by id"
    for item, expires in db.execute(own, [view.person]).fetchall():
        if item in view.here and item not in view.practice and (expires > view.moment or item in view.wanting):
            return int(item)
    return None


def _new_item(db: Database, view: Look) -> int | None:
    """An item that the person never had and that still wants people, by the queue's order."""
    had = {item for (item,) in db.execute("select item from assignments where annotator = ?", [view.person])}
    rows = [row for item, row in view.wanting.items() if item not in had]
    if not rows:
        return None
    if view.settings.order == "random":
        return secrets.choice(rows).item
    if view.settings.order == "contested":
        # By labels alone, not leases: that somebody looks at an item says nothing about it.
        return min(rows, key=lambda row: (row.different < 2, -row.labels, row.item)).item
    return rows[0].item


def _find(db: Database, where: str, values: list[Any]) -> Assigned | None:
    rows = db.query(
        "select assignments.token, item, run, queues.name as queue, annotator, swapped, practice, version, given, "
        "expires from assignments join queue_items on queue_items.id = item join queues on queues.id = "
        f"queue_items.queue where {where}",
        values,
    )
    return next((Assigned(**row | {key: bool(row[key]) for key in ("swapped", "practice")}) for row in rows), None)
