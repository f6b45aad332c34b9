"""The thread that takes snapshots, what its failures look like, and the banner on the page."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mdqa.errors import ConfigError
from mdqa.settings import Settings
from storage.backup import condition
from storage.remotes import FolderRemote
from storage.snapshots import Snapshots
from storage.store import Store
from tests.storage.builders import complete, header
from tests.ui.helpers import open_scripted
from tests.ui.serving import PEOPLE, with_users
from ui.layout import kept
from ui.snapshotting import LATE, Snapshotter, snapshotter
from ui.views.keeping import SnapshotState, keeping


def add(path: Path, run: str) -> None:
    with Store.open(path) as store:
        store.runs.begin(header(run))
        store.runs.finish(complete(run))


def within(seconds: float, true: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return true()


def made(folder: Path, interval: float) -> Snapshotter:
    return Snapshotter(Snapshots(folder / "data" / "mdqa.db", FolderRemote(folder / "remote")), interval)


def test_by_the_clock_at_the_end_and_after_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", tmp_path / "remote"
    keeper = made(tmp_path, 0.05)
    keeper.restore()
    add(path, "one")
    keeper.start()
    assert within(20, lambda: len(list(remote.glob("*.db"))) >= 1)
    with caplog.at_level(logging.ERROR):
        shutil.rmtree(remote)
        remote.write_text("in the way")
        add(path, "two")
        assert within(20, lambda: keeper.state.problem != "")
    assert "no snapshot could be stored" in caplog.text
    remote.unlink()
    assert within(20, lambda: keeper.state.problem == "" and len(list(remote.glob("*.db"))) >= 1)
    add(path, "three")
    keeper.close()
    newest = max(remote.glob("*.db"))
    assert condition(newest).counts["runs"] == 3


def test_work_that_cannot_be_brought_back_is_not_pushed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", tmp_path / "remote"
    remote.write_text("in the way")
    keeper = made(tmp_path, 0.01)
    with caplog.at_level(logging.ERROR):
        keeper.restore()
    assert keeper.state.lost and "earlier work could not be brought back" in caplog.text
    remote.unlink()
    add(path, "new")
    keeper.start()
    time.sleep(0.1)
    keeper.close()
    assert not remote.exists()
    everybody, owner = (keeping(keeper.state, temporary=False, admin=admin) for admin in (False, True))
    assert "a restart may lose it" in everybody and str(remote) not in everybody and str(remote) in owner


def test_a_damaged_snapshot_is_told(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", tmp_path / "remote"
    first = Snapshots(path, FolderRemote(remote))
    for run in ("one", "two"):
        add(path, run)
        assert first.take() is not None
    first.close()
    newest = max(remote.iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    shutil.rmtree(path.parent)
    keeper = made(tmp_path, 60)
    keeper.restore()
    assert condition(path).counts["runs"] == 1
    assert newest.name in keeping(keeper.state, temporary=False, admin=True)
    assert keeping(keeper.state, temporary=False, admin=False) == ""


def test_a_snapshot_that_does_not_end_is_told(tmp_path: Path) -> None:
    now = [0.0]
    snapshots = Snapshots(tmp_path / "mdqa.db", FolderRemote(tmp_path / "remote"))
    keeper = Snapshotter(snapshots, 60, clock=lambda: now[0])
    assert keeping(keeper.state, temporary=False, admin=True) == ""
    now[0] = LATE * 60 + 1
    assert "does not end" in keeping(keeper.state, temporary=False, admin=True)
    assert "3 minutes ago" in keeping(keeper.state, temporary=False, admin=True)


def test_two_programs_with_one_place_are_told(tmp_path: Path) -> None:
    add(tmp_path / "data" / "mdqa.db", "one")
    add(tmp_path / "other.db", "two")
    keeper = made(tmp_path, 0.05)
    keeper.restore()
    theirs = Snapshots(tmp_path / "other.db", FolderRemote(tmp_path / "remote")).take()
    assert theirs is not None
    keeper.start()
    assert within(20, lambda: theirs.name in keeping(keeper.state, temporary=False, admin=True))
    keeper.close()


def test_the_banner_escapes_and_says_what_to_do() -> None:
    evil = SnapshotState("x", problem="<b>broken</b>")
    assert "&lt;b&gt;broken" in keeping(evil, temporary=False, admin=True)
    assert "MDQA_SNAPSHOTS" in keeping(None, temporary=True, admin=False)
    assert keeping(None, temporary=False, admin=True) == ""


def test_only_admins_are_told_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "remote").write_text("in the way")
    with closing(open_scripted(tmp_path, start=False)) as context:
        keeper = made(tmp_path, 60)
        keeper.restore()
        signed_in = replace(with_users(context, tmp_path), snapshots=keeper)
        said = {name: kept(signed_in, SimpleNamespace(username=name)) for name in (*PEOPLE, "")}  # type: ignore[arg-type]
        assert {name for name, words in said.items() if str(tmp_path) in words} == {"ada"}
        assert all("a restart may lose it" in words for words in said.values()), "everybody is told that much"
        space = replace(context, settings=replace(context.settings, space=True))
        assert "temporary" in kept(space, None)
        assert kept(context, None) == ""
        context.engine.start()


def test_settings_of_a_space(tmp_path: Path) -> None:
    space = Settings.from_environment({"SYSTEM": "spaces", "GRADIO_SERVER_PORT": "8000", "SPACES_ZERO_GPU": "true"})
    assert (space.host, space.port, space.temporary, space.zero_gpu) == ("0.0.0.0", 8000, True, True)
    named = {"SYSTEM": "spaces", "MDQA_PORT": "9000", "GRADIO_SERVER_NAME": "127.0.0.1", "MDQA_SNAPSHOTS": "x"}
    settings = Settings.from_environment(named)
    assert (settings.host, settings.port, settings.temporary) == ("127.0.0.1", 9000, False)
    accounts = {"OAUTH_CLIENT_ID": "a", "OAUTH_CLIENT_SECRET": "b", "SPACE_ID": "lin/mdqa"}
    assert Settings.from_environment(named | accounts).admins == ("lin",), "its owner, as it was pushed"
    assert Settings.from_environment(named | accounts | {"MDQA_ADMINS": "ada"}).admins == ("ada",)
    assert Settings.from_environment({"SPACE_ID": "lin/mdqa"} | named).admins == ()
    laptop = Settings.from_environment({"GRADIO_SERVER_NAME": "0.0.0.0", "GRADIO_SERVER_PORT": "1"})
    assert (laptop.host, laptop.port, laptop.temporary) == ("127.0.0.1", 7860, False)
    assert not replace(space, database=Path("/data/mdqa.db")).temporary
    with pytest.raises(ConfigError, match="MDQA_SNAPSHOT_MINUTES"):
        Settings.from_environment({"MDQA_SNAPSHOT_MINUTES": "0"})
    assert snapshotter(laptop) is None
    with pytest.raises(ConfigError, match="no place"):
        snapshotter(replace(laptop, snapshots="hf://models/x/y"))
