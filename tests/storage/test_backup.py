"""Copies of the database and their way back: checked before anything is replaced, and never while it is in use."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from sqlite_utils import Database

from mdqa.errors import ConfigError, StorageError
from storage import migrations
from storage.backup import backup, condition, restore
from storage.store import Store
from tests.storage.builders import complete, header, python


def filled(path: Path, *runs: str) -> Path:
    with Store.open(path) as store:
        for name in runs:
            store.runs.begin(header(name))
            store.runs.finish(complete(name))
            store.annotations.add(name, "correct", True, annotator="ann", token=name)
    return path


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the file."""
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        found = {name: sorted(map(repr, connection.execute(f"select * from {name}"))) for name in names}
    connection.close()
    return found  # type: ignore[return-value]


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    path = filled(tmp_path / "mdqa.db", "one", "two")
    before = rows(path)
    made = backup(path, tmp_path / "out" / "copy.db")
    assert made.counts["runs"] == made.counts["annotations"] == 2 and made.current and not made.problem
    assert sorted(found.name for found in (tmp_path / "out").iterdir()) == ["copy.db"]
    filled(path, "three")
    found, kept = restore(path, tmp_path / "out" / "copy.db")
    assert rows(path) == before and found.counts["runs"] == 2
    assert kept == tmp_path / "mdqa.db.before" and condition(kept).counts["runs"] == 3
    filled(path, "four")
    assert restore(path, tmp_path / "out" / "copy.db")[1] == tmp_path / "mdqa.db.before-2"
    with Store.open(path) as store:
        assert store.runs.get("one").answer == complete("one").answer
    assert not list(tmp_path.glob(".*")) and not list(tmp_path.glob("*-wal"))


def test_a_place_without_a_database_gets_one(tmp_path: Path) -> None:
    backup(filled(tmp_path / "mdqa.db", "one"), tmp_path / "copy.db")
    found, kept = restore(tmp_path / "new" / "mdqa.db", tmp_path / "copy.db")
    assert found.counts["runs"] == 1 and kept is None


def test_a_backup_is_one_state_while_others_write(tmp_path: Path) -> None:
    path, stop = filled(tmp_path / "mdqa.db"), threading.Event()

    def write() -> None:
        with Store.open(path) as store:
            for number in range(500):
                if stop.is_set():
                    return
                with store.write():
                    store.runs.begin(header(f"r{number}"))
                    store.runs.finish(complete(f"r{number}"))
                    store.annotations.add(f"r{number}", "correct", True, annotator="ann", token=str(number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            found = backup(path, tmp_path / f"{number}.db")
            assert found.counts["runs"] == found.counts["annotations"]
    finally:
        stop.set()
        writer.join(60)


LOOKING = """
import sys, time
from storage.store import Store

store = Store.open(sys.argv[1])
print(store.runs.count(), flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_nothing_is_replaced_while_somebody_has_it_open(tmp_path: Path, where: str) -> None:
    path = filled(tmp_path / "mdqa.db", "one")
    backup(path, tmp_path / "copy.db")
    filled(path, "two")
    before = rows(path)
    if where == "here":
        with Store.open(path) as store, pytest.raises(StorageError, match="another program has"):
            assert store.runs.count() == 2  # only looked, and does nothing now
            restore(path, tmp_path / "copy.db")
    else:
        process = python(LOOKING, path)
        try:
            assert process.stdout is not None and process.stdout.readline().strip() == "2"
            with pytest.raises(StorageError, match="another program has"):
                restore(path, tmp_path / "copy.db")
        finally:
            process.kill()
            process.communicate(timeout=60)
    assert rows(path) == before and not path.with_name("mdqa.db.before").exists()
    assert restore(path, tmp_path / "copy.db")[0].counts["runs"] == 1


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    path.write_bytes(content)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('mdqa', 'm999_later', '')"
        )
    connection.close()


def of_another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("create table bookmarks (id integer)")
    connection.close()


def no_database(path: Path) -> None:
    path.write_text("hello " * 1_000, encoding="utf-8")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (damaged, "damaged"),
        (newer, "newer version of mdqa"),
        (of_another_program, "another program's database"),
        (no_database, "no SQLite database"),
        (empty, "it is empty"),
    ],
)
def test_what_cannot_be_used_replaces_nothing(tmp_path: Path, harm: object, reason: str) -> None:
    path = filled(tmp_path / "mdqa.db", *(f"r{n}" for n in range(30)))
    backup(path, tmp_path / "copy.db")
    harm(tmp_path / "copy.db")  # type: ignore[operator]
    before = rows(path)
    assert condition(tmp_path / "copy.db").problem
    with pytest.raises(StorageError, match=reason):
        restore(path, tmp_path / "copy.db")
    with pytest.raises(StorageError, match=reason):
        backup(tmp_path / "copy.db", tmp_path / "again.db")
    assert rows(path) == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["copy.db", "mdqa.db"]


def test_a_damaged_database_is_replaced_and_kept(tmp_path: Path) -> None:
    path = filled(tmp_path / "mdqa.db", "one")
    backup(path, tmp_path / "copy.db")
    no_database(path)
    found, kept = restore(path, tmp_path / "copy.db")
    assert found.counts["runs"] == 1 and kept is not None and kept.read_text(encoding="utf-8").startswith("hello")


def test_an_older_schema_is_restored_and_brought_up_to_date_when_opened(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    db = Database(sqlite3.connect(old, isolation_level=None))
    migrations.migrate(db, upto="m003_profiles")
    db.close()
    found, _ = restore(tmp_path / "mdqa.db", old)
    assert found.step == "m003_profiles" and not found.current and not found.problem
    Store.open(tmp_path / "mdqa.db").close()
    assert condition(tmp_path / "mdqa.db").current


def test_only_a_backup_gives_way_to_a_backup(tmp_path: Path) -> None:
    path, letter, other = filled(tmp_path / "mdqa.db", "one"), tmp_path / "letter.txt", tmp_path / "other.db"
    backup(path, tmp_path / "copy.db")
    with Store.open(path) as store:
        store.runs.begin(header("two"))
    assert backup(path, tmp_path / "copy.db").counts["runs"] == 2
    letter.write_text("Dear Ann")
    with sqlite3.connect(other) as connection:
        connection.execute("create table letters (text)")
    connection.close()
    with Store.open(tmp_path / "used.db"):
        for there in (letter, other, tmp_path / "used.db"):
            before = there.read_bytes()
            with pytest.raises(StorageError, match="name another file"):
                backup(path, there)
            assert there.read_bytes() == before
    (tmp_path / "empty").touch()
    assert backup(path, tmp_path / "empty").counts["runs"] == 2


def test_the_database_is_no_place_for_its_own_copy(tmp_path: Path) -> None:
    path = filled(tmp_path / "mdqa.db", "one")
    with pytest.raises(ConfigError, match="the database itself"):
        backup(path, path)
    with pytest.raises(StorageError, match="the database itself"):
        restore(path, path)
    with pytest.raises(StorageError, match="there is no database"):
        backup(tmp_path / "none.db", tmp_path / "copy.db")
