"""The file: where it may be, what it may be, threads and closing."""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdqa.errors import StorageError
from mdqa.records import Cost
from mdqa.trace import RunFinished
from storage.store import Store
from tests.storage.builders import REPOSITORY, complete, header, python, question


def test_open_makes_folders_and_keeps_what_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "mdqa.db"
    with Store.open(path) as store:
        store.runs.begin(header())
        store.runs.finish(complete())
    with Store.open(str(path)) as store:
        assert store.runs.get("r1") == complete()


def test_connections_are_set_up(store: Store) -> None:
    with store.read() as db:
        values = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "foreign_keys")}
        busy = db.execute("PRAGMA busy_timeout").fetchone()[0]
    assert values == {"journal_mode": "wal", "foreign_keys": 1}
    assert busy == 30_000


def test_folder_as_path(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        Store.open(tmp_path)


def test_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"the folder .*file.* cannot be made .*choose another path"):
        Store.open(tmp_path / "file" / "mdqa.db")


@pytest.mark.parametrize("content", [b"hello", b"id,question\n" * 1000])
def test_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.csv"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"notes\.csv is damaged or no SQLite database"):
        Store.open(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table recipes (id integer)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"another program's database \(tables: recipes\)"):
        Store.open(path)
    assert path.read_bytes() == before


def test_newer_database(tmp_path: Path) -> None:
    path = tmp_path / "mdqa.db"
    with Store.open(path) as store, store.write() as db:
        db.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('mdqa', 'm999_holograms', '')"
        )
    with pytest.raises(StorageError, match=r"newer version of mdqa \(it has m999_holograms.*update mdqa"):
        Store.open(path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="mdqa-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX users")
def test_path_without_permission(open_folder: Path) -> None:
    paths = [open_folder / name for name in ("new.db", "old.db", "below/new.db")]
    Store.open(open_folder / "old.db").close()
    (open_folder / "old.db").chmod(0o444)
    open_folder.chmod(0o555)
    code = """if True:
        import os, sys
        from storage.store import Store
        from mdqa.errors import StorageError
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anywhere, so be nobody
        for path in sys.argv[1:]:
            try:
                Store.open(path)
            except StorageError as error:
                print(error)
    """
    process = python(code, *paths)
    text, errors = process.communicate(timeout=60)
    open_folder.chmod(0o755)
    messages = text.splitlines()
    assert len(messages) == 3, errors
    assert all("cannot be" in message and "choose another path" in message for message in messages)
    assert all(str(path.parent) in message for path, message in zip(paths, messages, strict=True))


def test_closed_store_says_so(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "mdqa.db")
    store.close()
    store.close()
    with pytest.raises(StorageError, match="is closed"):
        store.runs.list()
    assert not (tmp_path / "mdqa.db-wal").exists()


def test_closing_waits_for_a_writer(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "mdqa.db")
    inside, go = threading.Event(), threading.Event()

    def work() -> None:
        with store.write() as db:
            inside.set()
            go.wait(10)
            db.execute("insert into documents (hash, title, text) values ('h', 't', 'x')")

    writer, closer = threading.Thread(target=work), threading.Thread(target=store.close)
    writer.start()
    assert inside.wait(10)
    closer.start()
    closer.join(0.2)
    assert closer.is_alive()
    go.set()
    writer.join(10)
    closer.join(10)
    with Store.open(store.path) as again, again.read() as db:
        assert db.execute("select count(*) from documents").fetchone()[0] == 1


def test_write_is_undone_by_an_exception(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as db:
        db.execute("insert into documents (hash, title, text) values ('h', 't', 'x')")
        1 / 0  # noqa: B018
    with store.read() as db:
        assert db.execute("select count(*) from documents").fetchone()[0] == 0


def test_write_inside_read_is_refused(store: Store) -> None:
    with store.read(), pytest.raises(RuntimeError, match="inside a read"), store.write():
        pass
    store.runs.begin(header())
    assert store.runs.count() == 1


def test_read_sees_one_state(store: Store) -> None:
    store.runs.begin(header("r1"))
    with store.read() as db:
        before = db.execute("select count(*) from runs").fetchone()[0]
        other = threading.Thread(target=store.runs.begin, args=(header("r2"),))
        other.start()
        other.join(10)
        assert db.execute("select count(*) from runs").fetchone()[0] == before == 1
    assert store.runs.count() == 2


def test_sqlite_errors_name_the_file(store: Store) -> None:
    with pytest.raises(StorageError, match=r"mdqa\.db refused: no such table: nowhere"), store.write() as db:
        db.execute("insert into nowhere values (1)")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files through /proc")
def test_threads_that_end_leave_no_connection_open(store: Store) -> None:
    def open_files() -> int:
        return sum(
            str(link.readlink()).startswith(str(store.path))
            for link in Path("/proc/self/fd").iterdir()
            if link.is_symlink()
        )

    before = open_files()
    for _ in range(20):
        thread = threading.Thread(target=store.runs.count)
        thread.start()
        thread.join(10)
    assert open_files() <= before + 2


def test_importing_opens_nothing() -> None:
    process = python(
        "import sys, storage.store, storage.export; print('torch' in sys.modules, 'gradio' in sys.modules)"
    )
    text, errors = process.communicate(timeout=60)
    assert text.strip() == "False False", errors
    assert not list(REPOSITORY.glob("*.db"))


def test_full_disk_is_said_and_nothing_is_lost(store: Store) -> None:
    store.runs.begin(header())
    with store.read() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    with store.read() as db:  # as if the disk held nothing more
        db.execute(f"PRAGMA max_page_count={pages}")
    long = question().model_copy(update={"question": "long " * 100_000})
    with pytest.raises(StorageError, match=r"mdqa\.db cannot be written \(database or disk is full\); free some space"):
        store.runs.begin(header("r2", question=long))
    assert [row.id for row in store.runs.list()] == ["r1"]
    assert store.runs.get("r1") == header()


def test_an_end_that_a_full_disk_refused_is_written_when_there_is_room(store: Store) -> None:
    store.runs.begin(header())
    with store.read() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count={pages}")
    end = RunFinished(at=1.0, status="failed", answer="x" * 100_000, cost=Cost(), error=None)
    with pytest.raises(StorageError, match="full"):
        store.runs.record("r1", end)
    store.runs.settle()  # there is no room yet
    assert store.runs.row("r1").status == "running"
    with store.read() as db:
        db.execute("PRAGMA max_page_count=1000000")
    store.runs.settle()
    assert store.runs.row("r1").status == "failed"
    store.runs.settle()
    assert [event.kind for event in store.runs.events("r1")] == ["run_finished"]


def test_damaged_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mdqa.db"
    with Store.open(path) as store:
        store.runs.begin(header())
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StorageError, match="is damaged or no SQLite database"):
        Store.open(path)
