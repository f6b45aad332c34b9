"""backup and restore from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdqa.__main__ import main
from storage.store import Store
from tests.storage.builders import complete, header


def filled(path: Path) -> Path:
    with Store.open(path) as store:
        store.runs.begin(header("one"))
        store.runs.finish(complete("one"))
    return path


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, copy = filled(tmp_path / "mdqa.db"), tmp_path / "copy.db"
    assert main(["backup", "--output", str(copy), "--db", str(path)]) == 0
    assert "1 runs" in capsys.readouterr().err
    assert main(["restore", "--input", str(copy), "--db", str(path)]) == 0
    assert f"what was there before is {path}.before" in capsys.readouterr().err
    assert main(["restore", "--input", str(copy), "--db", str(tmp_path / "new.db")]) == 0
    assert "before" not in capsys.readouterr().err


def test_what_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = filled(tmp_path / "mdqa.db")
    assert main(["backup", "--output", str(tmp_path / "copy.db"), "--db", str(tmp_path / "none.db")]) == 2
    assert main(["restore", "--input", str(tmp_path / "copy.db"), "--db", str(path)]) == 2
    assert main(["backup", "--output", str(path), "--db", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_a_database_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, copy = filled(tmp_path / "mdqa.db"), tmp_path / "copy.db"
    assert main(["backup", "--output", str(copy), "--db", str(path)]) == 0
    with Store.open(path) as store:
        assert store.runs.count() == 1
        assert main(["restore", "--input", str(copy), "--db", str(path)]) == 1
    assert "another program has" in capsys.readouterr().err
