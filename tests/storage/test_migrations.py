"""From nothing, and from version 1, to the newest schema."""

import sqlite3
import threading
from pathlib import Path

import pytest
from sqlite_utils import Database

from storage import migrations
from storage.store import Store
from tests.storage.builders import attention_map, complete, header, python


def applied(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        names = connection.execute("select name from _sqlite_migrations where migration_set = 'mdqa' order by id")
        found = [name for (name,) in names]
    connection.close()
    return found


def test_numbers_are_consecutive() -> None:
    numbers = [int(step.__name__[1:4]) for step in migrations.STEPS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    Store.open(path).close()
    assert applied(path) == [step.__name__ for step in migrations.STEPS]
    Store.open(path).close()
    assert applied(path) == [step.__name__ for step in migrations.STEPS]


def test_version_1_to_newest_keeps_the_runs(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = Database(sqlite3.connect(path, isolation_level=None))
    migrations.migrate(db, upto="m001_runs")
    assert db.table_names() == [
        "_sqlite_migrations", "documents", "questions", "question_documents", "runs", "events",
    ]  # fmt: skip
    db.execute("insert into questions values (1, 'h', 'q1', 'Who?', 1, '[\"Curie\"]', '{}')")
    db.execute("insert into documents values (1, 'h', 'Title', 'Text')")
    db.execute("insert into question_documents values (1, 0, 1, 'd0', 1)")
    record = (
        '{"id":"old","method":"direct","model":"m","backend":"b","created":"2026-01-01T00:00:00.000+00:00","seed":0}'
    )
    db.execute(
        "insert into runs (id, created, updated, finished, method, model, status, question, answer, owner_host, "
        "owner_pid, owner_started, record) values ('old', '2026-01-01T00:00:00.000+00:00', '', '', 'direct', 'm', "
        "'ok', 1, 'Curie', 'h', 1, '', ?)",
        [record],
    )
    db.close()

    with Store.open(path) as store:
        old = store.runs.get("old")
        assert (old.answer, old.status, old.question.document("d0").text) == ("Curie", "ok", "Text")
        assert old.question.gold_ids == ("d0",)
        store.runs.begin(header("new"))
        store.runs.finish(complete("new"), [attention_map()])
        assert len(store.runs.maps("new")) == 1
        assert store.runs.maps("old") == []
    assert applied(path) == [step.__name__ for step in migrations.STEPS]


def test_a_step_that_fails_leaves_no_trace_of_itself(tmp_path: Path) -> None:
    db = Database(sqlite3.connect(tmp_path / "x.db", isolation_level=None))
    migrations.migrate(db, upto="m001_runs")
    db.execute("create table profiles (in_the_way integer)")  # m003 will stumble over it; m002 goes through
    with pytest.raises(sqlite3.OperationalError, match="profiles already exists"):
        migrations.migrate(db)
    names = [step.name for step in migrations.migrations().applied(db)]
    assert names == ["m001_runs", "m002_attention_maps"]
    assert not db.conn.in_transaction
    db.execute("drop table profiles")
    migrations.migrate(db)
    assert len(migrations.migrations().applied(db)) == len(migrations.STEPS)
    db.close()


def test_many_threads_open_a_new_file_at_once(tmp_path: Path) -> None:
    for attempt in range(5):
        path, start, errors = tmp_path / f"{attempt}.db", threading.Barrier(6), []

        def work(path: Path = path, start: threading.Barrier = start, errors: list[Exception] = errors) -> None:
            start.wait(10)
            try:
                Store.open(path).close()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert applied(path) == [step.__name__ for step in migrations.STEPS]


def test_two_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = "import sys; from storage.store import Store; Store.open(sys.argv[1]).close()"
    processes = [python(code, tmp_path / "mdqa.db") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert applied(tmp_path / "mdqa.db") == [step.__name__ for step in migrations.STEPS]
