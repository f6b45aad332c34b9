"""A copy of the database, its way back, and what state a file is in. None of it brings a schema up to date."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.export import replacing
from storage.migrations import STEPS, check_file, migrations

COUNTED = ("runs", "profiles", "annotations", "queue_items", "labels")
"""Tables whose rows are named in what the commands print."""
EMPTY = "it is empty"
IN_USE = b"\2\2"
"""Bytes 18 and 19 of a file with a write-ahead log, which programs write beside it; a backup has none (1 and 1)."""
WAIT = 2.0
"""Seconds until another program is said to have the database open."""


@dataclass(frozen=True)
class Condition:
    """What a file is. ``step``: the newest step of its schema; ``problem``: why it cannot be used, empty if it can.

    ``damaged``: it will not get better by itself, and a backup has to take its place.
    """

    path: Path
    bytes: int
    step: str
    counts: dict[str, int]
    problem: str = ""
    damaged: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was ever stored in it; it is filled when it is opened."""
        return self.problem == EMPTY

    @property
    def current(self) -> bool:
        """Whether its schema is this version's; an older one is brought up to date when it is opened."""
        return self.step == STEPS[-1].__name__


def condition(path: Path) -> Condition:
    """Read the file without changing it: whether it is ours and undamaged, its schema, how much is in it.

    StorageError if there is no such file.
    """
    if not path.is_file():
        raise StorageError(f"there is no database {path}")
    size = sum(part.stat().st_size for end in ("", "-wal") if (part := Path(f"{path}{end}")).is_file())
    try:
        with closing(_connect(path, mode="ro")) as connection:
            return _examined(path, size, connection)
    except sqlite3.Error as error:
        problem = _in_the_way(str(error))
        words = problem or f"it is damaged or no SQLite database ({error})"
        return Condition(path, size, "", {}, words, damaged=not problem)


def _in_the_way(error: str) -> str:
    """Why a file cannot be read that may be sound; empty where the file itself is wrong."""
    if "locked" in error or "busy" in error:
        return f"another program keeps it to itself ({error}); stop that one, then try again"
    if "readonly" in error or "unable to open" in error:
        return (
            f"it cannot be opened ({error}); check who may read and write it and its folder, or start the page once, "
            "where a program was killed in the middle of a change"
        )
    if "disk I/O" in error or "full" in error:
        return f"it cannot be read now ({error}); check its disk"
    return ""


def _examined(path: Path, size: int, connection: sqlite3.Connection) -> Condition:
    db = Database(connection, execute_plugins=False)
    found = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        return Condition(path, size, "", {}, f"it is damaged: {'; '.join(found)}", damaged=True)
    tables = set(db.table_names())
    counts = {
        name: connection.execute(f"select count(*) from {name}").fetchone()[0] for name in COUNTED if name in tables
    }
    applied = [step.name for step in migrations().applied(db)]
    step = applied[-1] if applied else ""
    try:
        check_file(db)
    except StorageError as problem:
        return Condition(path, size, step, counts, str(problem))
    return Condition(path, size, step, counts, "" if applied else EMPTY)


def backup(database: Path, output: Path) -> Condition:
    """Copy the database into one file, also while others read and write it; a file appears whole or not at all.

    An older backup gives way to the new one; another file, or a database that is in use, stays as it is.

    StorageError: the database cannot be read or is damaged, or the file cannot be written or is none to replace.
    """
    database, output = database.expanduser().absolute(), output.expanduser().absolute()
    _require(condition(database), "it cannot be backed up")
    with replacing(database, output) as part:
        _require_replaceable(output)
        _copy(database, part)
        _require(condition(part), "the copy cannot be used")
    return condition(output)


def restore(database: Path, source: Path) -> tuple[Condition, Path | None]:
    """Put a backup in the database's place; what it is now, and where the file lies that was there before.

    A copy is checked first; only then the old file, if there is one, is kept as ``<name>.before`` (``.before-2`` ...).

    Raises:
        StorageError: the backup is damaged, another program's or a newer version's; or another program has the
            database open; or a file cannot be written. The database is as it was.
    """
    database, source = database.expanduser().absolute(), source.expanduser().absolute()
    if source.resolve() == database.resolve():
        raise StorageError(f"{source} is the database itself; name a backup")
    _require(condition(source), "it cannot be restored")
    with replacing(source, database, place=False) as part:
        _copy(source, part)
        _require(condition(part), "the copy cannot be used")
        if not database.exists():
            part.replace(database)
            return condition(database), None
        with _alone(database):
            kept = _free_name(database)
            _keep(database, kept)
            for end in ("-wal", "-shm", "-journal"):  # of a file that was damaged; they do not belong to the new one
                Path(f"{database}{end}").unlink(missing_ok=True)
            part.replace(database)
    return condition(database), kept


def _require(found: Condition, words: str) -> None:
    if found.problem:
        raise StorageError(f"{found.path}: {words}: {found.problem}")


def _require_replaceable(output: Path) -> None:
    """StorageError where a file is there that is neither empty nor a backup of this program."""
    if not output.is_file() or not output.stat().st_size:
        return  # what else is in the way is told by what writes
    try:
        with output.open("rb") as stream:
            head = stream.read(20)
    except OSError as error:
        raise StorageError(f"{output} cannot be read ({error}); name another file for the backup") from error
    if head.startswith(b"SQLite format 3\0") and head[18:20] == IN_USE:
        raise StorageError(f"{output} is a database that a program works with, no backup; name another file")
    if problem := condition(output).problem:
        raise StorageError(f"{output} is there already and is no backup ({problem}); name another file")


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=WAIT, isolation_level=None)


def _copy(source: Path, target: Path) -> None:
    """By SQLite's own backup, which sees one state of the file and what still lies in its log."""
    with closing(_connect(source, mode="ro")) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode=delete")  # one file that can be moved about, without a log beside it


@contextmanager
def _alone(database: Path) -> Iterator[None]:
    """Hold the file so that nobody else has it open, also nobody who just looks; StorageError where somebody does.

    Whoever has a file with a write-ahead log open holds a lock that stands in the way of taking the log away.
    """
    with closing(_connect(database, mode="rw")) as connection:
        try:
            connection.execute("PRAGMA journal_mode=delete")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise StorageError(
                    f"another program has {database} open; stop it (app.py, a command), then restore again"
                ) from None
            raise StorageError(f"{database} cannot be held for the moment of its replacement ({error})") from None
        except sqlite3.DatabaseError:  # it is damaged: nobody works with it, and it is kept all the same
            pass
        yield


def _free_name(database: Path) -> Path:
    names = (database.with_name(f"{database.name}.before{'' if n == 1 else f'-{n}'}") for n in range(1, 10_000))
    return next(name for name in names if not name.exists())


def _keep(database: Path, kept: Path) -> None:
    """A second name for the file, so that there is a database under its own name at every moment."""
    try:
        os.link(database, kept)
    except OSError:  # a file system without links
        database.replace(kept)
