"""Finished pieces of long work, kept so that a stopped or killed calibration goes on where it was.

A piece is a few arrays under a key made from everything they depend on. Nothing has to be compared when work is
resumed: other settings give other keys, and equal ones find what is there. A piece is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import numpy as np

from mdqa.errors import OutputError


class Passes:
    """A folder of pieces. It is made with the first piece; two processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def for_profile(cls, cache: Path, method: str, model: str, name: str) -> Passes:
        """The pieces of one profile in the making, under the program's cache folder."""
        return cls(cache / "calibrations" / cls.key(method, model, name)[:32])

    @staticmethod
    def key(*parts: str | int | float) -> str:
        """A key from everything that a piece depends on."""
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """The arrays of a piece; None if it is not there or damaged (it is then made again)."""
        try:
            with np.load(io.BytesIO(self._path(key).read_bytes()), allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a piece; OutputError if it cannot be written."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **cast(Any, dict(arrays)))
        partial = self.folder / f"{uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(buffer.getvalue())
            partial.replace(self._path(key))
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise OutputError(str(self.folder), error) from None

    def count(self) -> int:
        """How many pieces there are."""
        return sum(1 for _ in self.folder.glob("*.npz")) if self.folder.is_dir() else 0

    def discard(self) -> None:
        """Remove the folder: the work is finished and kept elsewhere."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"
