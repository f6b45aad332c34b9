"""Runs: a row before the work starts, the trace while it goes on, the whole result at its end.

Until :meth:`RunStore.finish` the truth about a run is its trace: :meth:`RunStore.get` puts the stages, opinions and
costs together from the events that were stored, so a run whose process was killed shows all it had.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import AttentionMap, RunResult
from mdqa.trace import SCREEN_ONLY, AttentionCaptured, BaseEvent, Event, RunFinished, read_event
from storage.arrays import load_maps, map_row, store_map, store_missing_maps
from storage.documents import Known, load_question, store_question
from storage.encoding import clean_text, now, pack, to_json, unpack
from storage.facets import FacetCounts, RunFacets, counted, write_facets
from storage.listing import (
    EVERY,
    ROWS,
    Order,
    RunFilter,
    RunRow,
    chosen,
    count_query,
    group_query,
    page_query,
    read_row,
    utc,
)
from storage.members import drop_run
from storage.owners import Owner
from storage.people import drop_left, left_on
from storage.progress import note, so_far

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["Order", "RunFilter", "RunRow", "RunStore", "UnknownRun"]

SILENCE = timedelta(hours=6)
"""A run of another host counts as dead when it recorded nothing for so long, even if somebody has the file open."""

_APART = {"question", "status", "answer"}
"""Fields of a RunResult that have a place of their own and are left out of the row's JSON."""


class UnknownRun(StorageError):
    """There is no run with this id."""


class RunStore:
    """The runs of a :class:`~storage.store.Store`. Methods that take a run's id raise :class:`UnknownRun`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaid: dict[str, RunFinished] = {}  # ends that could not be written, as on a full disk

    def begin(self, result: RunResult) -> None:
        """Write the run's row, with status ``running`` and this process as its owner, before any work.

        A run that waits in line is written twice: when it is asked for (``backend`` is empty then, since nobody knows
        it yet), so that a kill does not lose it, and when its work begins.

        Raises:
            StorageError: a run with this id is there already.
        """
        owner, text = Owner.current(), to_json(result.model_dump(exclude=_APART), f"run {result.id!r}")
        with self._store.write() as db:
            if not self._waits(db, clean_text(result.id)):
                raise StorageError(f"run {result.id!r} is stored already in {self._store.path}; give it a new id")
            db.table("runs").upsert(
                {
                    "id": clean_text(result.id),
                    "created": utc(result.created),
                    "updated": now(),
                    "method": clean_text(result.method),
                    "model": clean_text(result.model),
                    "status": "running",
                    "question": store_question(db, result.question),
                    "owner_host": clean_text(owner.host),
                    "owner_pid": owner.pid,
                    "owner_started": owner.started,
                    "record": pack(text),
                },
                pk="id",
            )

    def _waits(self, db: Database, run_id: str) -> bool:
        """Whether no run of this id has begun to work."""
        row = db.execute("select status, record from runs where id = ?", [run_id]).fetchone()
        return row is None or (row[0] == "running" and not json.loads(unpack(row[1]))["backend"])

    def record(self, run_id: str, event: BaseEvent) -> None:
        """Append an event to the run's trace and bring the row up to date; arrays are kept at once.

        Events that are for the screen only are left out. An end that cannot be written is kept for :meth:`settle`.
        """
        if isinstance(event, SCREEN_ONLY):
            return
        run, data = clean_text(run_id), event.model_dump()
        text = to_json(data, f"run {run_id!r}, event {data.get('kind', '')!r}")
        row = {"run": run, "kind": data["kind"], "at": event.at, "data": pack(text)}
        arrays = map_row(event.map) if isinstance(event, AttentionCaptured) and event.map is not None else None
        try:
            with self._store.write() as db:
                if not note(db, run, event):
                    self._require(db, run_id)
                db.table("events").insert(row)
                if arrays:
                    store_map(db, run, arrays)
        except UnknownRun:
            raise
        except StorageError:
            if isinstance(event, RunFinished):  # otherwise it would look as if it still went on
                self._unsaid[run_id] = event
            raise

    def settle(self) -> None:
        """Write the ends of runs that could not be written before; not inside a transaction."""
        for run_id in list(self._unsaid):
            event = self._unsaid.pop(run_id)
            with suppress(StorageError):  # it comes back where it cannot be written now either
                self.record(run_id, event)

    def finish(
        self,
        result: RunResult,
        maps: Sequence[AttentionMap] = (),
        *,
        correct: bool | None = None,
        facets: RunFacets | None = None,
    ) -> None:
        """Write the whole result in one transaction; maps that :meth:`record` stored already are not stored again.

        ``correct``: whether the answer is right, None if nobody knows. ``facets``: what the run is found by; without
        them it is one of the runs that :meth:`unfaceted` names.
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
            if facets is not None:
                write_facets(db, clean_text(result.id), facets)

    def get(self, run_id: str) -> RunResult:
        """The run with its question and documents: complete, or as far as it got."""
        return self._load(run_id, {})

    def get_all(self, run_ids: Sequence[str]) -> dict[str, RunResult]:
        """These runs by id, each as :meth:`get` gives it; those that are gone are not there.

        Documents that several of them had are read once, as the members of a study have nearly all in common.
        """
        found: dict[str, RunResult] = {}
        known: Known = {}
        for run_id in run_ids:
            with suppress(UnknownRun):
                found[run_id] = self._load(run_id, known)
        return found

    def _load(self, run_id: str, known: Known) -> RunResult:
        with self._store.read() as db:
            row = self._require(db, run_id)
            question = load_question(db, row["question"], known)
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
            return _rows(db, [self._require(db, run_id)["id"]])[0]

    def events(self, run_id: str) -> builtins.list[Event]:
        """The run's trace in order; events about attention come without their arrays (see :meth:`maps`)."""
        with self._store.read() as db:
            return _events(db, self._require(db, run_id)["id"])

    def maps(self, run_id: str) -> builtins.list[AttentionMap]:
        """The run's attention maps in the order in which they were captured."""
        with self._store.read() as db:
            return load_maps(db, self._require(db, run_id)["id"])

    def count(self, filters: RunFilter | None = None) -> int:
        """How many runs match; without a filter how many there are, those of studies included."""
        sql, values = count_query(filters or EVERY)
        with self._store.read() as db:
            return int(db.execute(sql, values).fetchone()[0])

    def facets(self, filters: RunFilter | None = None) -> FacetCounts:
        """How many runs match, and how many would with another value of each facet."""
        wanted = filters or EVERY
        sql, values = group_query(wanted)
        with self._store.read() as db:
            return counted(list(db.query(sql, values)), chosen(wanted))

    def set_facets(self, run_id: str, facets: RunFacets) -> None:
        """Keep what a run is found by, worked out after its end."""
        with self._store.write() as db:
            write_facets(db, self._require(db, run_id)["id"], facets)

    def unfaceted(self, version: int, limit: int = 50) -> builtins.list[str]:
        """Up to ``limit`` ended runs whose facets are older than ``version`` or not there at all, oldest first."""
        sql = "select run from run_facets where version < ? and status <> 'running' order by version, created limit ?"
        with self._store.read() as db:
            return [run_id for (run_id,) in db.execute(sql, [version, limit])]

    def models(self) -> builtins.list[str]:
        """The models of all runs, in alphabetical order."""
        return self._distinct("model")

    def benchmarks(self) -> builtins.list[str]:
        """The benchmarks of all runs whose facets are known, in alphabetical order."""
        return self._distinct("benchmark")

    def delete(self, run_id: str, *, labels: bool = False) -> None:
        """Delete the run, its trace and maps, its studies, and the question and documents that only these used.

        Raises:
            StorageError: people labelled the run or put it into a queue, and ``labels`` does not say that this goes.
        """
        with self._store.write() as db:
            row = self._require(db, run_id)
            if not labels and (work := left_on(db, row["id"])):
                raise StorageError(
                    f"run {run_id!r} is not deleted: people left {work} on it, which would go or lose its run; "
                    "export them first and then delete the run with all of it"
                )
            drop_left(db, row["id"])
            drop_run(db, row["id"], row["question"])

    def recover(self) -> int:
        """Mark runs whose process is gone as ``interrupted``; they keep what they had. Returns how many.

        A process of another host cannot be asked; it is gone if nobody else has the database open, as after a container
        was replaced, or if it recorded nothing for long.
        """
        with self._store.read() as db:
            owners = db.execute(
                "select owner_host, owner_pid, owner_started, max(updated) from runs where status = 'running' "
                "group by owner_host, owner_pid, owner_started"
            ).fetchall()
        limit = (datetime.now(UTC) - SILENCE).isoformat(timespec="milliseconds")
        dead, asked = [], None
        for host, pid, started, updated in owners:
            alive = Owner(host, pid, started).alive()
            if alive is None and updated >= limit:
                asked = self._store.alone() if asked is None else asked
                alive = not asked
            if not alive:
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
        """Up to ``limit`` matching runs from the ``offset``-th on; without a filter of all, those of studies included.

        StorageError for an order that does not exist.
        """
        sql, values = page_query(filters or EVERY, order)
        with self._store.read() as db:
            found = db.execute(f"{sql} limit ? offset ?", [*values, max(limit, 0), max(offset, 0)]).fetchall()
            return _rows(db, [run_id for (run_id,) in found])

    def ids(self, filters: RunFilter | None = None, limit: int = -1, order: Order = "oldest") -> builtins.list[str]:
        """The ids of matching runs, at most ``limit`` (-1: all); without a filter of all, those of studies included."""
        sql, values = page_query(filters or EVERY, order)
        with self._store.read() as db:
            return [run_id for (run_id,) in db.execute(f"{sql} limit ?", [*values, limit])]

    def _distinct(self, column: str) -> builtins.list[str]:
        """The values of a column, each found by one step in its index."""
        sql = (
            f"with recursive found(value) as (select min({column}) from run_facets where {column} > '' union all "
            f"select (select min({column}) from run_facets where {column} > value) from found where value is not null) "
            "select value from found where value is not null"
        )
        with self._store.read() as db:
            return [value for (value,) in db.execute(sql)]

    def _require(self, db: Database, run_id: str) -> dict[str, Any]:
        rows = list(
            db.query(
                "select id, status, finished, answer, question, record from runs where id = ?",
                [clean_text(run_id or "")],  # a page on which no run is chosen sends none
            )
        )
        if not rows:
            raise UnknownRun(f"there is no run {run_id!r} in {self._store.path}; it may have been deleted")
        return rows[0]


def _rows(db: Database, run_ids: Sequence[str]) -> list[RunRow]:
    return [read_row(row) for row in db.query(ROWS, [json.dumps(run_ids)])]


def _events(db: Database, run_id: str) -> list[Event]:
    rows = db.execute("select data from events where run = ? order by id", [run_id]).fetchall()
    try:
        return [read_event(json.loads(unpack(data))) for (data,) in rows]
    except ValidationError as error:
        raise StorageError(f"the trace of run {run_id!r} cannot be read by this version: {error}") from error
