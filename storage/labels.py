"""What people decided about the items of queues: an append-only log, and what counts of it.

Nothing is ever changed or deleted, the database refuses it; an undo and an adjudication are entries too. What counts
is derived: everybody's latest word on an item. Entries stay when their run is deleted, but they count no more then.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.assignments import Assigned, bounded_time, close_form, last_closed, new_token, open_form, reopen_form
from storage.encoding import clean_text, now, to_json
from storage.queue_counts import PRESENT
from storage.queue_settings import LABELS as LABELS
from storage.queue_settings import settings_of
from storage.queues import person_name, require_queue, short_note

if TYPE_CHECKING:
    from storage.store import Store

Action = Literal["label", "undo", "skip", "flag", "note", "adjudicate"]

IMPORTED = "import-"
"""How the tokens of labels begin that were made elsewhere (see :mod:`storage.label_imports`)."""

MAX_TOKEN = 100
"""Characters of a token that comes from outside."""

MAX_EVIDENCE = 500
"""Documents that one label may mark."""


class Refused(StorageError):
    """What was said cannot be kept. The text is for the person who said it and names no path."""


class SavedOtherwise(Refused):
    """This form was saved already, and with something else: in another tab, say. What was saved first stays."""


@dataclass(frozen=True)
class Rating:
    """An entry of the log. ``label`` is one of :data:`LABELS` for ``label`` and ``adjudicate``, else empty.

    ``evidence``: ids of the documents that were marked as evidence. ``note``: what was written, or why it was skipped.
    ``version``: of the queue's settings (guidelines) that the annotator saw. ``practice``: on a practice item.
    ``seconds`` and ``idle_seconds``: time at work on the item, and time without input; together never more than has
    passed since the form was opened. ``swapped``: the second candidate was shown as A. ``created`` is UTC. ``token``
    belongs to one form.
    """

    id: int
    item: int
    run: str
    queue: str
    annotator: str
    label: str
    evidence: tuple[str, ...]
    note: str
    version: int
    practice: bool
    action: str
    seconds: float
    idle_seconds: float
    swapped: bool
    created: str
    token: str = ""


class LabelStore:
    """The label log of a :class:`~storage.store.Store`. Every method returns when its entry is safe on disk.

    A form that is saved twice is one entry: the second call returns the first one's. UnknownQueue where there is no
    such queue.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(
        self,
        token: str,
        annotator: str,
        label: str,
        *,
        evidence: Iterable[str] = (),
        note: str = "",
        seconds: float = 0.0,
        idle_seconds: float = 0.0,
    ) -> Rating:
        """Label the item of an assignment, which is done with that.

        Raises:
            UnknownForm: the assignment is not open for this person.
            Refused: the queue does not offer the label, a document is not the question's, or the note is too long.
            SavedOtherwise: the form was saved with another label, evidence or note.
        """
        person, evidence = person_name(annotator), tuple(evidence)
        with self._store.write() as db:
            if known := _saved(db, token, person, "label", label, note, evidence):
                return known
            form = open_form(db, token, person)
            offered = settings_of(db, _queue_of(db, form.item), form.version).labels
            if label not in offered:
                raise Refused(f"there is no label {label!r} in this queue; there is: {', '.join(offered)}")
            marked = checked_evidence(db, form.run, evidence)
            return self._close(db, form, "label", label, marked, note, seconds, idle_seconds)

    def skip(
        self, token: str, annotator: str, reason: str, *, seconds: float = 0.0, idle_seconds: float = 0.0
    ) -> Rating:
        """Leave the item of an assignment to others, with the reason. This person does not get it again.

        Raises:
            UnknownForm: the assignment is not open for this person.
            Refused: there is no reason, or it is too long.
            SavedOtherwise: the form was labelled, or skipped with another reason.
        """
        person = person_name(annotator)
        with self._store.write() as db:
            if known := _saved(db, token, person, "skip", "", reason):
                return known
            form = open_form(db, token, person)
            if not reason.strip():
                raise Refused("say in a few words why you skip it")
            return self._close(db, form, "skip", "", (), reason, seconds, idle_seconds)

    def flag(self, form: str, annotator: str, note: str, token: str) -> Rating:
        """Say that something is wrong with an open item itself; it stays open. ``token`` belongs to this flag."""
        return self._remark(form, annotator, "flag", note, token)

    def note(self, form: str, annotator: str, note: str, token: str) -> Rating:
        """Keep a remark on an open item without a label; it stays open. ``token`` belongs to this note."""
        return self._remark(form, annotator, "note", note, token)

    def undo(self, queue: str, annotator: str, token: str) -> Rating | None:
        """Take back this person's latest label or skip in the queue; again and again it goes back further.

        The item is open again with them, in the same order of candidates. None, and no entry, if there is nothing to
        take back. ``token`` belongs to this undo.
        """
        person = person_name(annotator)
        with self._store.write() as db:
            number = require_queue(db, queue)
            if known := _saved(db, token, person, "undo", "", ""):
                return known
            _check_token(db, token)
            last = last_closed(db, number, person)
            if last is None:
                return None
            form, _ = last
            entry = _append(db, form, "undo", token=token)
            reopen_form(db, form)
            return entry

    def adjudicate(self, item: int, label: str, who: str, note: str = "", token: str = "") -> Rating:
        """Decide an item on which people differ: a further entry, nobody's label is touched. The latest one counts.

        An empty ``label`` takes the decision back. ``token``: of the form; without one every call is a form of its own.

        Raises:
            Refused: there is no such item or label, or the note is too long.
        """
        person = person_name(who)
        with self._store.write() as db:
            if token and (known := _saved(db, token, person, "adjudicate", label, note)):
                return known
            _check_token(db, token)
            row = db.execute(
                "select run, queues.name, queues.id from queue_items join queues on queues.id = queue "
                "where queue_items.id = ?",
                [item],
            ).fetchone()
            if row is None:
                raise Refused(f"there is no item {item}; its run may have been deleted")
            settings = settings_of(db, row[2])
            if label and label not in settings.labels:
                raise Refused(f"there is no label {label!r} in this queue; there is: {', '.join(settings.labels)}")
            form = Assigned("", item, row[0], row[1], person, False, False, settings.version, now(), now())
            return _append(db, form, "adjudicate", label=label, note=_checked_note(note), token=token)

    def counting(self, queue: str) -> builtins.list[Rating]:
        """What counts: every annotator's latest label of each item that is in the queue, in the order of the log.

        Labels that were undone, or followed by a skip, and those of practice items are left out; so are those of
        items that were taken out of the queue or whose run was deleted.
        """
        with self._store.read() as db:
            number = require_queue(db, queue)
            latest = (
                "select max(id) from labels where queue = ? and not practice and action in ('label', 'skip', 'undo') "
                "group by item, annotator"
            )
            return _read(db, f"labels.id in ({latest}) and action = 'label' and item in ({PRESENT})", [number, number])

    def log(self, queue: str = "") -> builtins.list[Rating]:
        """All entries, or those about items of one queue, in the order in which they were written."""
        with self._store.read() as db:
            return _read(db, "labels.queue = ?", [require_queue(db, queue)]) if queue else _read(db, "true", [])

    def of(self, item: int, annotator: str) -> builtins.list[Rating]:
        """All entries of one person about one item, in their order."""
        with self._store.read() as db:
            return _read(db, "item = ? and annotator = ?", [item, clean_text(annotator).strip()])

    def adjudicated(self, queue: str) -> dict[int, Rating]:
        """The latest decision by item, of items that are in the queue; decisions that were taken back are left out."""
        with self._store.read() as db:
            number = require_queue(db, queue)
            found = _read(db, f"labels.queue = ? and action = 'adjudicate' and item in ({PRESENT})", [number, number])
            latest = {entry.item: entry for entry in found}
            return {item: entry for item, entry in latest.items() if entry.label}

    def _close(
        self,
        db: Database,
        form: Assigned,
        action: Literal["label", "skip"],
        label: str,
        evidence: tuple[str, ...],
        note: str,
        seconds: float,
        idle_seconds: float,
    ) -> Rating:
        """Write the entry and close the assignment with it."""
        active, idle = bounded_time(form.given, seconds, idle_seconds)
        entry = _append(
            db,
            form,
            action,
            label=label,
            evidence=evidence,
            note=_checked_note(note),
            seconds=active,
            idle_seconds=idle,
            token=form.token,
        )
        close_form(db, form, "labelled" if action == "label" else "skipped", label, entry.id)
        return entry

    def _remark(self, form: str, annotator: str, action: Action, note: str, token: str) -> Rating:
        person = person_name(annotator)
        with self._store.write() as db:
            if known := _saved(db, token, person, action, "", note):
                return known
            _check_token(db, token)
            return _append(db, open_form(db, form, person), action, note=_checked_note(note), token=token)


def _append(
    db: Database,
    form: Assigned,
    action: Action,
    *,
    label: str = "",
    evidence: tuple[str, ...] = (),
    note: str = "",
    seconds: float = 0.0,
    idle_seconds: float = 0.0,
    token: str = "",
) -> Rating:
    cursor = db.execute(
        "insert into labels (token, created, action, annotator, queue, item, run, label, evidence, note, version, "
        "practice, seconds, idle_seconds, swapped) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            *(clean_text(token) or new_token(), now(), action, form.annotator, _queue_of(db, form.item), form.item),
            *(form.run, label, to_json(evidence, "evidence"), note, form.version, form.practice),
            *(seconds, idle_seconds, form.swapped),
        ],
    )
    return _read(db, "labels.id = ?", [cursor.lastrowid])[0]


def _saved(
    db: Database, token: str, person: str, action: Action, label: str, note: str, evidence: Iterable[str] = ()
) -> Rating | None:
    """The entry that this form made already; SavedOtherwise if it made another one."""
    found = _read(db, "token = ?", [clean_text(token)])
    if not found:
        return None
    entry, marked = found[0], {clean_text(name) for name in evidence}
    said = (entry.annotator, entry.action, entry.label, entry.note, set(entry.evidence))
    if said != (person, action, label, clean_text(note).strip(), marked):
        raise SavedOtherwise("this form was saved already with something else; undo that to change it")
    return entry


def _check_token(db: Database, token: str) -> None:
    """Refused for a token from outside that would stand in the way: of a form, or of labels that are imported."""
    taken = db.execute("select 1 from assignments where token = ?", [clean_text(token)]).fetchone()
    if taken or len(token) > MAX_TOKEN or token.startswith(IMPORTED):
        raise Refused("this cannot be kept under the name that the page gave it; reload the page")


def _read(db: Database, where: str, values: builtins.list[Any]) -> builtins.list[Rating]:
    rows = db.query(
        "select labels.id, item, run, queues.name as queue, annotator, label, evidence, labels.note, version, "
        "practice, action, seconds, idle_seconds, swapped, labels.created, token from labels join queues on "
        f"queues.id = labels.queue where {where} order by labels.id",
        values,
    )
    return [
        Rating(
            **row
            | {"evidence": tuple(json.loads(row["evidence"]))}
            | {key: bool(row[key]) for key in ("practice", "swapped")}
        )
        for row in rows
    ]


def _queue_of(db: Database, item: int) -> int:
    return int(db.execute("select queue from queue_items where id = ?", [item]).fetchone()[0])


def checked_evidence(db: Database, run: str, evidence: Iterable[str]) -> tuple[str, ...]:
    """The ids in the question's order; Refused for one that is no document of the run's question."""
    wanted = {clean_text(name) for name in evidence}
    if len(wanted) > MAX_EVIDENCE:
        raise Refused(f"{len(wanted)} documents are marked as evidence; mark {MAX_EVIDENCE} at most")
    rows = db.execute(
        "select name from question_documents where question = (select question from runs where id = ?) "
        "order by position",
        [run],
    ).fetchall()
    known = [name for (name,) in rows]
    if unknown := sorted(wanted - set(known)):
        raise Refused(f"the question has no document {unknown[0]!r}")
    return tuple(name for name in known if name in wanted)


def _checked_note(note: str) -> str:
    try:
        return short_note(note)
    except StorageError as problem:  # its text is about what was typed
        raise Refused(str(problem)) from None
