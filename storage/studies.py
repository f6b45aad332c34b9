"""Studies of a run: which questions they ask of it, and the runs that answer them.

A study belongs to its *base* run. Its members are runs like all others, with their own permanent addresses, and a
row here says of which study they are and what is different in them. Nothing is changed: a member that failed and is
tried again is a further row, and what counts is the latest row of each key. How far a study is follows from its
members' runs; it has no state of its own that could be wrong after a kill.
"""

from __future__ import annotations

import builtins
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import RunStatus
from storage.encoding import clean_text, now, to_json
from storage.runs import UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

StudyKind = Literal["leave_one_out", "position_sweep"]

KINDS: tuple[StudyKind, ...] = get_args(StudyKind)

MAX_NAME = 200
"""Characters of the name of a person."""


class UnknownStudy(StorageError):
    """There is no study with this id."""


@dataclass(frozen=True)
class Study:
    """A study of the run ``base``. ``about``: what it varies, as plain values; ``by``: who asked for it first.

    ``created`` is UTC.
    """

    id: str
    kind: StudyKind
    base: str
    created: str
    by: str
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyRun:
    """A run of a study. ``key`` says which variant it is, ``detail`` what is different in it; ``status`` the run's."""

    id: int
    study: str
    run: str
    key: str
    detail: dict[str, Any]
    created: str
    status: RunStatus
    seconds: float


class StudyStore:
    """The studies of a :class:`~storage.store.Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, kind: StudyKind, base: str, by: str, about: Mapping[str, Any] | None = None) -> Study:
        """The study of this run with these settings: the one that there is, or a new one.

        Raises:
            UnknownRun: there is no run ``base``.
            StorageError: there is no such kind, or the name is empty or too long.
        """
        if kind not in KINDS:
            raise StorageError(f"there is no study {kind!r}; there is: {', '.join(KINDS)}")
        run, person = clean_text(base), clean_text(by).strip()
        if not 1 <= len(person) <= MAX_NAME:
            raise StorageError(f"the person's name has {len(person)} characters; it needs 1 to {MAX_NAME}")
        # Sorted, so that equal settings are one text.
        text = json.dumps(json.loads(to_json(about or {}, f"study of run {base!r}")), sort_keys=True)
        with self._store.write() as db:
            if not db.execute("select 1 from runs where id = ?", [run]).fetchone():
                raise UnknownRun(f"there is no run {base!r} in {self._store.path}; it may have been deleted")
            db.execute(
                "insert into studies (id, kind, base, created, made_by, about) values (?, ?, ?, ?, ?, ?) "
                "on conflict (base, kind, about) do nothing",
                [uuid.uuid4().hex, kind, run, now(), person, text],
            )
            return _studies(db, "base = ? and kind = ? and about = ?", [run, kind, text])[0]

    def add(self, study_id: str, run_id: str, key: str, detail: Mapping[str, Any] | None = None) -> StudyRun:
        """Enter a run as the study's member ``key``; the latest run of a key is the one that counts.

        Raises:
            UnknownStudy, UnknownRun: one of them is not there.
            StorageError: the run is a member of a study already.
        """
        run, text = clean_text(run_id), to_json(detail or {}, f"study {study_id!r}, member {key!r}")
        with self._store.write() as db:
            study = self._require(db, study_id)
            if not db.execute("select 1 from runs where id = ?", [run]).fetchone():
                raise UnknownRun(f"there is no run {run_id!r} in {self._store.path}; it may have been deleted")
            if db.execute("select 1 from study_runs where run = ?", [run]).fetchone():
                raise StorageError(f"run {run_id!r} is a member of a study already; a run belongs to one")
            cursor = db.execute(
                "insert into study_runs (study, run, key, detail, created) values (?, ?, ?, ?, ?)",
                [study.id, run, clean_text(key), text, now()],
            )
            return _members(db, "study_runs.id = ?", [cursor.lastrowid])[0]

    def get(self, study_id: str) -> Study:
        """The study; UnknownStudy if there is none."""
        with self._store.read() as db:
            return self._require(db, study_id)

    def members(self, study_id: str) -> builtins.list[StudyRun]:
        """The latest run of every key, in the order in which the keys came in; earlier tries are in :meth:`log`."""
        latest: dict[str, StudyRun] = {}
        for member in self.log(study_id):
            latest[member.key] = member
        return builtins.list(latest.values())

    def log(self, study_id: str) -> builtins.list[StudyRun]:
        """All runs of the study, earlier tries too, in the order in which they were entered; UnknownStudy if none."""
        with self._store.read() as db:
            study = self._require(db, study_id)
            return _members(db, "study_runs.study = ?", [study.id])

    def of_run(self, run_id: str) -> builtins.list[Study]:
        """The studies of a run, the newest first; empty for an unknown run."""
        with self._store.read() as db:
            return _studies(db, "base = ?", [clean_text(run_id)])

    def with_member(self, run_id: str) -> Study | None:
        """The study that a run is a member of; None if it is none's."""
        with self._store.read() as db:
            found = _studies(db, "id = (select study from study_runs where run = ?)", [clean_text(run_id)])
            return found[0] if found else None

    def list(self, limit: int = 50, offset: int = 0) -> builtins.list[Study]:
        """Up to ``limit`` studies from the ``offset``-th on, the newest first."""
        with self._store.read() as db:
            return _studies(db, "true", [], " limit ? offset ?", [max(limit, 0), max(offset, 0)])

    def _require(self, db: Database, study_id: str) -> Study:
        found = _studies(db, "id = ?", [clean_text(study_id)])
        if not found:
            raise UnknownStudy(f"there is no study {study_id!r} in {self._store.path}; it may have been deleted")
        return found[0]


def _studies(db: Database, where: str, values: Iterable[Any], pages: str = "", more: Iterable[Any] = ()) -> list[Study]:
    rows = db.query(
        f"select id, kind, base, created, made_by, about from studies where {where} "
        f"order by created desc, rowid desc{pages}",
        [*values, *more],
    )
    return [
        Study(row["id"], row["kind"], row["base"], row["created"], row["made_by"], json.loads(row["about"]))
        for row in rows
    ]


def _members(db: Database, where: str, values: Iterable[Any]) -> list[StudyRun]:
    rows = db.query(
        "select study_runs.id, study, run, key, detail, study_runs.created, runs.status, runs.seconds "
        f"from study_runs join runs on runs.id = study_runs.run where {where} order by study_runs.id",
        [*values],
    )
    return [StudyRun(**row | {"detail": json.loads(row["detail"])}) for row in rows]
