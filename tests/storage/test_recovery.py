"""A process that dies in the middle of a run leaves what it had, marked interrupted."""

import signal
from pathlib import Path

import pytest

from storage.owners import Owner
from storage.store import Store
from tests.storage.builders import assert_equal_maps, attention_map, complete, header, python, stage

MID_RUN = """if True:
    import sys, time
    from storage.store import Store
    from tests.storage.builders import header, trace
    store = Store.open(sys.argv[1])
    store.runs.begin(header("killed"))
    for event in trace(finished=False):
        store.runs.record("killed", event)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_killed_process_leaves_an_interrupted_run_with_its_stages(tmp_path: Path) -> None:
    path = tmp_path / "mdqa.db"
    process = python(MID_RUN, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]

    with Store.open(path) as store:  # as a second program would while the first still works
        assert store.runs.get("killed").status == "running"
    process.kill()
    process.communicate(timeout=10)

    with Store.open(path) as store:
        result = store.runs.get("killed")
        assert result.status == "interrupted"
        assert result.stages == (stage(),)
        assert (result.cost.llm_calls, result.cost.seconds, result.answer) == (2, 0.8, "")
        assert len(store.runs.events("killed")) == 9
        (kept,) = store.runs.maps("killed")
        assert_equal_maps(kept, attention_map())
        row = store.runs.row("killed")
        assert (row.status, row.llm_calls) == ("interrupted", 2)
        assert store.runs.recover() == 0


def test_runs_of_living_processes_and_finished_runs_are_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        store.runs.begin(header("running"))
        store.runs.begin(header("done"))
        store.runs.finish(complete("done"))
        with Store.open(store.path) as second:
            assert {row.id: row.status for row in second.runs.list()} == {"running": "running", "done": "ok"}


@pytest.mark.parametrize(("updated", "recovered"), [("2020-01-01T00:00:00.000+00:00", 1), ("", 0)])
def test_run_of_another_host_is_dead_after_long_silence(store: Store, updated: str, recovered: int) -> None:
    store.runs.begin(header())
    with store.write() as db:
        db.execute("update runs set owner_host = 'gone.invalid', updated = iif(? = '', updated, ?)", [updated, updated])
    with Store.open(store.path):  # whoever it is, somebody else has the file open
        assert store.runs.row("r1").status == ("interrupted" if recovered else "running")


def test_run_of_another_host_is_dead_where_nobody_else_has_the_file_open(tmp_path: Path) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        store.runs.begin(header())
        with store.write() as db:
            db.execute("update runs set owner_host = 'replaced.invalid'")
    with Store.open(tmp_path / "mdqa.db") as store:  # the next container, which has another name
        assert store.runs.row("r1").status == "interrupted"
        with store.read() as db:
            assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            assert db.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000


def test_run_that_was_given_up_too_early_can_still_finish(store: Store) -> None:
    store.runs.begin(header())
    with store.write() as db:
        db.execute("update runs set owner_started = 'before the restart'")
    assert store.runs.recover() == 1
    assert store.runs.get("r1").status == "interrupted"
    store.runs.finish(complete())
    assert store.runs.get("r1") == complete()


def test_owner_is_written_before_the_work(store: Store) -> None:
    store.runs.begin(header())
    with store.read() as db:
        owner = db.execute("select owner_host, owner_pid, owner_started from runs").fetchone()
    assert Owner(*owner) == Owner.current()
