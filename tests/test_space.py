"""The program as a Hugging Face Space runs it: a copy of the repository, its variables, ``python app.py``, a disk that
does not last."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from storage.backup import condition
from storage.store import Store
from tests.storage.builders import complete, header

ROOT = Path(__file__).parents[1]
START_SECONDS = 180
NOT_PUSHED = {"tests", "__pycache__"}


def tracked() -> list[str]:
    """What would be pushed: the files that git knows or would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):  # the tree without its history
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return [str(path) for path in paths if not any(part.startswith(".") for part in path.parts)]
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository where a Space has it; nothing of the working tree's own folders is beside it."""
    app = tmp_path_factory.mktemp("container") / "home" / "user" / "app"
    for name in tracked():
        if not NOT_PUSHED & set(Path(name).parts):
            (app / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, app / name)
    return app


class Space:
    """A container. ``home``: what is lost with it."""

    def __init__(self, app: Path, folder: Path, **variables: str) -> None:
        self.app, self.home, self.temp, self.log = app, folder / "home", folder / "tmp", folder / "log.txt"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MDQA_", "GRADIO_", "XDG_"))}
        self.environment = kept | {
            "HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "SYSTEM": "spaces",
            "SPACE_ID": "ann/mdqa",
            "GRADIO_SERVER_NAME": "127.0.0.1",  # where a Space has 0.0.0.0
            "GRADIO_SERVER_PORT": str(self.port),
            "GRADIO_ANALYTICS_ENABLED": "False",
            "MDQA_MODEL": "scripted",
            **variables,
        }
        self.environment.pop("PYTHONPATH", None)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Path:
        return self.home / ".local" / "share" / "mdqa" / "mdqa.db"

    def start(self, *, home: bool = True) -> None:
        """Start it and wait for the page."""
        self.temp.mkdir(parents=True, exist_ok=True)
        if home:
            self.home.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "app.py"], cwd=self.app, env=self.environment, stdout=log, stderr=log
            )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            try:
                httpx.get(self.url, timeout=20)
                return
            except httpx.TransportError:
                time.sleep(0.1)
        pytest.fail(f"no page after {START_SECONDS} s:\n{self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(40)
        finally:
            self.process.kill()
            self.process.wait(10)


@pytest.fixture
def space(pushed: Path, tmp_path: Path) -> Iterator[Space]:
    """Not started yet; ended whatever happens."""
    made = Space(pushed, tmp_path)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.kill()
            made.process.wait(10)


def front_matter(app: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((app / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return found


def assert_no_faults(log: str) -> None:
    """No traceback but that of Gradio's own reloading, which misses a package that Spaces bring."""
    assert log.count("Traceback") == log.count("`spaces` package is required to run hot-reloading"), log


def test_the_layout_is_a_spaces(pushed: Path) -> None:
    front = front_matter(pushed)
    assert front["sdk"] == "gradio" and (pushed / front["app_file"]).is_file()
    assert (pushed / "requirements.txt").is_file() and not (pushed / "Dockerfile").exists()
    assert all(path.stat().st_size < 10 * 2**20 for path in pushed.rglob("*") if path.is_file()), "needs LFS"
    home = re.compile(r"(?<![\w.$~])/(?:home|Users|root|work|mnt)/\w")
    for path in pushed.rglob("*.py"):
        assert not home.search(path.read_text(encoding="utf-8")), f"{path} has an absolute path"


def test_it_starts_and_says_that_its_disk_does_not_last(space: Space) -> None:
    space.home = space.temp.parent / "file" / "home"  # a home that nobody can make
    space.home.parent.write_text("no folder")
    space.environment |= {"HOME": str(space.home)}
    space.start(home=False)
    with httpx.Client(base_url=space.url, timeout=20) as client:
        answer = client.get("/")
        assert answer.status_code == 200 and "What is done here is temporary" in answer.text
        assert "https://huggingface.co" in answer.headers["content-security-policy"], "it cannot be framed by the hub"
        [database] = space.temp.rglob("mdqa.db")
        assert database.with_name("mdqa.db-wal").exists()
        assert client.get(f"/gradio_api/file={database}").status_code == 403
    assert not list(space.app.rglob("*.db"))
    assert space.end(signal.SIGTERM) == 0
    log = space.log.read_text()
    assert "this Space forgets everything" in log
    assert_no_faults(log)


@pytest.mark.slow
def test_the_snapshot_at_the_end_has_everything_and_a_kill_loses_what_came_after(space: Space, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    space.environment["MDQA_SNAPSHOTS"] = str(bucket)
    space.start()
    with Store.open(space.database) as store:
        for run in ("one", "two"):
            store.runs.begin(header(run))
            store.runs.finish(complete(run))
        store.annotations.add("one", "correct", True, annotator="ann", token="t")
        store.runs.begin(header("going on"))
    assert space.end(signal.SIGTERM) == 0, space.log.read_text()
    [snapshot] = bucket.iterdir()
    assert condition(snapshot).counts["runs"] == 3

    space.start()  # the same container once more; then it is killed before the next snapshot
    with Store.open(space.database) as store:
        store.runs.begin(header("later"))
        store.runs.finish(complete("later"))
        store.annotations.add("two", "correct", False, annotator="ann", token="u")
    space.end(signal.SIGKILL)
    assert list(bucket.iterdir()) == [snapshot]
    shutil.rmtree(space.home)
    shutil.rmtree(space.temp)

    space.start()  # another container
    assert "temporary" not in httpx.get(space.url, timeout=20).text
    with Store.open(space.database) as store:
        assert {row.id: row.status for row in store.runs.list()} == {
            "one": "ok",
            "two": "ok",
            "going on": "interrupted",
        }
        assert store.runs.get("one") == complete("one")
        assert [label.run for label in store.annotations.list()] == ["one"]
    assert httpx.get(f"{space.url}/?run=one", timeout=20).status_code == 200
    assert space.end(signal.SIGTERM) == 0, space.log.read_text()
    assert_no_faults(space.log.read_text())
