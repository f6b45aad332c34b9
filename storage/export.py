"""Runs, and what people said of them, out of the database.

JSON lines (everything), CSV (a table for spreadsheets), or a snapshot of the file.
"""

from __future__ import annotations

import csv
import json
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mdqa.errors import ConfigError, StorageError
from mdqa.records import Cost, RunResult
from storage.annotations import Label
from storage.encoding import to_json
from storage.runs import RunFilter, RunRow, UnknownRun

if TYPE_CHECKING:
    from storage.store import Store

CSV_COLUMNS = (
    *("run", "id", "created", "method", "model", "backend", "status", "question", "answer", "answers", "correct"),
    *("documents", "gold", "kept", "treatment", *Cost.model_fields, "fallbacks", "parse_failures", "seed", "profile"),
    *("config", "notices", "error"),
)
"""Columns of the table; ``kept`` are the documents that the last stage passed on. Lists and options are JSON."""

LABEL_COLUMNS = (*(field.name for field in fields(Label)), "method", "model", "status", "question", "answer")
"""Columns of the table of labels: the entries of the log, with a little of the runs that they are about."""

LEFT = 3600.0
"""Seconds without a change after which half a file is taken for that of a program that was killed."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_LEADING = ("\t", "\r", "\n")


def export(
    store: Store, output: Path | TextIO, *, what: str = "runs", format: str = "jsonl", filters: RunFilter | None = None
) -> int:
    """Write ``what`` (``runs`` or ``annotations``) to ``output`` and return how many were written.

    A file appears complete or not at all, and replaces one that was there. A stream takes ``jsonl`` and ``csv``.
    A ``jsonl`` line of a run is the run's line with the fields of its question beside it, so it can be read as a
    question too; ``annotations`` are its labels, all entries of the log in their order. A line of ``annotations`` is
    one entry of the log, those that others replaced or that were taken back included.

    Raises:
        ConfigError: ``what`` or ``format`` does not exist, or does not go with the other arguments.
        StorageError: the file cannot be written.
    """
    if what not in _WRITERS:
        raise ConfigError(f"there is nothing called {what!r} to export; there is: {', '.join(_WRITERS)}")
    if format == "sqlite":
        if what != "runs":
            raise ConfigError(f"a sqlite snapshot holds everything, {what} too; choose runs, or jsonl or csv")
        return _snapshot(store, output, filters)
    writers = _WRITERS[what]
    if format not in writers:
        raise ConfigError(f"unknown export format {format!r}; there is: jsonl, csv, sqlite")
    if not isinstance(output, Path):
        return writers[format](store, output, filters)
    with replacing(store.path, output) as path, path.open("w", encoding="utf-8", newline="") as stream:
        return writers[format](store, stream, filters)


def cell(value: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before whatever could begin one.

    Also before full-width signs, tab, carriage return and line feed, and where spaces stand before the sign.
    """
    risky = value.startswith(_LEADING) or value.lstrip().startswith(_FORMULA)
    return f"'{value}" if risky else value


def write_csv(stream: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows as a table for spreadsheets, no cell of which is a formula; how many there were."""
    writer = csv.DictWriter(stream, columns, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writeheader()
    number = 0
    for row in rows:
        writer.writerow({name: cell(value) if isinstance(value, str) else value for name, value in row.items()})
        number += 1
    return number


def _complete_runs(store: Store, filters: RunFilter | None) -> Iterator[tuple[RunResult, RunRow]]:
    for run_id in store.runs.ids(filters):
        try:
            yield store.runs.get(run_id), store.runs.row(run_id)
        except UnknownRun:  # deleted while the export went on
            continue


def _write_lines(store: Store, stream: TextIO, filters: RunFilter | None) -> int:
    number = 0
    for result, row in _complete_runs(store, filters):
        question = result.question.model_dump(include={"answers", "documents", "meta"})
        labels = [_entry(label) for label in store.annotations.list(result.id)]
        line = {**result.to_line(), "correct": row.correct, "annotations": labels, **question}
        stream.write(to_json(line, f"run {result.id!r}") + "\n")
        number += 1
    return number


def _write_table(store: Store, stream: TextIO, filters: RunFilter | None) -> int:
    return write_csv(stream, CSV_COLUMNS, (_fields(result, row) for result, row in _complete_runs(store, filters)))


def _entry(label: Label) -> dict[str, Any]:
    """A label beside its run."""
    return {name: value for name, value in asdict(label).items() if name != "run"}


def _labels(store: Store, filters: RunFilter | None) -> Iterator[dict[str, Any]]:
    """The log, or the part of it that is about runs of the filter, by :data:`LABEL_COLUMNS`."""
    wanted = None if filters is None else set(store.runs.ids(filters))
    for label in store.annotations.list():
        if wanted is not None and label.run not in wanted:
            continue
        try:
            row = store.runs.row(label.run)
        except UnknownRun:  # deleted while the export went on
            continue
        yield asdict(label) | {name: getattr(row, name) for name in ("method", "model", "status", "question", "answer")}


def _write_label_lines(store: Store, stream: TextIO, filters: RunFilter | None) -> int:
    number = 0
    for line in _labels(store, filters):
        stream.write(to_json(line, f"label {line['id']}") + "\n")
        number += 1
    return number


def _write_label_table(store: Store, stream: TextIO, filters: RunFilter | None) -> int:
    lines = _labels(store, filters)
    rows = (line | {"value": json.dumps(line["value"], ensure_ascii=False)} for line in lines)
    return write_csv(stream, LABEL_COLUMNS, rows)


_WRITERS: Mapping[str, Mapping[str, Callable[[Store, TextIO, RunFilter | None], int]]] = {
    "runs": {"jsonl": _write_lines, "csv": _write_table},
    "annotations": {"jsonl": _write_label_lines, "csv": _write_label_table},
}


def _fields(result: RunResult, row: RunRow) -> dict[str, Any]:
    """A run as one flat row, by :data:`CSV_COLUMNS`."""
    last = result.stages[-1].kept if result.stages else ()
    return {
        "run": result.id,
        "id": result.question.id,
        "created": row.created,
        "method": result.method,
        "model": result.model,
        "backend": result.backend,
        "status": result.status,
        "question": result.question.question,
        "answer": result.answer,
        "answers": json.dumps(result.question.answers, ensure_ascii=False),
        "correct": "" if row.correct is None else int(row.correct),
        "documents": row.documents,
        "gold": json.dumps(result.question.gold_ids, ensure_ascii=False),
        "kept": json.dumps(last, ensure_ascii=False),
        "treatment": result.routing.treatment if result.routing else "",
        **result.cost.model_dump(),
        "fallbacks": result.fallbacks,
        "parse_failures": result.parse_failures,
        "seed": result.seed,
        "profile": result.profile,
        "config": to_json(result.config, f"run {result.id!r}"),
        "notices": json.dumps(result.notices, ensure_ascii=False),
        "error": result.error.message if result.error else "",
    }


def _snapshot(store: Store, output: Path | TextIO, filters: RunFilter | None) -> int:
    if not isinstance(output, Path):
        raise ConfigError("a sqlite snapshot needs a file to go to; give --output a path")
    if filters not in (None, RunFilter()):
        raise ConfigError("a sqlite snapshot holds all runs and takes no filter; choose jsonl or csv")
    with replacing(store.path, output) as path:
        # A connection of its own: from one in the middle of a write, the backup would wait for ever.
        source, copy = sqlite3.connect(store.path), sqlite3.connect(path)
        try:
            source.backup(copy)
            # One file that can be moved about, without a log beside it.
            copy.execute("PRAGMA journal_mode=delete")
            return int(copy.execute("select count(*) from runs").fetchone()[0])
        finally:
            copy.close()
            source.close()


@contextmanager
def replacing(database: Path, output: Path, *, place: bool = True) -> Iterator[Path]:
    """A path beside ``output`` that takes its place when the block ends, and is removed when it raises.

    Without ``place`` the block itself puts it there. ``database``: the file that must not be written over.
    """
    output = output.expanduser().absolute()
    if output.resolve() == database.resolve():
        raise ConfigError(f"{output} is the database itself; choose another file for the export")
    if output.is_dir():
        raise ConfigError(f"{output} is a folder; give the path of a file")
    if output.exists() and not output.is_file():  # to replace /dev/null would harm the whole machine
        raise ConfigError(f"{output} is a device or a pipe; give the path of a file")
    part = output.with_name(f".{output.name}.{secrets.token_hex(4)}.part")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        remove_left(output.parent, rf"\.{re.escape(output.name)}\.[0-9a-f]{{8}}\.part(-journal)?")
        try:
            yield part
            if place:
                part.replace(output)
        finally:
            for end in ("", "-journal"):
                Path(f"{part}{end}").unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"{output} cannot be written: {error}") from error


def remove_left(folder: Path, names: str) -> None:
    """Remove the half files of programs that were killed: whose names match, and which nobody wrote to for long."""
    with suppress(OSError):  # what stays is only in the way
        for path in folder.iterdir():
            if re.fullmatch(names, path.name) and path.stat().st_mtime < time.time() - LEFT:
                path.unlink(missing_ok=True)
