"""Queues: a run is in a queue once, whoever sends it from wherever; nothing that was entered is ever changed."""

import threading
from pathlib import Path

import pytest

from mdqa.errors import StorageError
from storage.export import export
from storage.queues import MAX_NAME, MAX_NOTE, MAX_QUEUE_NAME, UnknownQueue
from storage.runs import UnknownRun
from storage.store import Store
from tests.storage.builders import complete, header, python

HOSTILE = "<b>O'Brien\x00</b>\ud800\"; drop table queue_log --"


def keep(store: Store, *run_ids: str) -> None:
    for run_id in run_ids:
        store.runs.begin(header(run_id))
        store.runs.finish(complete(run_id))


def runs_in(store: Store, queue: str) -> list[str]:
    return [item.run for item in store.queues.items(queue)]


def test_a_run_is_in_a_queue_once_and_the_first_sender_stays(store: Store) -> None:
    keep(store, "r1", "r2")
    assert store.queues.send("r1", "To look at", "ann", " they disagree ") is True
    assert store.queues.send("r1", "To look at", "bob", "again") is False
    assert store.queues.send("r1", " to  LOOK at", "bob") is False  # the same name to a person
    assert store.queues.send("r2", "To look at", "bob") is True
    assert store.queues.send("r1", "Hard ones", "bob") is True
    first, second = store.queues.items("To look at")
    assert (first.run, first.added_by, first.note, first.queue) == ("r1", "ann", "they disagree", "To look at")
    assert (second.run, second.added_by, second.note) == ("r2", "bob", "")
    assert first.created.endswith("+00:00")
    assert [(queue.name, queue.items) for queue in store.queues.queues()] == [("Hard ones", 1), ("To look at", 2)]
    assert [item.queue for item in store.queues.of_run("r1")] == ["To look at", "Hard ones"]
    found = store.queues.of_runs(["r1", "r2", "nobody"])
    assert {run: len(items) for run, items in found.items()} == {"r1": 2, "r2": 1}
    assert store.queues.of_run("nobody") == []


def test_taking_out_and_putting_back_are_entries(store: Store) -> None:
    keep(store, "r1", "r2")
    store.queues.send("r1", "q", "ann", "first")
    store.queues.send("r2", "q", "ann")
    (item, _) = store.queues.items("q")
    assert store.queues.remove("r1", "q", "bob", "not a disagreement") is True
    assert store.queues.remove("r1", "q", "bob") is False
    assert runs_in(store, "q") == ["r2"] and store.queues.of_run("r1") == []
    assert [queue.items for queue in store.queues.queues()] == [1]
    assert store.queues.send("r1", "q", "eve", "second thoughts") is True
    (back, _) = store.queues.items("q")
    assert (back.id, back.added_by, back.note) == (item.id, "eve", "second thoughts")
    log = [(entry.run, entry.present, entry.who, entry.note) for entry in store.queues.log("q")]
    assert log == [
        ("r1", True, "ann", "first"),
        ("r2", True, "ann", ""),
        ("r1", False, "bob", "not a disagreement"),
        ("r1", True, "eve", "second thoughts"),
    ]
    assert store.queues.log() == store.queues.log("Q")


def test_queues_are_made_with_a_note_and_may_be_empty(store: Store) -> None:
    assert store.queues.queues() == []
    assert store.queues.make("Conflicts", "sources that contradict each other") is True
    assert store.queues.make("conflicts", "another note") is False
    (queue,) = store.queues.queues()
    assert (queue.name, queue.note, queue.items) == ("Conflicts", "sources that contradict each other", 0)
    assert store.queues.items("Conflicts") == store.queues.log("Conflicts") == []


def test_pages_of_a_queue_follow_each_other(store: Store) -> None:
    ids = [f"r{number}" for number in range(7)]
    keep(store, *ids)
    for run_id in ids:
        store.queues.send(run_id, "q", "ann")
        store.queues.send(run_id, "another", "ann")
    store.queues.remove("r2", "q", "ann")
    pages = [[item.run for item in store.queues.items("q", offset, 4)] for offset in (0, 4, 8)]
    assert pages == [["r0", "r1", "r3", "r4"], ["r5", "r6"], []]
    with store.read() as db:
        plan = db.execute("explain query plan select id from queue_items where queue = 1 order by id limit 4 offset 4")
        words = " ".join(row[3] for row in plan)
    assert "queue_items_queue" in words and "TEMP B-TREE" not in words


def test_what_cannot_be_kept_is_refused(store: Store) -> None:
    keep(store, "r1")
    for run_id in ("", "nobody", HOSTILE):
        with pytest.raises(UnknownRun, match="may have been deleted"):
            store.queues.send(run_id, "q", "ann")
    assert store.queues.queues() == []  # not even the queue was made
    for name in ("", " \n ", "n" * (MAX_QUEUE_NAME + 1)):
        with pytest.raises(StorageError, match="the queue's name has"):
            store.queues.send("r1", name, "ann")
    for who in ("", "\x00", "a" * (MAX_NAME + 1)):
        with pytest.raises(StorageError, match="the person's name has"):
            store.queues.send("r1", "q", who)
    with pytest.raises(StorageError, match="the note has 2,001 characters"):
        store.queues.send("r1", "q", "ann", "n" * (MAX_NOTE + 1))
    for call in (store.queues.items, store.queues.log):
        with pytest.raises(UnknownQueue, match="there is no queue 'q'; there is: none yet"):
            call("q")
    store.queues.make("other")
    with pytest.raises(UnknownQueue, match="there is: 'other'"):
        store.queues.remove("r1", "q", "ann")
    assert store.queues.remove("r1", "other", "ann") is False
    assert store.queues.log() == []


def test_hostile_text_is_kept_as_text(store: Store) -> None:
    keep(store, "r1")
    assert store.queues.send("r1", HOSTILE, HOSTILE, HOSTILE)
    assert not store.queues.send("r1", HOSTILE, "ann")
    (item,) = store.queues.of_run("r1")
    assert item.note == item.added_by == item.queue == HOSTILE.replace("\x00", "").replace("\ud800", "\ufffd")


def test_entries_are_never_changed_and_a_run_is_not_deleted_from_under_them(store: Store) -> None:
    keep(store, "r1", "r2")
    store.queues.send("r1", "q", "ann")
    store.queues.send("r2", "q", "ann")
    with pytest.raises(StorageError, match="an entry is never changed"), store.write() as db:
        db.execute("update queue_log set who = 'eve'")
    with pytest.raises(StorageError, match="'r1' is not deleted: people left 1 place in a queue on it"):
        store.runs.delete("r1")
    store.annotations.add("r1", "correct", True, annotator="ann")
    with pytest.raises(StorageError, match="people left 1 label and 1 place in a queue on it"):
        store.runs.delete("r1")
    (gone, _) = store.queues.items("q")
    store.runs.delete("r1", labels=True)
    assert runs_in(store, "q") == ["r2"] and [entry.run for entry in store.queues.log()] == ["r2"]
    keep(store, "r1")
    assert store.queues.send("r1", "q", "ann")
    assert store.queues.items("q")[1].id > gone.id


def test_many_threads_send_one_run_at_once(store: Store) -> None:
    keep(store, "r1")
    start, new = threading.Barrier(8), []

    def send(number: int) -> None:
        start.wait(10)
        new.append(store.queues.send("r1", "q", f"person {number}"))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(new) == [False] * 7 + [True]
    assert len(store.queues.items("q")) == len(store.queues.log()) == 1


def test_two_processes_send_the_same_runs(store: Store) -> None:
    ids = [f"r{number}" for number in range(20)]
    keep(store, *ids)
    code = """if True:
        import sys
        from storage.store import Store
        with Store.open(sys.argv[1]) as store:
            print(sum(store.queues.send(f"r{number}", "q", sys.argv[2]) for number in range(20)))
    """
    processes = [python(code, store.path, name) for name in ("a", "b")]
    new = 0
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        new += int(output)
    assert new == 20
    assert sorted(runs_in(store, "q")) == sorted(ids) and len(store.queues.log()) == 20


def test_a_snapshot_holds_the_queues(store: Store, tmp_path: Path) -> None:
    keep(store, "r1")
    store.queues.send("r1", "q", "ann", "why")
    export(store, tmp_path / "copy.db", format="sqlite")
    with Store.open(tmp_path / "copy.db") as copy:
        assert copy.queues.items("q") == store.queues.items("q")
        assert copy.queues.log() == store.queues.log()
