"""Every line of the log says which request and which run it belongs to."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import gradio as gr
import pytest
from fastapi.testclient import TestClient
from gradio.routes import App

from mdqa.backends.scripted import ScriptedBackend
from mdqa.registry import method_class
from mdqa.settings import Settings
from tests.ui.helpers import SCRIPTED, WordEncoder, open_scripted, question
from tests.ui.serving import call
from ui.actions import follow, start_runs
from ui.context import Context, offered
from ui.engine import Engine
from ui.guard import guarded
from ui.logs import FORMAT, Whereabouts, log, working_on
from ui.page import Page


class Lines(logging.Handler):
    """What the log would print."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(Whereabouts())
        self.setFormatter(logging.Formatter(FORMAT))
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler = Lines()
    log.addHandler(handler)
    yield handler.found
    log.removeHandler(handler)


def test_a_block_names_its_request_and_its_run(lines: list[str]) -> None:
    with working_on(request="0123456789abcdef"):
        log.error("one")
        with working_on(run="fedcba9876543210"):
            log.error("two")
        threading.Thread(target=log.error, args=("elsewhere",)).start()
    log.error("three")
    ids = [line.split(": ")[0].partition("request=")[2] for line in lines]
    assert sorted(ids) == sorted(["01234567 run=-", "01234567 run=fedcba98", "- run=-", "- run=-"])


def test_tasks_at_the_same_time_do_not_mix_them_up(lines: list[str]) -> None:
    async def one(name: str) -> None:
        with working_on(request=name):
            await asyncio.sleep(0.01)
            await asyncio.to_thread(log.error, name)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(f"task{number}") for number in range(8)))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, all_of_them()).result()
    assert len(lines) == 8
    assert all(f"request={line.rsplit(' ', 1)[1]} " in line for line in lines)


def test_a_fault_in_a_handler_is_found_by_its_reference(tmp_path: Path, lines: list[str]) -> None:
    def fail() -> None:
        raise KeyError("secret")

    with closing(open_scripted(tmp_path, start=False).store) as store:
        with Page(Context(Settings(), store, None, SCRIPTED, ())) as page:  # type: ignore[arg-type]
            gr.Button().click(guarded(fail), None, None)
        with TestClient(App.create_app(page), raise_server_exceptions=False) as client:
            said = call(client, 0, []).json()["error"]
    reference = said.split("reference ")[1][:8]
    [line] = [line for line in lines if reference in line]
    assert "secret" in line and "request=-" not in line and "secret" not in said


def test_a_run_that_fails_is_found_by_its_address(tmp_path: Path, lines: list[str]) -> None:
    def no_profile(method: str, model: str, name: str) -> None:
        raise KeyError("secret")

    with closing(open_scripted(tmp_path, start=False).store) as store:
        engine = Engine(store, lambda model, progress: ScriptedBackend(model=model), WordEncoder, no_profile)
        engine.start(SCRIPTED)
        context = Context(Settings(), store, engine, SCRIPTED, offered(SCRIPTED))
        [run_id] = start_runs(context, question(), {"direct": method_class("direct").Config()}, model=SCRIPTED)
        assert list(follow(context, [run_id], every=0.02))[-1][0].status == "failed"
        engine.close()
    assert any(f"run={run_id[:8]}" in line and "a job failed" in line for line in lines)


def test_a_run_is_found_by_the_request_that_asked_for_it(tmp_path: Path, lines: list[str]) -> None:
    context = open_scripted(tmp_path)
    log.setLevel(logging.INFO)
    try:
        with working_on(request="0123456789"):
            [run_id] = start_runs(context, question(), {"direct": method_class("direct").Config()}, model=SCRIPTED)
        assert list(follow(context, [run_id], every=0.02))[-1][0].status == "ok"
    finally:
        log.setLevel(logging.NOTSET)
        context.close()
    assert any(f"request=01234567 run={run_id[:8]}: waits in line: direct" in line for line in lines)
    for said in ("begins", "ends: ok"):  # in the worker's thread
        assert any(f"request=01234567 run={run_id[:8]}: {said}" in line for line in lines)
    assert not any("river Skerr" in line for line in lines), "a question's text is in the log"
