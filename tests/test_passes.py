"""Finished pieces of long work: whole or not there, and never mixed up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mdqa.errors import OutputError
from mdqa.passes import Passes


def test_a_piece_comes_back_as_it_was(tmp_path: Path) -> None:
    passes = Passes(tmp_path / "p")
    assert passes.count() == 0
    key = Passes.key("model", 1, 0.5)
    assert passes.get(key) is None
    mass = np.arange(6, dtype=np.float32).reshape(2, 3)
    passes.put(key, {"mass": mass, "tokens": np.array([3])})
    found = Passes(tmp_path / "p").get(key)
    assert found is not None
    np.testing.assert_array_equal(found["mass"], mass)
    assert passes.count() == 1
    passes.discard()
    assert passes.count() == 0
    passes.discard()  # nothing there: nothing happens


def test_keys_tell_everything_apart() -> None:
    assert Passes.key("a", "b") == Passes.key("a", "b")
    assert len({Passes.key(*p) for p in (("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ("a", 1), ("a", "1"))}) == 6


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"PK\x03\x04"])
def test_a_damaged_piece_is_made_again(tmp_path: Path, damage: bytes) -> None:
    passes, key = Passes(tmp_path), Passes.key("x")
    passes.put(key, {"mass": np.ones(4)})
    whole = (tmp_path / f"{key}.npz").read_bytes()
    for data in (damage, whole[: len(whole) // 2]):
        (tmp_path / f"{key}.npz").write_bytes(data)
        assert passes.get(key) is None
    passes.put(key, {"mass": np.ones(4)})
    assert passes.get(key) is not None


def test_a_piece_with_objects_is_not_read(tmp_path: Path) -> None:
    key = Passes.key("x")
    np.savez(tmp_path / f"{key}.npz", mass=np.array([{"a": 1}], dtype=object))
    found = Passes(tmp_path).get(key)
    assert found is None


def test_models_and_names_have_their_own_folders(tmp_path: Path) -> None:
    folders = {
        Passes.for_profile(tmp_path, *p).folder for p in (("cafe", "m", "n"), ("cafe", "m", "o"), ("x", "m", "n"))
    }
    assert len(folders) == 3
    assert all(folder.parent == tmp_path / "calibrations" for folder in folders)
    hostile = Passes.for_profile(tmp_path, "cafe", "../../etc", "a/../b").folder
    assert hostile.resolve().parent == (tmp_path / "calibrations").resolve()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match="file"):
        Passes(tmp_path / "file" / "p").put("k", {"mass": np.ones(1)})
