"""The doctor's report: what is broken is broken, what is only worth knowing is not, and nothing is changed."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.commands.doctor import NEEDED
from mdqa.users import User, hashed, write_users
from storage.remotes import FolderRemote
from storage.snapshots import Snapshots
from storage.store import Store
from tests.serving import serving
from tests.storage.builders import complete, header


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDQA_DATABASE", str(tmp_path / "data" / "mdqa.db"))
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))
    for name in (
        "MDQA_USER",
        "MDQA_PASSWORD",
        "MDQA_USERS",
        "MDQA_MODEL",
        "MDQA_MODELS",
        "MDQA_HOST",
        "MDQA_SNAPSHOTS",
    ):
        monkeypatch.delenv(name, raising=False)


def report(capsys: pytest.CaptureFixture[str], status: int) -> dict[str, list[tuple[str, str]]]:
    """State and text of the findings by part."""
    capsys.readouterr()
    assert main(["doctor", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert found["works"] is (status == 0)
    parts: dict[str, list[tuple[str, str]]] = {}
    for finding in found["findings"]:
        parts.setdefault(finding["part"], []).append((finding["state"], finding["text"]))
    return parts


def test_a_new_machine_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, 0)
    parts = {"python", "package", "settings", "device", "model", "database", "snapshots", "disk", "address", "sign-in"}
    assert parts == set(found)
    assert found["model"] == [("note", "builtin is fetched when first used")]
    assert "is made at the first start" in found["database"][0][1]
    assert not (tmp_path / "data").exists() and not (tmp_path / "cache").exists()
    assert main(["doctor"]) == 0
    said = capsys.readouterr()
    assert "ok   database" in said.out and "everything that is needed works" in said.err


def test_the_database_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data" / "mdqa.db"
    with Store.open(path) as store:
        store.runs.begin(header("one"))
        store.runs.finish(complete("one"))
    [sound, schema] = report(capsys, 0)["database"]
    assert sound[0] == "ok" and "sound, 1 runs" in sound[1] and schema[0] == "ok"
    path.write_bytes(b"hello " * 1_000)
    [broken] = report(capsys, 1)["database"]
    assert broken[0] == "bad" and "restore a backup" in broken[1]
    path.write_bytes(b"")
    assert report(capsys, 0)["database"][0][0] == "note"
    path.unlink()
    path.mkdir()
    assert "is a folder" in report(capsys, 1)["database"][0][1]


def test_a_sound_database_that_somebody_keeps_to_himself_is_not_to_be_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data" / "mdqa.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode=exclusive")
        holder.execute("BEGIN EXCLUSIVE")
        [held] = report(capsys, 1)["database"]
    assert held[0] == "bad" and "another program keeps it" in held[1] and "restore" not in held[1]


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="needs a user whom permissions stop")
def test_a_database_that_may_not_be_read_is_not_to_be_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data" / "mdqa.db"
    Store.open(path).close()
    path.chmod(0)
    [closed] = report(capsys, 1)["database"]
    assert closed[0] == "bad" and "check who may read" in closed[1] and "restore" not in closed[1]


def test_the_place_of_the_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(capsys, 0)["snapshots"] == [("ok", "none wanted")]
    monkeypatch.setenv("MDQA_SNAPSHOTS", str(tmp_path / "bucket"))
    assert "is made with the first one" in report(capsys, 0)["snapshots"][0][1] and not (tmp_path / "bucket").exists()
    path = tmp_path / "data" / "mdqa.db"
    with Store.open(path) as store:
        store.runs.begin(header("one"))
    assert Snapshots(path, FolderRemote(tmp_path / "bucket")).take() is not None
    assert report(capsys, 0)["snapshots"][0][1].startswith(f"1 in {tmp_path / 'bucket'}, the newest of 20")
    monkeypatch.setenv("MDQA_SNAPSHOTS", str(tmp_path / "missing" / "bucket"))
    assert "is the bucket mounted?" in report(capsys, 1)["snapshots"][0][1]
    monkeypatch.setenv("MDQA_SNAPSHOTS", "s3://bucket")
    assert "no place for snapshots" in report(capsys, 1)["snapshots"][0][1]


def test_models_that_are_served_or_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        monkeypatch.setenv("MDQA_MODEL", server.url)
        monkeypatch.setenv("MDQA_MODELS", f"other@{server.url},scripted")
        [there, offered, _] = report(capsys, 0)["model"]
    assert there[0] == "ok" and "answers: tiny" in there[1] and offered[0] == "note"
    assert report(capsys, 1)["model"][0][0] == "bad", "the server is gone"
    monkeypatch.setenv("MDQA_MODELS", "")
    monkeypatch.setenv("MDQA_MODEL", str(tmp_path / "weights"))
    assert "no such folder" in report(capsys, 1)["model"][0][1]
    monkeypatch.setenv("MDQA_MODEL", "vllm:some/model")
    monkeypatch.setenv("MDQA_VLLM_PYTHON", str(tmp_path / "python"))
    assert "cannot be started" in report(capsys, 1)["model"][0][1]


def test_an_address_in_use_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("MDQA_PORT", str(taken.getsockname()[1]))
        assert report(capsys, 0)["address"][0][0] == "note"
    monkeypatch.setenv("MDQA_HOST", "192.0.2.1")  # of nobody's machine
    assert report(capsys, 1)["address"][0][0] == "bad"


def test_what_is_looked_for_is_what_is_installed() -> None:
    lines = (Path(__file__).parents[2] / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(NEEDED) <= {line.partition("=")[0] for line in lines}


def test_settings_that_are_wrong_or_mistyped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDQA_DATABSE", "x")
    assert ("note", "MDQA_DATABSE is no setting and does nothing") in report(capsys, 0)["settings"]
    monkeypatch.setenv("MDQA_PORT", "x")
    monkeypatch.setenv("MDQA_LOG_LEVEL", "loud")
    found = report(capsys, 1)
    assert [text for state, text in found["settings"] if state == "bad"] == [
        "MDQA_PORT='x' is not a whole number",
        "MDQA_LOG_LEVEL='loud' is not one of DEBUG, INFO, WARNING, ERROR",
    ]
    assert "is made at the first start" in found["database"][0][1], "the rest is looked at all the same"
    monkeypatch.delenv("MDQA_PORT")
    monkeypatch.delenv("MDQA_LOG_LEVEL")
    monkeypatch.setenv("MDQA_DEVICE", "abacus")
    assert "unknown device 'abacus'" in report(capsys, 1)["device"][0][1]


def test_who_may_sign_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, 0)["sign-in"] == [("ok", "nobody has to sign in")]
    monkeypatch.setenv("MDQA_HOST", "0.0.0.0")
    assert report(capsys, 0)["sign-in"][0][0] == "note"
    monkeypatch.setenv("MDQA_USERS", str(tmp_path / "users.json"))
    assert report(capsys, 1)["sign-in"][0][0] == "bad"
    write_users(tmp_path / "users.json", [User("ann", "annotator", hashed("correct horse"))])
    (tmp_path / "users.json").chmod(0o644)
    said = report(capsys, 0)["sign-in"]
    assert [state for state, _ in said] == ["ok", "note", "note"] and "is an admin" in said[1][1]
    write_users(tmp_path / "users.json", [User("ada", "admin", hashed("correct horse"))])
    assert [state for state, _ in report(capsys, 0)["sign-in"]] == ["ok"]
