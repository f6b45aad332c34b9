"""Queues of runs that somebody should look at: which run stands in which queue, and who put it there or took it out.

A run is in a queue once, however often and from wherever it is sent. Nothing is overwritten: sending a run and taking
it out are entries of an append-only log, and what a queue holds is derived, by the latest entry of each item.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.encoding import clean_text, now
from storage.runs import UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

MAX_QUEUE_NAME = 100
"""Characters of a queue's name. Upper and lower case are the same queue for ASCII letters."""

MAX_NAME = 200
"""Characters of the name of a person."""

MAX_NOTE = 2000
"""Characters of a note."""


class UnknownQueue(StorageError):
    """There is no queue with this name."""


@dataclass(frozen=True)
class Queue:
    """A queue with how many runs are in it now. ``created`` is UTC."""

    name: str
    note: str
    created: str
    items: int


@dataclass(frozen=True)
class QueueItem:
    """A run that is in a queue: who put it there, when (UTC) and why. ``id`` outlives taking it out and back."""

    id: int
    queue: str
    run: str
    added_by: str
    note: str
    created: str


@dataclass(frozen=True)
class QueueEntry:
    """An entry of the log: ``who`` put the item into its queue (``present``) or took it out."""

    id: int
    item: int
    queue: str
    run: str
    present: bool
    who: str
    note: str
    created: str


class QueueStore:
    """The queues of a :class:`~storage.store.Store`. Names of queues, people and notes are checked and cleaned."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def make(self, name: str, note: str = "") -> bool:
        """Make a queue; False, and nothing changed, if it is there. ``note``: what it is for."""
        wanted, about = queue_name(name), short_note(note)
        with self._store.write() as db:
            made = "insert into queues (name, note, created) values (?, ?, ?) on conflict do nothing"
            return db.execute(made, [wanted, about, now()]).rowcount > 0

    def send(self, run_id: str, queue: str, who: str, note: str = "") -> bool:
        """Put a run into a queue, which is made if need be; True when it is new there and safe on disk.

        Where the run is in the queue already nothing changes, the note of the first sender stays.

        Raises:
            UnknownRun: there is no such run.
            StorageError: the queue's name, the person's name or the note is empty or too long.
        """
        name, person, about, run = queue_name(queue), person_name(who), short_note(note), clean_text(run_id)
        with self._store.write() as db:
            if not db.execute("select 1 from runs where id = ?", [run]).fetchone():
                raise UnknownRun(f"there is no run {run_id!r} in {self._store.path}; it may have been deleted")
            moment = now()
            db.execute(
                "insert into queues (name, note, created) values (?, '', ?) on conflict do nothing", [name, moment]
            )
            (number,) = db.execute("select id from queues where name = ?", [name]).fetchone()
            db.execute("insert into queue_items (queue, run) values (?, ?) on conflict do nothing", [number, run])
            (item,) = db.execute("select id from queue_items where queue = ? and run = ?", [number, run]).fetchone()
            return _enter(db, item, present=True, who=person, note=about, now=moment)

    def remove(self, run_id: str, queue: str, who: str, note: str = "") -> bool:
        """Take a run out of a queue, as a further entry of the log; False if it is not in it.

        Raises:
            UnknownQueue: there is no such queue.
            StorageError: the person's name or the note is empty or too long.
        """
        person, about = person_name(who), short_note(note)
        with self._store.write() as db:
            wanted = [require_queue(db, queue), clean_text(run_id)]
            found = db.execute("select id from queue_items where queue = ? and run = ?", wanted).fetchone()
            return bool(found) and _enter(db, found[0], present=False, who=person, note=about, now=now())

    def queues(self) -> list[Queue]:
        """All queues by name, those without items too."""
        with self._store.read() as db:
            rows = db.query(
                f"select queues.name, queues.note, queues.created, count(newest.id) as items from queues "
                f"left join queue_items on queue_items.queue = queues.id left join {NEWEST} and newest.present "
                "group by queues.id order by queues.name"
            )
            return [Queue(**row) for row in rows]

    def items(self, queue: str, offset: int = 0, limit: int = 50) -> list[QueueItem]:
        """Up to ``limit`` runs of a queue from the ``offset``-th on, those first that came first.

        Raises:
            UnknownQueue: there is no such queue.
        """
        with self._store.read() as db:
            values = [require_queue(db, queue), max(limit, 0), max(offset, 0)]
            return _items(db, "queue_items.queue = ? order by queue_items.id limit ? offset ?", values)

    def of_run(self, run_id: str) -> list[QueueItem]:
        """The queues that a run is in, in the order in which it came into them; empty for an unknown run."""
        return self.of_runs([run_id]).get(run_id, [])

    def of_runs(self, run_ids: Iterable[str]) -> dict[str, list[QueueItem]]:
        """:meth:`of_run` for several runs at once; runs in no queue are left out."""
        ids = {clean_text(run_id): run_id for run_id in run_ids}
        found: dict[str, list[QueueItem]] = {}
        with self._store.read() as db:
            for clean, run_id in ids.items():
                if items := _items(db, "queue_items.run = ? order by queue_items.id", [clean]):
                    found[run_id] = items
        return found

    def log(self, queue: str = "") -> list[QueueEntry]:
        """All entries, or those of one queue, in the order in which they were written.

        Raises:
            UnknownQueue: there is no such queue.
        """
        with self._store.read() as db:
            where, values = ("queue_items.queue = ?", [require_queue(db, queue)]) if queue else ("true", [])
            rows = db.query(
                "select queue_log.id, item, queues.name as queue, run, present, who, queue_log.note, "
                "queue_log.created from queue_log join queue_items on queue_items.id = item "
                f"join queues on queues.id = queue_items.queue where {where} order by queue_log.id",
                values,
            )
            return [QueueEntry(**row | {"present": bool(row["present"])}) for row in rows]


NEWEST = "queue_log as newest on newest.id = (select max(id) from queue_log as entry where entry.item = queue_items.id)"
"""Joins each of ``queue_items`` with the entry of the log that counts, as ``newest``."""


def queue_name(name: str) -> str:
    """A queue's name with single blanks; StorageError if it is empty or too long."""
    found = " ".join(clean_text(name).split())
    if not 1 <= len(found) <= MAX_QUEUE_NAME:
        raise StorageError(f"the queue's name has {len(found)} characters; it needs 1 to {MAX_QUEUE_NAME}")
    return found


def person_name(who: str) -> str:
    """The name of a person without blanks around it; StorageError if it is empty or too long."""
    name = clean_text(who).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise StorageError(f"the person's name has {len(name)} characters; it needs 1 to {MAX_NAME}")
    return name


def short_note(note: str) -> str:
    """A note without blanks around it; StorageError if it is too long."""
    text = clean_text(note).strip()
    if len(text) > MAX_NOTE:
        raise StorageError(f"the note has {len(text):,} characters; it may have {MAX_NOTE:,}")
    return text


def require_queue(db: Database, queue: str) -> int:
    """The row id of a queue, inside a transaction; UnknownQueue names those that there are."""
    found = db.execute("select id from queues where name = ?", [" ".join(clean_text(queue).split())]).fetchone()
    if found is None:
        known = ", ".join(repr(name) for (name,) in db.execute("select name from queues order by name limit 10"))
        raise UnknownQueue(
            f"there is no queue {queue[:MAX_QUEUE_NAME]!r}; there is: {known or 'none yet, send a run to one'}"
        )
    return int(found[0])


def _enter(db: Database, item: int, *, present: bool, who: str, note: str, now: str) -> bool:
    """Write an entry unless the item is there, or not there, already."""
    latest = db.execute("select present from queue_log where item = ? order by id desc limit 1", [item]).fetchone()
    if bool(latest and latest[0]) is present:
        return False
    values = [item, present, who, note, now]
    db.execute("insert into queue_log (item, present, who, note, created) values (?, ?, ?, ?, ?)", values)
    return True


def _items(db: Database, where: str, values: list[Any]) -> list[QueueItem]:
    rows = db.query(
        "select queue_items.id, queues.name as queue, run, who as added_by, newest.note, newest.created "
        f"from queue_items join queues on queues.id = queue_items.queue join {NEWEST} "
        f"where newest.present and {where}",
        values,
    )
    return [QueueItem(**row) for row in rows]
