"""Many people at once on the scripted backend: the line keeps its order, Stop frees a place, nothing piles up."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mdqa.performance.tab import Layout, Tab
from mdqa.registry import method_class
from storage.runs import RunFilter
from storage.store import Store
from tests.ui.helpers import SCRIPTED, open_scripted, question
from tests.ui.serving import served
from ui.actions import start_runs
from ui.context import Context
from ui.following import LiveRun
from ui.line import REMEMBERED

PEOPLE = 30


def ask(context: Context) -> str:
    [run_id] = start_runs(context, question(), {"direct": method_class("direct").Config()}, model=SCRIPTED)
    return run_id


def until_done(context: Context, ids: list[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = [context.engine.snapshot(run_id) for run_id in ids]
        if all(snapshot is None or snapshot.finished for snapshot in found):
            return
        time.sleep(0.02)
    raise AssertionError("the line does not drain")


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def finished_in_order(context: Context) -> list[str]:
    with context.store.read() as db:
        return [row[0] for row in db.execute("select id from runs where status = 'ok' order by finished, rowid")]


def test_thirty_people_at_once_are_served_in_their_order(tmp_path: Path) -> None:
    context = open_scripted(tmp_path, start=False)
    found: list[str] = []
    people = [threading.Thread(target=lambda: found.append(ask(context))) for _ in range(PEOPLE)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert len(set(found)) == PEOPLE
    places = {run_id: snapshot.place for run_id in found if (snapshot := context.engine.snapshot(run_id))}
    in_line = sorted(found, key=places.__getitem__)
    assert [places[run_id] for run_id in in_line] == list(range(PEOPLE))
    context.engine.start()
    until_done(context, found)
    assert finished_in_order(context) == in_line
    context.close()


def test_stop_frees_the_place_at_once(tmp_path: Path) -> None:
    context = open_scripted(tmp_path, delay=0.05)
    first, second, *rest = [ask(context) for _ in range(5)]
    before = [context.engine.snapshot(run_id) for run_id in rest]
    assert context.engine.stop(second)
    after = [context.engine.snapshot(run_id) for run_id in rest]
    assert all(b and a and a.place < b.place for b, a in zip(before, after, strict=True))
    assert context.store.runs.row(second).status == "cancelled"
    began = time.monotonic()
    assert context.engine.stop(first)
    until_done(context, [first])
    assert time.monotonic() - began < 10  # between two words, not at the end of the reply
    until_done(context, rest)
    context.close()


def test_stop_gets_through_while_many_watch(tmp_path: Path) -> None:
    watchers = 42  # more than the 40 events that Gradio works on at a time by default
    context = open_scripted(tmp_path, queue=64, start=False)
    with served(context) as (_, url):
        layout = Layout.of(url)
        tabs = [Tab(url, layout) for _ in range(watchers)]
        for tab in tabs:
            tab.press("mdqa-run", {"mdqa-methods": ["direct"]})
        until(lambda: context.store.runs.count() == watchers)
        tabs[-1].press("mdqa-stop")
        until(lambda: context.store.runs.count(RunFilter(status="cancelled")) == 1)
        for tab in tabs:
            tab.close()
        context.engine.start()
        context.close()


def live_runs() -> int:
    gc.collect()
    return sum(isinstance(thing, LiveRun) for thing in gc.get_objects())


def ask_and_die(folder: str) -> None:
    """In a process of its own: ask, wait in line, and be killed."""
    ask(open_scripted(Path(folder), start=False))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_waited_is_there_after_a_kill(tmp_path: Path) -> None:
    code = f"from tests.ui.test_load import ask_and_die; ask_and_die({str(tmp_path)!r})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    with Store.open(tmp_path / "runs.db") as store:
        [row] = store.runs.list()
        assert row.status == "interrupted"
        assert store.runs.get(row.id).question == question()  # it can be asked again


def test_nothing_piles_up(tmp_path: Path) -> None:
    context = open_scripted(tmp_path)
    threads, before = threading.active_count(), live_runs()
    for _ in range(5):
        until_done(context, [ask(context) for _ in range(20)])
    assert live_runs() - before <= REMEMBERED + 20  # those of the last round may come on top; the rest is in the store
    assert threading.active_count() <= threads
    context.close()
