"""Many threads and several processes: nothing is lost, nothing fails."""

import threading
from collections import Counter
from pathlib import Path

from mdqa.trace import Notice
from storage.store import Store
from tests.storage.builders import attention_map, call, complete, header, python

THREADS, WRITES = 8, 50


def test_eight_threads_with_fifty_writes_each(store: Store) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        try:
            start.wait(10)
            store.runs.begin(header(f"r{number}"))
            for index in range(WRITES):
                store.runs.record(f"r{number}", call(index, at=float(index)))
                if index % 10 == 0:
                    store.runs.list()
                    store.runs.get(f"r{number}")
            store.runs.finish(complete(f"r{number}"), [attention_map(seed=number)])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    assert store.runs.count() == THREADS
    for number in range(THREADS):
        events = store.runs.events(f"r{number}")
        assert events == [call(index, at=float(index)) for index in range(WRITES)]
        assert store.runs.get(f"r{number}") == complete(f"r{number}")
        assert len(store.runs.maps(f"r{number}")) == 1


def test_many_threads_write_to_one_run(store: Store) -> None:
    store.runs.begin(header())

    def work(number: int) -> None:
        for index in range(WRITES):
            store.runs.record("r1", Notice(message=f"{number}"))
            store.runs.record("r1", call(index, at=1.0))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert Counter(store.runs.get("r1").notices) == {str(number): WRITES for number in range(4)}
    assert store.runs.row("r1").llm_calls == store.runs.get("r1").cost.llm_calls == 4 * WRITES


def test_two_processes(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from storage.store import Store
        from tests.storage.builders import call, complete, header
        name = sys.argv[2]
        with Store.open(sys.argv[1]) as store:
            for run in range(5):
                store.runs.begin(header(f"{name}{run}"))
                for index in range(20):
                    store.runs.record(f"{name}{run}", call(index))
                store.runs.finish(complete(f"{name}{run}"))
    """
    processes = [python(code, tmp_path / "mdqa.db", name) for name in ("a", "b")]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    with Store.open(tmp_path / "mdqa.db") as store:
        assert sorted(store.runs.ids()) == [f"{name}{run}" for name in ("a", "b") for run in range(5)]
        assert all(len(store.runs.events(name)) == 20 for name in store.runs.ids())
        with store.read() as db:
            assert db.execute("select count(*) from documents").fetchone()[0] == 3
