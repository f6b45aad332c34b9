"""What people are told of an error: our own texts, escaped; of everything else a reference and nothing more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import gradio as gr
import pytest

from mdqa.errors import ConfigError, StorageError
from storage.runs import UnknownRun
from ui.guard import explained, guarded

EVIL = "<img src=x onerror=alert(1)>"


def test_our_own_errors_are_shown_as_text() -> None:
    def handler() -> None:
        raise ConfigError(f"the option {EVIL} is unknown")

    with pytest.raises(gr.Error) as caught:
        guarded(handler)()
    assert "<img" not in caught.value.message and "&lt;img" in caught.value.message


def test_faults_leave_a_reference_and_a_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def handler() -> Iterator[int]:
        yield 1
        raise KeyError("secret")

    with caplog.at_level(logging.ERROR), pytest.raises(gr.Error) as caught:
        list(guarded(handler)())
    assert "secret" not in caught.value.message and "reference" in caught.value.message
    assert "secret" in caplog.text
    reference = caught.value.message.split("reference ")[1][:8]
    assert reference in caplog.text


def test_handlers_that_wait_are_guarded_too() -> None:
    async def handler() -> AsyncIterator[int]:
        yield 1
        raise ConfigError("no")

    async def drain() -> None:
        async for _ in guarded(handler)():
            pass

    # in a thread of its own: the browser tests leave a running loop in this one
    with ThreadPoolExecutor(1) as pool, pytest.raises(gr.Error, match="no"):
        pool.submit(asyncio.run, drain()).result()


def test_paths_of_the_server_are_not_shown() -> None:
    assert "/srv" not in explained(StorageError("the database /srv/runs.db is locked"))
    assert "/srv" not in explained(UnknownRun("there is no run 'x' in /srv/runs.db"))
