"""A real server (``python app.py``) and a real browser (an installed Chromium driven by Playwright)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from storage.store import Store
from tests.ui.helpers import scripted_profiles

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
START_SECONDS = 180

LEAVING = (
    "AbortError: signal is aborted",
    "Unexpected error Connection errored out",
    "Unexpected error 404: Not Found",  # the stream of a session that the server has closed in that moment
    "Failed to load resource: net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "TypeError: network error",
)
"""What Gradio's own script logs when a page is left while its event stream is open; it says nothing about ours."""


class Server:
    """``python app.py`` on a free port of this machine, with a database of its own."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self.database = folder / "data" / "runs.db"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until the page answers."""
        environment = {**os.environ, "MDQA_MODEL": self.model, "MDQA_DATABASE": str(self.database)}
        log = (self.folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(self.port)], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                pytest.fail(f"app.py ended with {self._process.returncode}:\n{self.log()}")
            try:
                with urllib.request.urlopen(self.url, timeout=20):  # giving up early leaves the work to the server
                    return
            except OSError:
                time.sleep(0.3)
        pytest.fail(f"no page after {START_SECONDS} s:\n{self.log()}")

    def stop(self) -> None:
        """Stop it as a container is stopped."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def log(self) -> str:
        """What it has written so far."""
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")


def serve(folder: Path, model: str) -> Iterator[Server]:
    """A running server with the profiles of the scripted backend in its database."""
    server = Server(folder, model)
    with Store.open(server.database) as store:
        for profile in scripted_profiles():
            store.profiles.save(profile)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def scripted_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the scripted backend."""
    yield from serve(tmp_path_factory.mktemp("scripted"), "scripted")


@pytest.fixture(scope="module")
def builtin_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the built-in model."""
    yield from serve(tmp_path_factory.mktemp("builtin"), "builtin")


@pytest.fixture(scope="module")
def tiny_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a tiny real model with random weights, read from a folder."""
    from tests.tiny import tiny_model, tiny_tokenizer  # noqa: PLC0415 (imports torch)

    folder = tmp_path_factory.mktemp("tiny")
    tiny_model("llama").save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    yield from serve(folder, str(folder / "model"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """An installed Chromium; skipped with the way to get one where there is none."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("needs Chromium; install it with: apt-get install chromium (or Google Chrome)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1280 x 900 of somebody who was here before; the test fails on any error in its console."""
    seen = "try { localStorage.setItem('mdqa-tour', 'seen'); } catch { /* a page of the browser's own has none */ }"
    yield from watched(browser, seen)


@pytest.fixture
def first_visit(browser: Browser) -> Iterator[Page]:
    """The same for somebody who was never here."""
    yield from watched(browser)


def watched(browser: Browser, script: str = "", expected: tuple[str, ...] = ()) -> Iterator[Page]:
    """A page of a new visitor, with a script that runs before those of the page.

    ``expected``: beginnings of further errors that the test causes.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(script)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    ours = [error for error in errors if not error.startswith((*LEAVING, *expected))]
    assert not ours, ours
