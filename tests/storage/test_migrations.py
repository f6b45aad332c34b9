"""From nothing, and from every version there was, to the newest schema."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

from storage import migrations
from storage.runs import RunFilter
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


RECORD = '{"id":"old","method":"direct","model":"m","backend":"b","created":"2026-01-01T00:00:00.000+00:00","seed":0}'
MOMENT = "2026-01-01T00:00:00.000+00:00"

ROWS = {
    "m001_runs": [
        "insert into questions values (1, 'h', 'q1', 'Who?', 1, '[\"Curie\"]', '{}')",
        "insert into documents values (1, 'h', 'Title', 'Text')",
        "insert into question_documents values (1, 0, 1, 'd0', 1)",
        "insert into runs (id, created, updated, finished, method, model, status, question, answer, owner_host, "
        f"owner_pid, owner_started, record) values ('old', '{MOMENT}', '', '', 'direct', 'm', 'ok', 1, 'Curie', 'h', "
        f"1, '', '{RECORD}')",
        "insert into events (id, run, kind, at, data) values (7, 'old', 'stage_started', 0.5, '{}')",
    ],
    "m002_attention_maps": [
        "insert into attention_maps (id, run, stage, digest, about, mass, heat) "
        "values (3, 'old', 's', 'd', '{}', x'00', null)"
    ],
    "m003_profiles": [
        "insert into profiles (id, method, model, name, created, record) "
        f"values (5, 'cafe', 'm', 'mine', '{MOMENT}', '{{}}')"
    ],
    "m004_annotations": [
        "insert into annotations (id, token, created, annotator, run, kind, value) "
        f"values (4, 't', '{MOMENT}', 'ann', 'old', 'correct', 'true')"
    ],
    "m005_queues": [
        f"insert into queues (id, name, created, note) values (2, 'Odd ones', '{MOMENT}', 'n')",
        "insert into queue_items (id, queue, run) values (6, 2, 'old')",
        f"insert into queue_log (id, item, present, who, note, created) values (8, 6, 1, 'ann', '', '{MOMENT}')",
    ],
    "m006_studies": [
        "insert into studies (id, kind, base, created, made_by, about) "
        f"values ('s', 'leave_one_out', 'old', '{MOMENT}', 'ann', '{{}}')",
        f"insert into study_runs (id, study, run, key, detail, created) values (9, 's', 'old', 'd0', '', '{MOMENT}')",
    ],
    "m007_run_facets": [
        "update run_facets set benchmark = 'nq', margin = 0.25, version = 1 where run = 'old'",
        f"insert into saved_filters (id, name, filter, made_by, created) values (1, 'Mine', '{{}}', 'ann', '{MOMENT}')",
    ],
    "m008_labels": [
        "insert into queue_settings (id, queue, version, guidelines, overlap, item_order, labels, practice_items, "
        f"made_by, created) values (1, 2, 1, 'Read.', 2, 'as_sent', '[]', '[]', 'ann', '{MOMENT}')",
        "insert into assignments (id, token, item, annotator, swapped, practice, version, state, label, entry, given, "
        f"expires) values (1, 'a', 6, 'ann', 1, 0, 1, 'done', 'first', 1, '{MOMENT}', '{MOMENT}')",
        "insert into labels (id, token, created, action, annotator, queue, item, run, label, evidence, note, version, "
        f"practice, seconds, idle_seconds, swapped) values (1, 'l', '{MOMENT}', 'label', 'ann', 2, 6, 'old', 'first', "
        "'[]', '', 1, 0, 2.5, 0, 1)",
    ],
}
"""Per step, something in every table that it makes. The first rows are the oldest: no step may lose or change them."""


def content(db: Database) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of ours."""
    names = set(db.table_names()) - {"_sqlite_migrations", "sqlite_sequence"}
    return {name: list(db.query(f"select * from {name} order by 1, 2")) for name in names}


def test_every_step_has_rows_that_its_successors_must_keep(tmp_path: Path) -> None:
    assert list(ROWS) == [step.__name__ for step in migrations.STEPS]
    db = Database(sqlite3.connect(tmp_path / "all.db", isolation_level=None))
    for name, statements in ROWS.items():
        migrations.migrate(db, upto=name)
        for statement in statements:
            db.execute(statement)
    assert {name for name, rows in content(db).items() if not rows} == set(), "tables without a row"
    db.close()


@pytest.mark.parametrize("version", ROWS)
def test_from_every_earlier_version_nothing_is_lost(tmp_path: Path, version: str) -> None:
    path = tmp_path / "old.db"
    db = Database(sqlite3.connect(path, isolation_level=None))
    migrations.migrate(db, upto=version)
    for name, statements in ROWS.items():
        for statement in statements:
            db.execute(statement)
        if name == version:
            break
    before = content(db)
    db.close()
    with Store.open(path) as store, store.read() as now:
        after = content(now)
    assert applied(path) == [step.__name__ for step in migrations.STEPS]
    for table, rows in before.items():
        kept = [{key: row[key] for key in rows[0]} for row in after[table]] if rows else []
        assert kept == rows, table
    with Store.open(path) as store:
        old = store.runs.get("old")
        assert (old.answer, old.status, old.question.document("d0").text) == ("Curie", "ok", "Text")
        assert old.question.gold_ids == ("d0",)
        assert [row.id for row in store.runs.list(RunFilter(method="direct", studies=True))] == ["old"]
        store.runs.begin(header("new"))
        store.runs.finish(complete("new"), [attention_map()])
        assert len(store.runs.maps("new")) == 1


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
