"""Where commands keep what they make while they are tested."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database and a cache of the test's own; the database's path."""
    monkeypatch.setenv("MDQA_DATABASE", str(tmp_path / "mdqa.db"))
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "mdqa.db"
