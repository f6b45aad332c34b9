"""Queues with everything that people said, as JSON lines that can be imported again, and the log as a table.

The lines hold the queues, the versions of their settings, their items and logs, assignments, the log of labels, and of
the runs they are about the question, the result and the verdicts that people gave. What an import into an empty
database gives is equal to what was exported: :func:`snapshot` is the same. Prompts and attention maps of the runs are
not among it; a snapshot of the database holds them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import ValidationError
from sqlite_utils import Database

from mdqa.errors import InputError, StorageError
from mdqa.records import RunResult
from storage.encoding import to_json
from storage.export import cell
from storage.queues import require_queue
from storage.runs import UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

FORMAT = "mdqa-labels"
VERSION = 1

MAX_LINE = 64 * 1024 * 1024
"""Characters of a line that is read."""


@dataclass(frozen=True)
class _Table:
    """A table of the file: its columns with their types, and which of them point at a row of another table."""

    columns: Mapping[str, type]
    points_at: Mapping[str, str]


TABLES: Mapping[str, _Table] = {
    "queues": _Table({"id": int, "name": str, "created": str, "note": str}, {}),
    "queue_items": _Table({"id": int, "queue": int, "run": str}, {"queue": "queues"}),
    "queue_log": _Table(
        {"id": int, "item": int, "present": int, "who": str, "note": str, "created": str}, {"item": "queue_items"}
    ),
    "queue_settings": _Table(
        {
            **{"id": int, "queue": int, "version": int, "guidelines": str, "overlap": int, "item_order": str},
            **{"labels": str, "practice_items": str, "made_by": str, "created": str},
        },
        {"queue": "queues"},
    ),
    "labels": _Table(
        {
            **{"id": int, "token": str, "created": str, "action": str, "annotator": str, "queue": int, "item": int},
            **{"run": str, "label": str, "evidence": str, "note": str, "version": int, "practice": int},
            **{"seconds": float, "idle_seconds": float, "swapped": int},
        },
        {"queue": "queues", "item": "queue_items"},
    ),
    "assignments": _Table(
        {
            **{"id": int, "token": str, "item": int, "annotator": str, "swapped": int, "practice": int},
            **{"version": int, "state": str, "label": str, "entry": int, "given": str, "expires": str},
        },
        {"item": "queue_items", "entry": "labels"},
    ),
    "annotations": _Table(
        {"id": int, "token": str, "created": str, "annotator": str, "run": str, "kind": str, "value": str}, {}
    ),
}
"""What the file holds beside runs, in the order in which it is written and read."""

_OPTIONAL = {("assignments", "entry")}

_OF_QUEUES = {
    "queues": "id in (select value from json_each(:queues))",
    "queue_items": "queue in (select value from json_each(:queues))",
    "queue_log": "item in (select id from queue_items where queue in (select value from json_each(:queues)))",
    "queue_settings": "queue in (select value from json_each(:queues))",
    "labels": "queue in (select value from json_each(:queues))",
    "assignments": "item in (select id from queue_items where queue in (select value from json_each(:queues)))",
    "annotations": "run in (select run from queue_items where queue in (select value from json_each(:queues)))",
}

LOG_COLUMNS = (
    *("id", "created", "queue", "item", "run", "question_id", "question", "method", "model", "action", "annotator"),
    *("label", "evidence", "note", "version", "practice", "seconds", "idle_seconds", "swapped"),
)
"""Columns of the log as a table."""


@dataclass(frozen=True)
class Imported:
    """What an import brought: ``entries`` of the log of labels about ``items`` of ``queues``, and new ``runs``."""

    queues: int
    items: int
    entries: int
    runs: int


def write_lines(store: Store, stream: TextIO, queue: str = "") -> int:
    """Write the queue, or all queues, as JSON lines; how many entries of the log of labels were written.

    UnknownQueue if there is no such queue.
    """
    with store.read() as db:
        wanted = _wanted(db, queue)
        stream.write(to_json({"line": "header", "format": FORMAT, "version": VERSION}, "header") + "\n")
        for run_id in _runs(db, wanted):
            line = {"line": "run", "correct": store.runs.row(run_id).correct, "result": store.runs.get(run_id)}
            stream.write(to_json(line, f"run {run_id!r}") + "\n")
        entries = 0
        for table in TABLES:
            for row in _rows(db, table, wanted):
                stream.write(to_json({"line": table, **row}, f"{table} {row['id']}") + "\n")
                entries += table == "labels"
    return entries


def write_table(store: Store, stream: TextIO, queue: str = "") -> int:
    """Write the log of labels as a table for spreadsheets, no cell of which is a formula; how many entries it has."""
    writer = csv.DictWriter(stream, LOG_COLUMNS, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writeheader()
    entries = store.labels.log(queue)
    for entry in entries:
        about = dict.fromkeys(("question_id", "question", "method", "model"), "")
        try:
            run = store.runs.get(entry.run)
            about = {"question_id": run.question.id, "question": run.question.question}
            about |= {"method": run.method, "model": run.model}
        except UnknownRun:  # the log outlives the runs
            pass
        values = asdict(entry) | about | {"evidence": json.dumps(entry.evidence, ensure_ascii=False)}
        flags = {name: int(values[name]) for name in ("practice", "swapped")}
        row = {name: (values | flags)[name] for name in LOG_COLUMNS}
        writer.writerow({name: cell(value) if isinstance(value, str) else value for name, value in row.items()})
    return len(entries)


def snapshot(store: Store, queue: str = "") -> dict[str, Any]:
    """Everything that the lines hold, as plain values: two databases are equal here where their snapshots are."""
    with store.read() as db:
        wanted = _wanted(db, queue)
        runs = {run_id: (store.runs.get(run_id), store.runs.row(run_id).correct) for run_id in _runs(db, wanted)}
        return {"runs": runs, **{table: list(_rows(db, table, wanted)) for table in TABLES}}


def import_lines(store: Store, lines: Iterable[str], *, name: str = "file") -> Imported:
    """Bring exported queues into a database that has no queues of these names: all, or after any error nothing.

    Where ids are taken by other rows the new rows get the next free ones. A run that is there already is left as it is.

    Raises:
        InputError: a line or a field is not what was exported, or points at something that the file lacks; the text
            names the line and the field.
        StorageError: a queue of that name is there, or an entry was imported before.
    """
    found = _parsed(lines, name)
    with store.write() as db:
        new = _add_runs(store, found.pop("run"), name)
        places: dict[str, dict[int, int]] = {}
        for table in TABLES:
            _add_rows(db, table, found[table], places, name)
    return Imported(len(found["queues"]), len(found["queue_items"]), len(found["labels"]), new)


def _wanted(db: Database, queue: str) -> list[int]:
    return [require_queue(db, queue)] if queue else [number for (number,) in db.execute("select id from queues")]


def _rows(db: Database, table: str, queues: list[int]) -> Iterator[dict[str, Any]]:
    columns = ", ".join(TABLES[table].columns)
    sql = f"select {columns} from {table} where {_OF_QUEUES[table]} order by id"
    yield from db.query(sql, {"queues": json.dumps(queues)})


def _runs(db: Database, queues: list[int]) -> list[str]:
    sql = f"select distinct run from queue_items where {_OF_QUEUES['queue_items']} order by run"
    return [run for (run,) in db.execute(sql, {"queues": json.dumps(queues)})]


_Numbered = tuple[int, dict[str, Any]]
"""A line's number and its object."""


def _parsed(lines: Iterable[str], name: str) -> dict[str, list[_Numbered]]:
    """The lines by kind, every field checked."""
    found: dict[str, list[_Numbered]] = {kind: [] for kind in ("run", *TABLES)}
    begun = False
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        place = f"{name}, line {number}"
        line = _object(text.removeprefix("\ufeff") if number == 1 else text, place)
        kind = line.pop("line", None)
        if not begun:
            if kind != "header" or line.get("format") != FORMAT:
                raise InputError(f"this is no export of labels: the first line has to say {FORMAT}", place=place)
            if line.get("version") != VERSION:
                raise InputError(
                    f"was written in version {line.get('version')!r}; this one reads {VERSION}", place=place
                )
            begun = True
        elif kind in TABLES:
            found[kind].append((number, _checked(kind, line, place)))
        elif kind == "run":
            found["run"].append((number, line))
        else:
            raise InputError(f"there is no line {kind!r}; there is: run, {', '.join(TABLES)}", place=f"{place}, line")
    if not begun:
        raise InputError("the file is empty", place=name)
    return found


def _object(text: str, place: str) -> dict[str, Any]:
    if len(text) > MAX_LINE:
        raise InputError(f"has {len(text):,} characters; at most {MAX_LINE:,} are read", place=place)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", place=place) from None
    if not isinstance(value, dict):
        raise InputError(f"expected an object, found {type(value).__name__}", place=place)
    return value


def _checked(kind: str, line: dict[str, Any], place: str) -> dict[str, Any]:
    """The row of a line; InputError names a field that is missing, unknown or of another type."""
    columns = TABLES[kind].columns
    for field in (*columns, *line):
        if field not in line:
            raise InputError("is missing", place=f"{place}, {field}")
        if field not in columns:
            raise InputError(f"is no field of {kind}; there is: {', '.join(columns)}", place=f"{place}, {field}")
        value, wanted = line[field], columns[field]
        if value is None and (kind, field) in _OPTIONAL:
            continue
        fits = isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(value, bool)
        if not fits:
            raise InputError(f"expected {wanted.__name__}, found {value!r:.80}", place=f"{place}, {field}")
    return line


def _add_runs(store: Store, lines: list[_Numbered], name: str) -> int:
    new = 0
    for number, line in lines:
        place = f"{name}, line {number}"
        try:
            result = RunResult.model_validate(line.get("result"))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "result"
            raise InputError(first["msg"], place=f"{place}, result.{where}") from None
        correct = line.get("correct")
        if correct not in (None, True, False):
            raise InputError(f"expected true, false or null, found {correct!r:.80}", place=f"{place}, correct")
        try:
            store.runs.row(result.id)
            continue
        except UnknownRun:
            store.runs.begin(result)
        if result.status != "running":
            store.runs.finish(result, correct=correct)
        new += 1
    return new


def _add_rows(db: Database, table: str, lines: list[_Numbered], places: dict[str, dict[int, int]], name: str) -> None:
    """Insert the rows of a table in their order, ids kept where all of them are free; ``places``: old id to new."""
    known = places.setdefault(table, {})
    keep = _free(db, table, [row["id"] for _, row in lines])
    for number, row in lines:
        place = f"{name}, line {number}"
        values = {key: value for key, value in row.items() if keep or key != "id"}
        for column, target in TABLES[table].points_at.items():
            values[column] = _pointed(db, table, column, row[column], places[target], place)
        _refuse_known(db, table, row, place)
        if (
            "run" in row
            and table != "labels"
            and not db.execute("select 1 from runs where id = ?", [row["run"]]).fetchone()
        ):
            raise InputError(f"there is no run {row['run']!r} in this file or the database", place=f"{place}, run")
        columns = ", ".join(values)
        marks = ", ".join("?" for _ in values)
        cursor = db.execute(f"insert into {table} ({columns}) values ({marks})", list(values.values()))
        if row["id"] in known:
            raise InputError(f"{row['id']} stands there twice", place=f"{place}, id")
        known[row["id"]] = int(row["id"] if keep else cursor.lastrowid or 0)


def _pointed(
    db: Database, table: str, column: str, value: int | None, known: Mapping[int, int], place: str
) -> int | None:
    """The new id of what a column points at. The log outlives its items: those of deleted runs get ids nobody has."""
    if value is None or value in known:
        return None if value is None else known[value]
    if (table, column) == ("labels", "item"):
        (last,) = db.execute("select coalesce(max(seq), 0) from sqlite_sequence where name = 'queue_items'").fetchone()
        if last < value:
            return value
        raise InputError(
            f"{value} belonged to a deleted run, and another item has this id here", place=f"{place}, item"
        )
    raise InputError(f"{value} is not among the {column} lines above", place=f"{place}, {column}")


def _refuse_known(db: Database, table: str, row: Mapping[str, Any], place: str) -> None:
    if table == "queues" and db.execute("select 1 from queues where name = ?", [row["name"]]).fetchone():
        raise StorageError(f"{place}: the database has a queue {row['name']!r} already; import into another database")
    if "token" in row and db.execute(f"select 1 from {table} where token = ?", [row["token"]]).fetchone():
        raise StorageError(f"{place}: this entry of {table} is in the database already")


def _free(db: Database, table: str, ids: list[int]) -> bool:
    """Whether nobody has, or ever had, these ids."""
    last = db.execute("select seq from sqlite_sequence where name = ?", [table]).fetchone()
    highest = db.execute(f"select coalesce(max(id), 0) from {table}").fetchone()[0]
    return min(ids, default=1) > max(highest, last[0] if last else 0)
