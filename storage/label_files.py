"""Queues with everything that people said, as JSON lines that can be imported again, and the log as a table.

The lines hold the queues, the versions of their settings, their items and logs, assignments, the log of labels, and of
the runs they are about the question, the result and the verdicts that people gave. What an import into an empty
database gives is equal to what was exported: :func:`snapshot` is the same. Prompts and attention maps of the runs are
not among it; a snapshot of the database holds them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import ValidationError
from sqlite_utils import Database

from mdqa.errors import InputError, StorageError
from mdqa.records import RunResult
from storage.encoding import to_json
from storage.export import write_csv
from storage.label_rows import TABLES, checked_row
from storage.labels import Rating
from storage.queues import require_queue
from storage.runs import UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

FORMAT = "mdqa-labels"
VERSION = 1

MAX_LINE = 64 * 1024 * 1024
"""Characters of a line that is read."""


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
    return write_csv(stream, LOG_COLUMNS, (_entry(store, entry) for entry in store.labels.log(queue)))


def _entry(store: Store, entry: Rating) -> dict[str, Any]:
    """An entry by :data:`LOG_COLUMNS`, with a little of the run that it is about."""
    about = dict.fromkeys(("question_id", "question", "method", "model"), "")
    try:
        run = store.runs.get(entry.run)
        about = {"question_id": run.question.id, "question": run.question.question}
        about |= {"method": run.method, "model": run.model}
    except UnknownRun:  # the log outlives the runs
        pass
    values = asdict(entry) | about | {"evidence": json.dumps(entry.evidence, ensure_ascii=False)}
    values |= {name: int(values[name]) for name in ("practice", "swapped")}
    return {name: values[name] for name in LOG_COLUMNS}


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
        places = _Places(_last_item(db))
        for table in TABLES:
            _add_rows(db, table, found[table], places, name)
        _check_places(found, name)
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


@dataclass(frozen=True)
class _Places:
    """What rows are called here: old ids to new ones by table, and those of items whose runs were deleted.

    ``before``: the highest id that an item had here before the import.
    """

    before: int
    known: dict[str, dict[int, int]] = field(default_factory=dict)
    deleted: dict[int, int] = field(default_factory=dict)


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
            found[kind].append((number, checked_row(kind, line, place)))
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
            new += _add_run(store, result, correct)
        except RecursionError:
            raise InputError("is nested too deeply", place=f"{place}, result") from None
    return new


def _add_run(store: Store, result: RunResult, correct: bool | None) -> bool:
    """False if a run of this id is there already."""
    try:
        store.runs.row(result.id)
        return False
    except UnknownRun:
        store.runs.begin(result)
    if result.status != "running":
        store.runs.finish(result, correct=correct)
    return True


def _check_places(found: Mapping[str, list[_Numbered]], name: str) -> None:
    """InputError for an entry that speaks of another queue or run than its item, or of another item."""
    items = {row["id"]: row for _, row in found["queue_items"]}
    entries = {row["id"]: row for _, row in found["labels"]}
    for number, row in found["labels"]:
        item = items.get(row["item"], row | {"id": row["item"]})
        for column in ("queue", "run"):
            if row[column] != item[column]:
                raise InputError(f"item {item['id']} has another one", place=f"{name}, line {number}, {column}")
    for number, row in found["assignments"]:
        entry = entries.get(row["entry"], row)
        if any(entry[column] != row[column] for column in ("item", "annotator")):
            raise InputError("is about another item or by somebody else", place=f"{name}, line {number}, entry")


def _add_rows(db: Database, table: str, lines: list[_Numbered], places: _Places, name: str) -> None:
    """Insert the rows of a table in the order of their ids, which are kept where all of them are free."""
    known = places.known.setdefault(table, {})
    keep = _free(db, table, [row["id"] for _, row in lines])
    for number, row in sorted(lines, key=lambda line: line[1]["id"]):
        place = f"{name}, line {number}"
        if row["id"] in known:
            raise InputError(f"{row['id']} stands there twice", place=f"{place}, id")
        values = {key: value for key, value in row.items() if keep or key != "id"}
        for column, target in TABLES[table].points_at.items():
            gone = table == "labels" and column == "item" and row[column] not in places.known[target]
            values[column] = (
                _deleted(db, row[column], places) if gone else _pointed(row, column, places.known[target], place)
            )
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
        known[row["id"]] = int(row["id"] if keep else cursor.lastrowid or 0)


def _pointed(row: Mapping[str, Any], column: str, known: Mapping[int, int], place: str) -> int | None:
    """The new id of what a column points at."""
    value = row[column]
    if value is not None and value not in known:
        raise InputError(f"{value} is not among the {column} lines above", place=f"{place}, {column}")
    return None if value is None else known[value]


def _deleted(db: Database, value: int, places: _Places) -> int:
    """An id for an item that is there no more, since the log outlives the runs: nobody has it or will ever have it.

    It is the one that it had where nobody here has, or ever had, that one.
    """
    if value in places.deleted:
        return places.deleted[value]
    last = _last_item(db)
    taken = {*places.known["queue_items"].values(), *places.deleted.values()} if value <= last else set()
    number = value if value > places.before and value not in taken else last + 1
    if number > last:
        db.execute("delete from sqlite_sequence where name = 'queue_items'")
        db.execute("insert into sqlite_sequence (name, seq) values ('queue_items', ?)", [number])
    places.deleted[value] = number
    return number


def _last_item(db: Database) -> int:
    """The highest id that an item has, or ever had."""
    sql = "select coalesce(max(seq), 0) from sqlite_sequence where name = 'queue_items'"
    return int(db.execute(sql).fetchone()[0])


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
