"""What people say of runs: an append-only log of labels.

Nothing in it is overwritten. A label takes the place of the annotator's earlier labels of the same kind on the same
run, and a label without a value takes them back; both are entries of their own, and what counts is derived: the
latest entry of each annotator.
"""

from __future__ import annotations

import builtins
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import Question
from storage.documents import question_key, stored_key
from storage.encoding import clean_text, now, to_json, unpack
from storage.runs import UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

KINDS: Mapping[str, type] = {"correct": bool}
"""Kinds of labels and what their values are. ``correct``: whether the run's answer is right."""

MAX_NAME = 200
"""Characters of an annotator's name."""


@dataclass(frozen=True)
class Label:
    """An entry of the log. ``value`` is None where the annotator takes back what they said; ``created`` is UTC.

    ``token`` belongs to one form: saved twice, it is one label.
    """

    id: int
    run: str
    kind: str
    value: Any
    annotator: str
    token: str
    created: str


@dataclass(frozen=True)
class Judged:
    """Verdicts on some questions: ``right`` by question id, and how many questions have as many for as against."""

    right: Mapping[str, bool]
    tied: int


@dataclass(frozen=True)
class Verdicts:
    """What the majority of people said, by question key: ``right`` or not, ``tied`` where neither side has more."""

    right: Mapping[str, bool]
    tied: frozenset[str]

    def on(self, questions: Iterable[Question]) -> Judged:
        """The verdicts on these questions, found by content; two contents under one id are left out."""
        keys: dict[str, set[str]] = {}
        for item in questions:
            keys.setdefault(item.id, set()).add(question_key(item))
        plain = {name: next(iter(found)) for name, found in keys.items() if len(found) == 1}
        right = {name: self.right[key] for name, key in plain.items() if key in self.right}
        return Judged(right, sum(key in self.tied for key in plain.values()))


class AnnotationStore:
    """The labels of a :class:`~storage.store.Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, run_id: str, kind: str, value: Any, *, annotator: str, token: str = "") -> Label:
        """Append a label, and return it when it is safe on disk. ``value`` None takes back earlier ones.

        ``token``: of the form that is saved; a second save of the same form changes nothing and returns the first
        label. Without one, every call is a form of its own.

        Raises:
            UnknownRun: there is no such run.
            StorageError: the kind, value or name is not one, or the token belongs to another label.
        """
        text = _checked(kind, value)
        row = [clean_text(token) or uuid.uuid4().hex, _name(annotator), clean_text(run_id), kind, text]
        with self._store.write() as db:
            if known := self._labels(db, "token = ?", [row[0]]):
                same = (known[0].annotator, known[0].run, known[0].kind, known[0].value)
                if same != (row[1], row[2], kind, value):
                    raise StorageError(f"token {token!r} was used for another label; every form needs its own")
                return known[0]
            if not db.execute("select 1 from runs where id = ?", [row[2]]).fetchone():
                raise UnknownRun(f"there is no run {run_id!r} in {self._store.path}; it may have been deleted")
            created = now()
            cursor = db.execute(
                "insert into annotations (token, annotator, run, kind, value, created) values (?, ?, ?, ?, ?, ?)",
                [*row, created],
            )
            return self._labels(db, "id = ?", [cursor.lastrowid])[0]

    def list(self, run_id: str = "") -> builtins.list[Label]:
        """The whole log, or that of one run, in the order in which it was written."""
        with self._store.read() as db:
            return self._labels(db, "run = ?", [clean_text(run_id)]) if run_id else self._labels(db, "true", [])

    def latest(self, run_id: str, kind: str = "correct") -> builtins.list[Label]:
        """What counts: each annotator's latest label of this kind on the run, but for those taken back."""
        with self._store.read() as db:
            return self._latest(db, clean_text(run_id), kind)

    def verdicts(self, *, method: str, model: str, treatment: str = "") -> Verdicts:
        """Which questions people found rightly answered by a method with a model.

        Only finished runs count that read all documents uncut (the rule ``refuse``), and with ``treatment`` only
        those that took it. A run is right or wrong by the majority of its annotators' latest verdicts, a question by
        the majority of its runs, so that many people on one run do not outvote another run of the question.
        """
        runs: dict[str, Counter[bool]] = {}
        with self._store.read() as db:
            labelled = db.execute(
                "select id, question, record from runs where method = ? and model = ? and status = 'ok' "
                "and finished is not null and id in (select run from annotations where kind = 'correct')",
                [clean_text(method), clean_text(model)],
            ).fetchall()
            for run_id, question, record in labelled:
                if _counts(json.loads(unpack(record)), treatment):
                    found = _majority(Counter(label.value for label in self._latest(db, run_id, "correct")))
                    if found is not None:
                        runs.setdefault(stored_key(db, question), Counter()).update(found)
        decided = {key: votes[True] > votes[False] for key, votes in runs.items() if votes[True] != votes[False]}
        return Verdicts(decided, frozenset(runs.keys() - decided.keys()))

    def _latest(self, db: Database, run: str, kind: str) -> builtins.list[Label]:
        newest = "select max(id) from annotations where run = ? and kind = ? group by annotator"
        return [label for label in self._labels(db, f"id in ({newest})", [run, kind]) if label.value is not None]

    def _labels(self, db: Database, where: str, values: builtins.list[Any]) -> builtins.list[Label]:
        columns = "id, run, kind, value, annotator, token, created"
        rows = db.query(f"select {columns} from annotations where {where} order by id", values)
        return [Label(**row | {"value": json.loads(row["value"])}) for row in rows]


def _checked(kind: str, value: Any) -> str:
    """The value as JSON; StorageError unless it is one of its kind."""
    if kind not in KINDS:
        raise StorageError(f"there are no labels of kind {kind!r}; there is: {', '.join(KINDS)}")
    if value is not None and type(value) is not KINDS[kind]:
        raise StorageError(
            f"a label of kind {kind!r} is a {KINDS[kind].__name__}, or None to take it back; got {repr(value)[:80]}"
        )
    return to_json(value, f"label of kind {kind!r}")


def _name(annotator: str) -> str:
    name = clean_text(annotator).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise StorageError(f"the annotator's name has {len(name)} characters; it needs 1 to {MAX_NAME}")
    return name


def _counts(record: Mapping[str, Any], treatment: str) -> bool:
    routing = record.get("routing") or {}
    return record.get("overflow") == "refuse" and treatment in ("", routing.get("treatment"))


def _majority(votes: Counter[bool]) -> Counter[bool] | None:
    """One vote for the side with more, no vote of a tie, None where nobody says anything."""
    if not votes:
        return None
    return Counter(side for side in (True, False) if votes[side] > votes[not side])
