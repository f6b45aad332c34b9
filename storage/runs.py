"""Runs: a row before the work starts, the trace while it goes on, the whole result at its end.

Until :meth:`RunStore.finish` the truth about a run is its trace: :meth:`RunStore.get` puts the stages, opinions and
costs together from the events that were stored, so a run whose process was killed shows all it had.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError
from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import AttentionMap, RunResult, RunStatus
from mdqa.trace import SCREEN_ONLY, AttentionCaptured, BaseEvent, Event, ModelCall, RunFinished, read_event
from storage.arrays import load_maps, map_row, store_map, store_missing_maps
from storage.documents import drop_unused, load_question, store_question
from storage.encoding import clean_text, now, pack, to_json, unpack
from storage.owners import Owner
from storage.people import drop_left, left_on
from storage.progress import so_far

if TYPE_CHECKING:
    from storage.store import Store

Order = Literal["newest", "oldest", "slowest", "costliest"]
"""How a list of runs is sorted: by time of creation, by wall time, by number of model calls."""

_ORDERS = {
    "newest": "runs.created desc, runs.id desc",
    "oldest": "runs.created, runs.id",
    "slowest": "runs.seconds desc, runs.created desc",
    "costliest": "runs.llm_calls desc, runs.created desc",
}

SILENCE = timedelta(hours=6)
"""A run of another host (a container that was replaced) counts as dead when it recorded nothing for so long."""

_APART = {"question", "status", "answer"}
"""Fields of a RunResult that have a place of their own and are left out of the row's JSON."""


class UnknownRun(StorageError):
    """There is no run with this id."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs: equal fields, ``text`` anywhere in question or answer, created in [``since``, ``until``).

    Times without a zone are UTC. Upper and lower case of ``text`` are the same for ASCII letters only (SQLite's LIKE).
    """

    method: str = ""
    model: str = ""
    status: RunStatus | Literal[""] = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class RunRow:
    """A line of a list of runs. ``correct`` is None where the right answer is not known; ``documents`` counts them."""

    id: str
    created: str
    method: str
    model: str
    status: RunStatus
    question: str
    answer: str
    correct: bool | None
    seconds: float
    llm_calls: int
    documents: int


class RunStore:
    """The runs of a :class:`~storage.store.Store`. Methods that take a run's id raise :class:`UnknownRun`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, result: RunResult) -> None:
        """Write the run's row, with status ``running`` and this process as its owner, before any work.

        Raises:
            StorageError: a run with this id is there already.
        """
        owner, text = Owner.current(), to_json(result.model_dump(exclude=_APART), f"run {result.id!r}")
        with self._store.write() as db:
            if db.execute("select 1 from runs where id = ?", [clean_text(result.id)]).fetchone():
                raise StorageError(f"run {result.id!r} is stored already in {self._store.path}; give it a new id")
            db.table("runs").insert(
                {
                    "id": clean_text(result.id),
                    "created": _utc(result.created),
                    "updated": now(),
                    "method": clean_text(result.method),
                    "model": clean_text(result.model),
                    "status": "running",
                    "question": store_question(db, result.question),
                    "owner_host": clean_text(owner.host),
                    "owner_pid": owner.pid,
                    "owner_started": owner.started,
                    "record": pack(text),
                }
            )

    def record(self, run_id: str, event: BaseEvent) -> None:
        """Append an event to the run's trace and bring the row up to date; arrays are kept at once.

        Events that are for the screen only are left out.
        """
        if isinstance(event, SCREEN_ONLY):
            return
        run, data = clean_text(run_id), event.model_dump()
        text = to_json(data, f"run {run_id!r}, event {data.get('kind', '')!r}")
        row = {"run": run, "kind": data["kind"], "at": event.at, "data": pack(text)}
        arrays = map_row(event.map) if isinstance(event, AttentionCaptured) and event.map is not None else None
        with self._store.write() as db:
            if not _note(db, run, event):
                self._require(db, run_id)
            db.table("events").insert(row)
            if arrays:
                store_map(db, run, arrays)

    def finish(
        self,
        result: RunResult,
        maps: Sequence[AttentionMap] = (),
        *,
        correct: bool | None = None,
    ) -> None:
        """Write the whole result in one transaction; maps that :meth:`record` stored already are not stored again.

        ``correct``: whether the answer is right, None if nobody knows.
        """
        if result.status == "running":
            raise StorageError(f"run {result.id!r} cannot be finished with the status 'running'")
        text = to_json(result.model_dump(exclude=_APART), f"run {result.id!r}")
        rows = [map_row(attention_map) for attention_map in maps]
        with self._store.write() as db:
            self._require(db, result.id)
            done = now()
            db.execute(
                "update runs set updated = ?, finished = ?, status = ?, answer = ?, correct = ?, seconds = ?, "
                "llm_calls = ?, record = ? where id = ?",
                [
                    done,
                    done,
                    result.status,
                    clean_text(result.answer),
                    correct,
                    result.cost.seconds,
                    result.cost.llm_calls,
                    pack(text),
                    clean_text(result.id),
                ],
            )
            store_missing_maps(db, clean_text(result.id), rows)

    def get(self, run_id: str) -> RunResult:
        """The run with its question and documents: complete, or as far as it got."""
        with self._store.read() as db:
            row = self._require(db, run_id)
            question = load_question(db, row["question"])
            unfinished = row["finished"] is None
            events = _events(db, row["id"]) if unfinished else []
            maps = load_maps(db, row["id"]) if unfinished else []
        try:
            parts = json.loads(unpack(row["record"])) | {"status": row["status"], "answer": row["answer"]}
            result = RunResult.model_validate({**parts, "question": question})
        except ValidationError as error:
            raise StorageError(f"run {run_id!r} cannot be read by this version: {error}") from error
        return so_far(result, events, maps) if unfinished else result

    def row(self, run_id: str) -> RunRow:
        """The run as a line of a list."""
        with self._store.read() as db:
            self._require(db, run_id)
            return _row(next(iter(db.query(f"{_SELECT} where runs.id = ?", [clean_text(run_id)]))))

    def events(self, run_id: str) -> builtins.list[Event]:
        """The run's trace in order; events about attention come without their arrays (see :meth:`maps`)."""
        with self._store.read() as db:
            return _events(db, self._require(db, run_id)["id"])

    def maps(self, run_id: str) -> builtins.list[AttentionMap]:
        """The run's attention maps in the order in which they were captured."""
        with self._store.read() as db:
            return load_maps(db, self._require(db, run_id)["id"])

    def count(self, filters: RunFilter | None = None) -> int:
        """How many runs there are."""
        where, values = _where(filters or RunFilter())
        with self._store.read() as db:
            sql = f"select count(*) from runs cross join questions on questions.id = runs.question{where}"
            return int(db.execute(sql, values).fetchone()[0])

    def delete(self, run_id: str, *, labels: bool = False) -> None:
        """Delete the run, its trace and maps, and the question and documents that only it used.

        Raises:
            StorageError: people labelled the run or put it into a queue, and ``labels`` does not say that this goes.
        """
        with self._store.write() as db:
            row = self._require(db, run_id)
            if not labels and (work := left_on(db, row["id"])):
                raise StorageError(
                    f"run {run_id!r} is not deleted: people left {work} on it, which would be lost; "
                    "export them first and then delete the run with all of it"
                )
            drop_left(db, row["id"])
            db.execute("delete from runs where id = ?", [row["id"]])
            drop_unused(db, row["question"])

    def recover(self) -> int:
        """Mark runs whose process is gone as ``interrupted``; they keep what they had. Returns how many."""
        with self._store.read() as db:
            owners = db.execute(
                "select owner_host, owner_pid, owner_started, max(updated) from runs where status = 'running' "
                "group by owner_host, owner_pid, owner_started"
            ).fetchall()
        limit = (datetime.now(UTC) - SILENCE).isoformat(timespec="milliseconds")
        dead = []
        for host, pid, started, updated in owners:
            alive = Owner(host, pid, started).alive()
            if alive is False or (alive is None and updated < limit):
                dead.append((now(), host, pid, started))
        if not dead:
            return 0
        with self._store.write() as db:
            return sum(
                db.execute(
                    "update runs set status = 'interrupted', updated = ? where status = 'running' "
                    "and owner_host = ? and owner_pid = ? and owner_started = ?",
                    owner,
                ).rowcount
                for owner in dead
            )

    def list(
        self, filters: RunFilter | None = None, limit: int = 50, offset: int = 0, order: Order = "newest"
    ) -> builtins.list[RunRow]:
        """Up to ``limit`` runs from the ``offset``-th on. StorageError for an order that does not exist."""
        sql, values = list_query(filters or RunFilter(), order)
        with self._store.read() as db:
            return [_row(row) for row in db.query(f"{sql} limit ? offset ?", [*values, max(limit, 0), max(offset, 0)])]

    def ids(self, filters: RunFilter | None = None) -> builtins.list[str]:
        """The ids of all matching runs, oldest first."""
        sql, values = list_query(filters or RunFilter(), "oldest", columns="runs.id")
        with self._store.read() as db:
            return [run_id for (run_id,) in db.execute(sql, values)]

    def _require(self, db: Database, run_id: str) -> dict[str, Any]:
        rows = list(
            db.query(
                "select id, status, finished, answer, question, record from runs where id = ?", [clean_text(run_id)]
            )
        )
        if not rows:
            raise UnknownRun(f"there is no run {run_id!r} in {self._store.path}; it may have been deleted")
        return rows[0]


_COLUMNS = (
    "runs.id, runs.created, runs.method, runs.model, runs.status, questions.question, runs.answer, runs.correct, "
    "runs.seconds, runs.llm_calls, questions.documents"
)

# A cross join keeps SQLite from walking the questions first, which would cost it the index that sorts the runs.
_FROM = "from runs cross join questions on questions.id = runs.question"

_SELECT = f"select {_COLUMNS} {_FROM}"


def list_query(filters: RunFilter, order: str, columns: str = _COLUMNS) -> tuple[str, list[Any]]:
    """The SQL of a list of runs and its values; StorageError for an order that does not exist."""
    if order not in _ORDERS:
        raise StorageError(f"runs cannot be sorted by {order!r}; there is: {', '.join(_ORDERS)}")
    where, values = _where(filters)
    return f"select {columns} {_FROM}{where} order by {_ORDERS[order]}", values


def _where(filters: RunFilter) -> tuple[str, list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    for column, value in (("method", filters.method), ("model", filters.model), ("status", filters.status)):
        if value:
            terms.append(f"runs.{column} = ?")
            values.append(clean_text(value))
    if filters.since:
        terms.append("runs.created >= ?")
        values.append(_utc(filters.since.isoformat()))
    if filters.until:
        terms.append("runs.created < ?")
        values.append(_utc(filters.until.isoformat()))
    if text := clean_text(filters.text):
        pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        terms.append(r"(questions.question like ? escape '\' or runs.answer like ? escape '\')")
        values += [pattern, pattern]
    return (" where " + " and ".join(terms) if terms else ""), values


def _note(db: Database, run_id: str, event: BaseEvent) -> bool:
    """Bring the row of an unfinished run up to date with an event; False if there is no such row."""
    calls = event.cost.llm_calls if isinstance(event, ModelCall) else 0
    sql = "update runs set updated = ?, seconds = max(seconds, ?), llm_calls = llm_calls + ?"
    values: list[Any] = [now(), event.at, calls]
    if isinstance(event, RunFinished):
        # Should the process die before finish(), the run is still known to have ended well.
        sql += ", status = ?, answer = ?"
        values += [event.status, clean_text(event.answer)]
    return db.execute(f"{sql} where id = ? and finished is null", [*values, run_id]).rowcount > 0


def _events(db: Database, run_id: str) -> list[Event]:
    rows = db.execute("select data from events where run = ? order by id", [run_id]).fetchall()
    try:
        return [read_event(json.loads(unpack(data))) for (data,) in rows]
    except ValidationError as error:
        raise StorageError(f"the trace of run {run_id!r} cannot be read by this version: {error}") from error


def _row(row: dict[str, Any]) -> RunRow:
    return RunRow(**row | {"correct": None if row["correct"] is None else bool(row["correct"])})


def _utc(text: str) -> str:
    """A time as UTC with milliseconds, so that texts sort as times; what is no time is left as it is."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return clean_text(text)
    return (time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")
