"""The doctor's report: what is broken is broken, what is only worth knowing is not, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.users import User, hashed, write_users
from storage.store import Store
from tests.storage.builders import complete, header


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDQA_DATABASE", str(tmp_path / "data" / "mdqa.db"))
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))
    for name in ("MDQA_USER", "MDQA_PASSWORD", "MDQA_USERS", "MDQA_MODEL", "MDQA_HOST"):
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
    assert {"python", "package", "settings", "device", "model", "database", "disk", "sign-in"} == set(found)
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


def test_settings_that_are_wrong_or_mistyped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDQA_DATABSE", "x")
    assert ("note", "MDQA_DATABSE is no setting and does nothing") in report(capsys, 0)["settings"]
    monkeypatch.setenv("MDQA_PORT", "x")
    assert report(capsys, 1)["settings"] == [("bad", "MDQA_PORT='x' is not a whole number")]
    monkeypatch.delenv("MDQA_PORT")
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
    assert [state for state, _ in report(capsys, 0)["sign-in"]] == ["ok", "note"]
