"""Snapshots: whole, only when something changed, back into an empty database, and what happens where that fails."""

from __future__ import annotations

import inspect
import os
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import HfApi

from mdqa.errors import ConfigError, StorageError
from storage.backup import condition
from storage.export import LEFT
from storage.remotes import FolderRemote, HubRemote, Remote, remote_of
from storage.snapshots import Snapshot, Snapshots, digest_of, too_old
from storage.store import Store
from tests.storage.builders import complete, header


def add(path: Path, *runs: str) -> None:
    with Store.open(path) as store:
        for name in runs:
            store.runs.begin(header(name))
            store.runs.finish(complete(name))


def runs(path: Path) -> dict[str, str]:
    with Store.open(path) as store:
        return {row.id: row.status for row in store.runs.list()}


class Hub:
    """The data sets of a hub, as folders; every call has to fit the signature that the installed library has."""

    def __init__(self, folder: Path, *, private: bool = True) -> None:
        self.folder, self.private, self.commits = folder, private, 0

    def _fits(self, name: str, *values: Any, **named: Any) -> dict[str, Any]:
        assert named.pop("repo_type") == "dataset"
        return dict(inspect.signature(getattr(HfApi, name)).bind(self, *values, repo_type="dataset", **named).arguments)

    def create_repo(self, *values: Any, **named: Any) -> None:
        given = self._fits("create_repo", *values, **named)
        assert given["private"] and given["exist_ok"]
        (self.folder / given["repo_id"]).mkdir(parents=True, exist_ok=True)

    def repo_info(self, *values: Any, **named: Any) -> SimpleNamespace:
        assert (self.folder / self._fits("repo_info", *values, **named)["repo_id"]).is_dir()
        return SimpleNamespace(private=self.private)

    def list_repo_files(self, *values: Any, **named: Any) -> list[str]:
        place = self.folder / self._fits("list_repo_files", *values, **named)["repo_id"]
        return [path.name for path in place.iterdir()] + [".gitattributes"]

    def create_commit(self, *values: Any, **named: Any) -> None:
        given = self._fits("create_commit", *values, **named)
        self.commits += 1
        for operation in given["operations"]:
            path = self.folder / given["repo_id"] / operation.path_in_repo
            if source := getattr(operation, "path_or_fileobj", None):
                shutil.copyfile(source, path)
            else:
                path.unlink()

    def hf_hub_download(self, *values: Any, **named: Any) -> str:
        given = self._fits("hf_hub_download", *values, **named)
        return shutil.copy(self.folder / given["repo_id"] / given["filename"], given["local_dir"])


@pytest.fixture(params=["folder", "hub"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    """Both kinds of place."""
    if request.param == "folder":
        return FolderRemote(tmp_path / "remote")
    return HubRemote("ann/kept", Hub(tmp_path / "hub"))


def place(remote: Remote) -> Path:
    """Where the files really lie."""
    return remote.folder if isinstance(remote, FolderRemote) else remote._api.folder / "ann/kept"  # type: ignore[attr-defined]


def test_there_and_back(tmp_path: Path, remote: Remote) -> None:
    path = tmp_path / "data" / "mdqa.db"
    snapshots = Snapshots(path, remote, kept=2, days=0)
    assert snapshots.restore().snapshot is None
    add(path)
    assert snapshots.take() is None, "an empty database was stored"
    add(path, "one")
    first = snapshots.take()
    assert first is not None and snapshots.take() is None, "nothing changed"
    with Store.open(path) as store:
        store.runs.begin(header("going on"))
        second = snapshots.take()
        assert second is not None and second.name > first.name
        assert snapshots.take() is None
    add(path, "three")
    third = snapshots.take()
    assert third is not None
    names = [name for name in remote.names() if Snapshot.read(name)]
    assert names == [second.name, third.name], "the newest two are kept"
    snapshots.close()

    shutil.rmtree(path.parent)  # another container
    third_file = place(remote) / third.name
    third_file.write_bytes(third_file.read_bytes()[:-5000])
    later = Snapshots(path, remote, kept=2, days=0)
    found = later.restore()
    assert found.snapshot == second and found.damaged == (third.name,)
    assert runs(path) == {"one": "ok", "going on": "interrupted"}
    assert later.strangers == ()
    again = later.take()
    assert again is None or again.name > third.name
    add(path, "four")
    newest = later.take()
    assert newest is not None and newest.name > third.name
    later.close()
    assert not list(path.parent.glob("*.snapshot")) and not list(path.parent.glob(".*.snapshot*"))
    assert {entry.suffix for entry in place(remote).iterdir()} == {".db"}, "half a file was left"


def test_restarting_without_a_change_stores_nothing_new(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "one")
    assert Snapshots(path, remote).take() is not None
    shutil.rmtree(path.parent)
    second = Snapshots(path, remote)
    assert second.restore().snapshot is not None
    with Store.open(path):
        assert second.take() is None
    second.close()
    assert len(remote.names()) == 1


def test_a_database_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "old")
    assert Snapshots(path, remote).take() is not None
    path.unlink()
    add(path, "new")
    assert Snapshots(path, remote).restore().snapshot is None
    assert runs(path) == {"new": "ok"}
    path.unlink()
    add(path)  # a schema and nothing else
    assert Snapshots(path, remote).restore().snapshot is not None
    assert runs(path) == {"old": "ok"}
    path.write_bytes(b"")
    assert Snapshots(path, remote).restore().snapshot is not None
    assert runs(path) == {"old": "ok"} and not list(path.parent.glob("*.before*"))


def test_one_of_several_programs_restores(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "old")
    assert Snapshots(path, remote).take() is not None
    shutil.rmtree(path.parent)
    barrier = threading.Barrier(4)

    def begin(_: int) -> bool:
        barrier.wait(10)
        return Snapshots(path, remote).restore().snapshot is not None

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(begin, range(4))) == [False, False, False, True]
    assert runs(path) == {"old": "ok"}


def test_the_newest_stay_and_the_last_one_of_each_day() -> None:
    taken = [f"202601{day:02}T{hour:02}0000000000Z" for day in range(1, 13) for hour in (6, 12, 18)]
    there = [Snapshot(moment, "0" * 8, "0" * 32) for moment in taken]
    gone = too_old(there, kept=4, days=7)
    assert [one.taken[6:11] for one in there if one not in gone] == [
        *(f"{day:02}T18" for day in range(5, 11)),
        *("11T12", "11T18", "12T06", "12T12", "12T18"),
    ]
    assert too_old(there[-4:], kept=4, days=7) == [] and too_old(there, kept=4, days=0) == there[:-4]


def test_another_programs_snapshots_are_seen_and_kept(tmp_path: Path) -> None:
    remote = FolderRemote(tmp_path / "remote")
    add(tmp_path / "a.db", "a")
    add(tmp_path / "b.db", "b")
    ours, others = Snapshots(tmp_path / "a.db", remote, kept=1, days=0), Snapshots(tmp_path / "b.db", remote)
    assert ours.take() and not ours.strangers
    theirs = others.take()
    assert theirs is not None
    add(tmp_path / "a.db", "more")
    mine = ours.take()
    assert mine is not None and ours.strangers == (theirs.name,)
    assert remote.names() == sorted([theirs.name, mine.name])


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "missing" / "remote")
    add(path, "one")
    snapshots = Snapshots(path, remote)
    with pytest.raises(StorageError, match=r"there is no folder .*missing.*mount the bucket"):
        snapshots.take()
    remote.folder.parent.mkdir()
    first = snapshots.take()
    assert first is not None
    add(path, "two")
    path.with_name("kept").write_bytes(path.read_bytes())
    snapshots.close()
    for end in ("-wal", "-shm"):  # from a log that is left, SQLite would put the file together again
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError):
        snapshots.take()
    assert remote.names() == [first.name] and condition(remote.folder / first.name).counts["runs"] == 1


def test_without_a_sound_snapshot_nothing_is_begun(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "one")
    snapshot = Snapshots(path, remote).take()
    assert snapshot is not None
    (remote.folder / snapshot.name).write_bytes(b"half")
    shutil.rmtree(path.parent)
    with pytest.raises(StorageError, match=r"all snapshots .* are damaged.*move them away"):
        Snapshots(path, remote).restore()
    assert not path.exists()


def test_a_snapshot_whose_first_bytes_are_damaged_is_passed_over(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    snapshots = Snapshots(path, remote)
    for run in ("one", "two"):
        add(path, run)
        assert snapshots.take() is not None
    snapshots.close()
    newest = remote.folder / max(remote.names())
    newest.write_bytes(b"\0" * 100 + newest.read_bytes()[100:])  # which its digest leaves out
    shutil.rmtree(path.parent)
    assert Snapshots(path, remote).restore().damaged == (newest.name,)
    assert runs(path) == {"one": "ok"}


def test_the_snapshot_of_a_newer_version_is_not_passed_over(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "one")
    first = Snapshots(path, remote).take()
    assert first is not None
    newer = tmp_path / "newer.db"
    shutil.copyfile(remote.folder / first.name, newer)
    with closing(sqlite3.connect(newer, isolation_level=None)) as connection:
        connection.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('mdqa', 'm999_later', '')"
        )
    remote.put(newer, Snapshot("29990101T000000000000Z", "89abcdef", digest_of(newer)).name)
    shutil.rmtree(path.parent)
    with pytest.raises(StorageError, match=r"newer version of mdqa .*update mdqa"):
        Snapshots(path, remote).restore()
    assert not path.exists() and len(remote.names()) == 2


def test_half_files_of_killed_programs_go_and_those_of_others_stay(tmp_path: Path) -> None:
    path, remote = tmp_path / "data" / "mdqa.db", FolderRemote(tmp_path / "remote")
    add(path, "one")
    remote.folder.mkdir()
    stored = ".mdqa-20260101T000000000000Z-00000000-" + "0" * 32 + ".db.89abcdef.part"
    data = (".mdqa.db.01234567.snapshot", "..mdqa.db.01234567.snapshot.89abcdef.part-journal")
    left = [remote.folder / stored, *(path.with_name(name) for name in data)]
    others = [path.with_name(".other.db.01234567.snapshot"), remote.folder / ".mine.part"]
    going_on = path.with_name(".mdqa.db.fedcba98.snapshot")  # of another program, now
    for file in (*left, *others, going_on):
        file.write_bytes(b"half")
    for file in (*left, *others):
        os.utime(file, (0, time.time() - 2 * LEFT))
    assert Snapshots(path, remote).take() is not None
    assert [file for file in left if file.exists()] == []
    assert all(file.exists() for file in (*others, going_on))


@pytest.mark.parametrize("name", ["README.md", "mdqa-20261399T000000000000Z-00000000-" + "0" * 32 + ".db", "mdqa.db"])
def test_other_files_are_no_snapshots(name: str) -> None:
    assert Snapshot.read(name) is None


def test_places(tmp_path: Path) -> None:
    assert remote_of("") is None
    folder, hub = remote_of(str(tmp_path)), remote_of("hf://datasets/ann/kept")
    assert isinstance(folder, FolderRemote) and folder.folder == tmp_path
    assert isinstance(hub, HubRemote) and hub.repository == "ann/kept"
    for wrong in ("hf://datasets/ann", "hf://ann/kept", "s3://bucket", "hf://datasets/../x/y"):
        with pytest.raises(ConfigError, match="no place for snapshots"):
            remote_of(wrong)


def test_a_data_set_that_is_public_is_refused(tmp_path: Path) -> None:
    hub = Hub(tmp_path, private=False)
    with pytest.raises(StorageError, match="public"):
        HubRemote("ann/kept", hub).names()
    assert hub.commits == 0
    with pytest.raises(StorageError, match="HF_TOKEN"):
        HubRemote("ann/kept", SimpleNamespace()).names()
