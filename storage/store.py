"""The database file: opening it, one connection per thread, and transactions.

Any thread may use a :class:`Store` at any time. Writers take SQLite's write lock at once (BEGIN IMMEDIATE): a
transaction that begins as a reader and turns into a writer fails with "database is locked" as soon as there are two.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.annotations import AnnotationStore
from storage.assignments import AssignmentStore
from storage.labels import LabelStore
from storage.migrations import check_file, migrate
from storage.profiles import ProfileStore
from storage.questions import QuestionStore
from storage.queue_settings import QueueSettingsStore
from storage.queues import QueueStore
from storage.runs import RunStore
from storage.saved_filters import SavedFilterStore
from storage.studies import StudyStore

BUSY_SECONDS = 30.0
"""How long a writer waits for a writer of another program before it gives up."""


class _Handle:
    """One thread's connection. ``lock`` is held while it is used, so that closing never happens in the middle."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.writing = False
        self.lock = threading.RLock()
        # The handle lives in a thread-local: when its thread ends, the connection is closed with it.
        self.close = weakref.finalize(self, db.close)
        self.close.atexit = False  # another thread may be in the middle of a query then


class Store:
    """All that is kept, in one SQLite file (:meth:`open`): ``runs``, ``questions``, ``profiles``, ``studies`` ..."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = RunStore(self)
        self.saved_filters = SavedFilterStore(self)
        self.questions = QuestionStore(self)
        self.profiles = ProfileStore(self)
        self.annotations = AnnotationStore(self)
        self.queues = QueueStore(self)
        self.queue_settings = QueueSettingsStore(self)
        self.assignments = AssignmentStore(self)
        self.labels = LabelStore(self)
        self.studies = StudyStore(self)
        self._local = threading.local()
        self._handles: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self._guard = threading.Lock()
        # Threads of this program queue here instead of polling for SQLite's lock.
        self._writer = threading.RLock()
        self._closed = False

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the file, making it and its folders if need be, bring its schema up to date, mark dead runs.

        Raises:
            StorageError: the path cannot be written, is a folder, is no database, or is a newer version's.
        """
        path = Path(path).expanduser().absolute()
        if path.is_dir():
            raise StorageError(f"the database {path} is a folder; give the path of a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"the folder {path.parent} for the database cannot be made ({error.strerror}); choose another path"
            ) from error
        store = cls(path)
        try:
            store._prepare()
            store.runs.recover()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the connections of all threads, each as soon as its present use ends. Later use is a StorageError."""
        with self._guard:
            self._closed = True
            handles = list(self._handles)
        for handle in handles:
            with handle.lock:
                handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def write(self) -> Iterator[Database]:
        """A write transaction: kept when the block ends, undone when it raises. A block inside a block joins it."""
        with self._writer, self._use() as handle:
            db = handle.db
            if handle.writing:
                yield db
                return
            if db.conn.in_transaction:
                raise RuntimeError("a write transaction cannot begin inside a read transaction; begin with write()")
            db.execute("BEGIN IMMEDIATE")
            handle.writing = True
            try:
                yield db
                db.commit()
            except BaseException:
                db.rollback()
                raise
            finally:
                handle.writing = False

    @contextmanager
    def read(self) -> Iterator[Database]:
        """A read transaction: every query in the block sees the same state. Readers and writers do not wait."""
        with self._use() as handle:
            db = handle.db
            if db.conn.in_transaction:
                yield db
                return
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.rollback()

    def alone(self) -> bool:
        """Whether no other connection of any program or container has the file open; ask before there are threads.

        Whoever has a file with a write-ahead log open holds a lock that stands in the way of taking the log away.
        """
        with self._writer, self._use() as handle:
            handle.db.execute("PRAGMA busy_timeout=0")
            try:
                return bool(handle.db.execute("PRAGMA journal_mode=delete").fetchone()[0] == "delete")
            except sqlite3.OperationalError:
                return False
            finally:
                handle.db.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
                _enable_wal(handle.db)

    @contextmanager
    def _use(self) -> Iterator[_Handle]:
        """This thread's connection; SQLite's errors become StorageErrors that name the file."""
        try:
            handle = getattr(self._local, "handle", None) or self._connect()
            with handle.lock:
                if self._closed:
                    raise StorageError(f"the database {self.path} is closed")
                yield handle
        except sqlite3.Error as error:
            raise StorageError(f"the database {self.path} {_explain(error)}") from error

    def _connect(self) -> _Handle:
        # check_same_thread is off for close() only; between threads a connection is never shared.
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db = Database(connection, execute_plugins=False)
        db.execute("PRAGMA foreign_keys=on")
        db.execute("PRAGMA synchronous=full")
        handle = _Handle(db)
        with self._guard:
            if self._closed:
                handle.close()
                raise StorageError(f"the database {self.path} is closed")
            self._handles.add(handle)
        self._local.handle = handle
        return handle

    def _prepare(self) -> None:
        with self._use() as handle:
            try:
                check_file(handle.db)
                _enable_wal(handle.db)
                migrate(handle.db)
            except StorageError as error:
                raise StorageError(f"the database {self.path} cannot be used: {error}") from None


def _enable_wal(db: Database) -> None:
    """Turn on the write-ahead log. SQLite does not always wait for another opener here, so try again."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.enable_wal()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _explain(error: sqlite3.Error) -> str:
    """SQLite's words with the way out."""
    text = str(error)
    if "locked" in text:
        return f"is held by another program for more than {BUSY_SECONDS:.0f} seconds ({text}); close that program"
    if "readonly" in text or "unable to open" in text:
        return f"cannot be opened for writing ({text}); check the permissions or choose another path"
    if "not a database" in text or "malformed" in text:
        return f"is damaged or no SQLite database ({text}); choose another file or restore a copy"
    if "full" in text or "disk I/O" in text:
        return f"cannot be written ({text}); free some space on its disk"
    return f"refused: {text}"
