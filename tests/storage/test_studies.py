"""Studies: one per run and settings, their members in order, and what goes when a run is deleted."""

import threading

import pytest

from mdqa.errors import StorageError
from storage.runs import UnknownRun
from storage.store import Store
from storage.studies import UnknownStudy
from tests.storage.builders import complete, header, python, question

HOSTILE = "<b>O'Brien\x00</b>\ud800\"; drop table studies --"


def keep(store: Store, *run_ids: str, **fields: object) -> None:
    for run_id in run_ids:
        store.runs.begin(header(run_id, **fields))
        store.runs.finish(complete(run_id, **fields))


def test_a_study_is_there_once_for_equal_settings(store: Store) -> None:
    keep(store, "r1", "r2")
    first = store.studies.begin("position_sweep", "r1", "ann", {"positions": (1, 2), "methods": {"direct": {}}})
    again = store.studies.begin("position_sweep", "r1", "bob", {"methods": {"direct": {}}, "positions": [1, 2]})
    other = store.studies.begin("position_sweep", "r1", "bob", {"methods": {"direct": {}}, "positions": [1, 3]})
    elsewhere = store.studies.begin("leave_one_out", "r2", "bob")
    assert again == first and first.by == "ann" and first.about == {"positions": [1, 2], "methods": {"direct": {}}}
    assert store.studies.get(first.id) == first
    assert store.studies.of_run("r1") == [other, first] and store.studies.of_run("nobody") == []
    assert store.studies.list() == [elsewhere, other, first]
    assert store.studies.list(limit=1, offset=1) == [other]


def test_the_latest_run_of_a_key_counts_and_the_log_keeps_all(store: Store) -> None:
    keep(store, "r1", "b", "c")
    store.runs.begin(header("a"))
    store.runs.finish(complete("a", status="failed"))
    study = store.studies.begin("leave_one_out", "r1", "ann")
    for run, key in (("a", "d0"), ("b", "d1"), ("c", "d0")):
        entered = store.studies.add(study.id, run, key, {"document": key})
        assert (entered.run, entered.key, entered.detail, entered.study) == (run, key, {"document": key}, study.id)
    assert [(m.key, m.run, m.status) for m in store.studies.members(study.id)] == [
        ("d0", "c", "ok"),
        ("d1", "b", "ok"),
    ]
    assert [m.run for m in store.studies.log(study.id)] == ["a", "b", "c"]
    assert store.studies.log(study.id)[0].status == "failed"
    found = store.studies.with_member("b")
    assert found == study and store.studies.with_member("r1") is None
    with pytest.raises(StorageError, match="a member of a study already"):
        store.studies.add(study.id, "b", "d2")


def test_what_is_not_there_is_said(store: Store) -> None:
    keep(store, "r1")
    study = store.studies.begin("leave_one_out", "r1", "ann")
    for name in ("", "nobody", HOSTILE):
        with pytest.raises(UnknownRun):
            store.studies.begin("leave_one_out", name, "ann")
        with pytest.raises(UnknownRun):
            store.studies.add(study.id, name, "d0")
        for look in (store.studies.get, store.studies.members, store.studies.log):
            with pytest.raises(UnknownStudy):
                look(name)
    with pytest.raises(UnknownStudy):
        store.studies.add("nobody", "r1", "d0")
    with pytest.raises(StorageError, match="there is no study 'guess'"):
        store.studies.begin("guess", "r1", "ann")  # type: ignore[arg-type]
    for person in ("", " ", "n" * 201):
        with pytest.raises(StorageError, match="the person's name has"):
            store.studies.begin("leave_one_out", "r1", person)


def test_hostile_text_is_kept_as_text(store: Store) -> None:
    keep(store, "r1", "a")
    study = store.studies.begin("leave_one_out", "r1", HOSTILE, {"x": HOSTILE})
    member = store.studies.add(study.id, "a", HOSTILE, {HOSTILE: HOSTILE})
    clean = HOSTILE.replace("\x00", "").replace("\ud800", "\ufffd")
    assert (study.by, study.about, member.key, member.detail) == (clean, {"x": clean}, clean, {clean: clean})


def test_nothing_is_changed(store: Store) -> None:
    keep(store, "r1", "a")
    study = store.studies.begin("leave_one_out", "r1", "ann")
    store.studies.add(study.id, "a", "d0")
    for sql in ("update studies set made_by = 'eve'", "update study_runs set key = 'other'"):
        with pytest.raises(StorageError, match="is never changed"), store.write() as db:
            db.execute(sql)


def test_a_deleted_member_is_missing_and_a_deleted_base_takes_all_with_it(store: Store) -> None:
    keep(store, "r1", "r2")
    for name, run in (("q-a", "a"), ("q-b", "b"), ("q-c", "c")):
        keep(store, run, question=question(name))
    study = store.studies.begin("leave_one_out", "r1", "ann")
    for run in ("a", "b", "c"):
        store.studies.add(study.id, run, run)
    store.runs.delete("b")
    assert [member.run for member in store.studies.members(study.id)] == ["a", "c"]
    store.annotations.add("c", "correct", True, annotator="ann")
    store.runs.delete("r1")
    with pytest.raises(UnknownStudy):
        store.studies.get(study.id)
    assert store.runs.ids() == ["c", "r2"] or store.runs.ids() == ["r2", "c"]  # people left something on c
    assert store.studies.with_member("c") is None
    with store.read() as db:
        names = {name for (name,) in db.execute("select name from questions")}
    assert names == {"q1", "q-c"}


def test_look_ups_use_indexes(store: Store) -> None:
    queries = {
        "select id from studies where base = 'r' order by created desc, rowid desc": "studies_base",
        "select id from studies order by created desc, rowid desc limit 50": "studies_created",
        "select id from studies where base = 'r' and kind = 'k' and about = 'a'": "sqlite_autoindex_studies",
        "select key from study_runs where study = 's' order by id": "study_runs_study",
        "select study from study_runs where run = 'r'": "sqlite_autoindex_study_runs",
    }
    with store.read() as db:
        for sql, index in queries.items():
            words = " ".join(row[3] for row in db.execute(f"explain query plan {sql}"))
            assert index in words and "TEMP B-TREE" not in words and "SCAN study_runs" not in words, (sql, words)


def test_many_threads_ask_for_one_study(store: Store) -> None:
    keep(store, "r1")
    start, found = threading.Barrier(6), []

    def ask(number: int) -> None:
        start.wait(10)
        found.append(store.studies.begin("leave_one_out", "r1", f"person {number}").id)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6 and len(set(found)) == 1 and len(store.studies.list()) == 1


def test_a_killed_program_leaves_the_study_as_far_as_it_was(store: Store) -> None:
    keep(store, "r1", "a")
    study = store.studies.begin("leave_one_out", "r1", "ann")
    store.studies.add(study.id, "a", "d0")
    code = """if True:
        import os, sys
        from storage.store import Store
        from tests.storage.builders import header
        store = Store.open(sys.argv[1])
        with store.write():
            store.runs.begin(header("killed"))
            store.studies.add(sys.argv[2], "killed", "d1")
        os.kill(os.getpid(), 9)
    """
    process = python(code, store.path, study.id)
    process.communicate(timeout=60)
    with Store.open(store.path) as again:
        states = {member.key: member.status for member in again.studies.members(study.id)}
    assert states == {"d0": "ok", "d1": "interrupted"}
