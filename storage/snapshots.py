"""Snapshots of the database in another place, for disks that do not last, and their way back into an empty database.

The database itself stays on a local disk: its write-ahead log needs locks and shared memory, which network file
systems do not have. A snapshot is a whole copy (:mod:`storage.backup`), whose name says when it was taken, by which
program, and what is in it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock
from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from mdqa.errors import StorageError
from storage.backup import backup, condition, restore
from storage.export import remove_left
from storage.remotes import Remote

KEPT = 10
"""The newest snapshots that are kept; of the older ones, the last one of each day stays ..."""
DAYS = 7
"""... for so many days with one. The others are removed when a new one is stored."""

TAKEN = "%Y%m%dT%H%M%S%fZ"
HEADER = 100
"""Bytes at the beginning of a SQLite file that change without its contents: counters, the kind of its log."""


@dataclass(frozen=True, order=True)
class Snapshot:
    """What a name says: the moment (UTC; names sort by it), the program, the beginning of the contents' SHA-256."""

    taken: str
    program: str
    digest: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"mdqa-{self.taken}-{self.program}-{self.digest}.db"

    @property
    def when(self) -> datetime:
        """When it was taken."""
        return datetime.strptime(self.taken, TAKEN).replace(tzinfo=UTC)

    @classmethod
    def read(cls, name: str) -> Snapshot | None:
        """The snapshot of a name; None for another file's."""
        found = re.fullmatch(r"mdqa-(\d{8}T\d{12}Z)-([0-9a-f]{8})-([0-9a-f]{32})\.db", name, re.ASCII)
        try:
            return cls(*found.groups()) if found and datetime.strptime(found[1], TAKEN) else None
        except ValueError:  # digits that are no moment
            return None


@dataclass(frozen=True)
class Restored:
    """What a start brought back: nothing where the database holds something or there was no snapshot."""

    snapshot: Snapshot | None = None
    damaged: tuple[str, ...] = ()
    """Names of newer snapshots that could not be used."""


class Snapshots:
    """The snapshots of one database in one place. Any thread may call; one works at a time."""

    def __init__(self, database: Path, remote: Remote, *, kept: int = KEPT, days: int = DAYS) -> None:
        self.database = database.expanduser().absolute()
        self.remote = remote
        self.strangers: tuple[str, ...] = ()  # stored by others since this program began: two write to one place
        self._kept, self._days = kept, days
        self._program = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._before: frozenset[str] | None = None  # what lay there when this program began
        self._last: Snapshot | None = None  # of this program, or the one it began with
        self._watch: sqlite3.Connection | None = None
        self._seen = -1

    def restore(self) -> Restored:
        """Put the newest sound snapshot in the place of a database that is absent or holds nothing.

        Of several programs that begin with one database, one does; the others wait for it. Runs that were going on when
        the snapshot was taken are interrupted ones.

        Raises:
            StorageError: the place cannot be read, or there are snapshots and none can be used.
        """
        self._folder()
        with self._lock, FileLock(self.database.with_name(f".{self.database.name}.restoring")):
            there = self._look()
            if not self._holds_nothing():
                return Restored()
            damaged: list[str] = []
            for snapshot in reversed(there):
                with self._part() as part:
                    self.remote.get(snapshot.name, part)
                    found = condition(part)
                    if digest_of(part) != snapshot.digest or found.damaged:
                        damaged.append(snapshot.name)
                        continue
                    if found.problem:
                        raise StorageError(f"the newest snapshot cannot be used: {found.problem}")
                    _interrupt(part)
                    _, empty = restore(self.database, part)
                    if empty is not None:
                        empty.unlink()
                self._last = snapshot
                return Restored(snapshot, tuple(damaged))
            if damaged:
                raise StorageError(
                    f"all snapshots in {self.remote.where} are damaged ({', '.join(damaged)}); move them away to begin "
                    "with an empty database"
                )
            return Restored()

    def take(self) -> Snapshot | None:
        """Store a snapshot; None where nothing changed since the last one. Saves go on meanwhile.

        StorageError where the database cannot be read or the snapshot not be stored; what lies there is as it was.
        """
        with self._lock:
            there = self._look()
            changes = self._changes()
            known = self._last if self._last in there else None
            if known is not None and changes == self._seen:
                return None
            if not there and self._holds_nothing():
                return None
            with self._part() as part:
                backup(self.database, part)
                digest = digest_of(part)
                if known is not None and known.digest == digest:
                    self._seen = changes
                    return None
                snapshot = Snapshot(_moment(there), self._program, digest)
                own = [one for one in there if one.name not in self.strangers]
                self.remote.put(
                    part, snapshot.name, [one.name for one in too_old([*own, snapshot], self._kept, self._days)]
                )
            self._last, self._seen = snapshot, changes
            return snapshot

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    def _look(self) -> list[Snapshot]:
        """What lies there, oldest first; notes what others have stored since the first look."""
        there = sorted(snapshot for name in self.remote.names() if (snapshot := Snapshot.read(name)) is not None)
        if self._before is None:
            self._before = frozenset(one.name for one in there)
        self.strangers = tuple(
            one.name for one in there if one.program != self._program and one.name not in self._before
        )
        return there

    def _changes(self) -> int:
        """A number that is another one after every change of the database by whomever."""
        try:
            if self._watch is None:
                address = f"{self.database.as_uri()}?mode=ro"
                self._watch = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            raise StorageError(f"the database {self.database} cannot be read ({error})") from error

    def _holds_nothing(self) -> bool:
        """Whether there is no database, or no row in any of its tables."""
        if not self.database.exists():
            return True
        try:
            with closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as connection:
                names = set(Database(connection, execute_plugins=False).table_names())
                kept = names - {Migrations.migrations_table, "sqlite_sequence"}
                return not any(connection.execute(f'select 1 from "{name}" limit 1').fetchone() for name in kept)
        except sqlite3.Error:  # damaged or another program's: the start says so, and nothing is put in its place
            return False

    @contextmanager
    def _part(self) -> Iterator[Path]:
        """A file beside the database, from where nothing is served; gone when the block ends."""
        name = re.escape(self.database.name)
        remove_left(
            self.database.parent, rf"\.{{1,2}}{name}\.[0-9a-f]{{8}}\.snapshot(\.[0-9a-f]{{8}}\.part)?(-journal)?"
        )
        part = self.database.with_name(f".{self.database.name}.{secrets.token_hex(4)}.snapshot")
        try:
            yield part
        finally:
            for end in ("", "-journal"):
                Path(f"{part}{end}").unlink(missing_ok=True)

    def _folder(self) -> None:
        try:
            self.database.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"the folder {self.database.parent} cannot be made ({error.strerror})") from error


def too_old(snapshots: Sequence[Snapshot], kept: int, days: int) -> list[Snapshot]:
    """Those that go, of snapshots in their order: beside the newest, the last one of each of so many days stays."""
    new = max(len(snapshots) - kept, 0)
    last_of_day = {one.when.date(): one for one in snapshots[:new]}
    stay = set(sorted(last_of_day.values())[max(len(last_of_day) - days, 0) :])
    return [one for one in snapshots[:new] if one not in stay]


def digest_of(path: Path) -> str:
    """The beginning of the SHA-256 of a database's contents, as 32 hexadecimal digits; without its counters."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(HEADER)
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()[:32]


def _moment(there: list[Snapshot]) -> str:
    """Now; a little after the newest that lies there where a clock is wrong, so that the newest sorts last."""
    now = datetime.now(UTC)
    if there and now <= there[-1].when:
        now = there[-1].when + timedelta(microseconds=1)
    return now.strftime(TAKEN)


def _interrupt(path: Path) -> None:
    """Runs that were going on when the copy was made belong to a program that is gone."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("update runs set status = 'interrupted' where status = 'running'")
