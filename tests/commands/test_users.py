"""The users file from the command line: never a password among the arguments, never one on the screen."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.users import matches, read_users


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MDQA_USERS", str(tmp_path / "users.json"))
    return tmp_path / "users.json"


def users(monkeypatch: pytest.MonkeyPatch, *arguments: str, password: str = "") -> int:
    """The command with a password on standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\n"))
    return main(["users", *arguments])


def test_people_come_change_and_go(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users(monkeypatch, "add", "ann", "--role", "annotator", password="correct horse") == 0
    assert capsys.readouterr().err.endswith(": 1 person\n")
    assert users(monkeypatch, "add", " Zoe\u0308 ", "--role", "admin", password="another one") == 0
    assert users(monkeypatch, "password", "ann", password="battery staple") == 0
    assert users(monkeypatch, "role", "ann", "--role", "analyst") == 0
    assert users(monkeypatch, "list") == 0
    said = capsys.readouterr()
    assert "ann\n  role: analyst" in said.out and "Zoë\n  role: admin" in said.out
    for secret in ("horse", "staple", "another", "scrypt"):
        assert secret not in said.out + said.err
    assert matches(read_users(path)["ann"].password, "battery staple")
    assert users(monkeypatch, "remove", "Zoë") == 0
    assert list(read_users(path)) == ["ann"]


@pytest.mark.parametrize(
    ("arguments", "password", "reason"),
    [
        (["add", "ann", "--role", "admin"], "long enough", "is in the file already"),
        (["add", "bo", "--role", "admin"], "short", "it has 5 characters"),
        (["add", "b\x00", "--role", "admin"], "long enough", "cannot be seen"),
        (["add", "bo", "--role", "boss"], "long enough", "invalid choice"),
        (["remove", "bo"], "", "bo: is not in"),
        (["password", "ann"], "", "it has 0 characters"),
        (["list", "--file", "/none/users.json"], "", "cannot be read"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    password: str,
    reason: str,
) -> None:
    assert users(monkeypatch, "add", "ann", "--role", "annotator", password="correct horse") == 0
    before = path.read_bytes()
    assert users(monkeypatch, *arguments, password=password) == 2
    assert reason in capsys.readouterr().err
    assert path.read_bytes() == before


def test_the_file_has_to_be_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("MDQA_USERS", raising=False)
    assert users(monkeypatch, "list") == 2
    assert "MDQA_USERS" in capsys.readouterr().err
