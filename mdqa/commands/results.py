"""The result file of ``answer``: append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mdqa.commands.options import check_output, json_line
from mdqa.errors import InputError
from mdqa.records import Question


@dataclass(frozen=True)
class Settled:
    """What must be the same for two runs to share a file."""

    method: str
    model: str
    seed: int
    profile: str
    config: dict[str, Any]

    def difference(self, line: dict[str, Any]) -> str:
        """How a line was made otherwise, in words; empty if it was not."""
        for name in ("method", "model", "seed", "profile"):
            if line.get(name) != getattr(self, name):
                return f"{name} {line.get(name)!r} instead of {getattr(self, name)!r}"
        theirs = line.get("config")
        if theirs == self.config:
            return ""
        theirs = theirs if isinstance(theirs, dict) else {}
        keys = [key for key in {**theirs, **self.config} if theirs.get(key) != self.config.get(key)]
        return ", ".join(f"{key}={theirs.get(key)!r} instead of {self.config.get(key)!r}" for key in keys)


class ResultFile(ABC):
    """Where finished lines go, and which questions are in there already."""

    def __init__(self, lines: Sequence[dict[str, Any]] = (), name: str = "-") -> None:
        self._lines = {str(line["id"]): (str(line["question"]), str(line["status"])) for line in lines}
        self._name = name

    def append(self, line: dict[str, Any]) -> None:
        """Write one line so that it is safe when this returns."""
        self._write(json_line(line).encode("utf-8"))
        self._lines[str(line["id"])] = (str(line["question"]), str(line["status"]))

    def missing(self, questions: Sequence[Question]) -> list[Question]:
        """The questions that have no line yet, in order; InputError if one has the id of another question."""
        left = []
        for item in questions:
            if item.id not in self._lines:
                left.append(item)
            elif (earlier := self._lines[item.id][0]) != item.question:
                raise InputError(
                    f"the question {item.id!r} was {earlier!r} and is {item.question!r} now; choose another --output",
                    place=self._name,
                )
        return left

    def failed(self, questions: Sequence[Question]) -> int:
        """How many of these questions have a line that says that they failed."""
        return sum(item.id in self._lines and self._lines[item.id][1] != "ok" for item in questions)

    @abstractmethod
    def _write(self, data: bytes) -> None: ...


class DiskFile(ResultFile):
    """A file on disk; every line is flushed through to the disk."""

    def __init__(self, stream: BinaryIO, lines: Sequence[dict[str, Any]], name: str) -> None:
        super().__init__(lines, name)
        self._stream = stream

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()
        os.fsync(self._stream.fileno())


class StandardOutput(ResultFile):
    """Lines to standard output; nothing can be resumed from there."""

    def _write(self, data: bytes) -> None:
        sys.stdout.write(data.decode("utf-8"))
        sys.stdout.flush()


@contextmanager
def open_results(output: str, settled: Settled, *, retry_failed: bool) -> Iterator[ResultFile]:
    """The result file, repaired and checked; InputError if it holds something else or was made otherwise."""
    if output == "-":
        yield StandardOutput()
        return
    path = Path(output)
    check_output(path)
    lines = _usable_lines(path, settled) if path.exists() else []
    if retry_failed and any(line["status"] != "ok" for line in lines):
        lines = [line for line in lines if line["status"] == "ok"]
        _replace(path, lines)
    with path.open("ab") as stream:
        yield DiskFile(stream, lines, output)


def _usable_lines(path: Path, settled: Settled) -> list[dict[str, Any]]:
    """All complete lines of an earlier run. A last line that a kill cut off is removed from the file."""
    data = path.read_bytes()
    lines: list[dict[str, Any]] = []
    end = 0
    for number, raw in enumerate(data.splitlines(keepends=True), 1):
        place = f"{path}, line {number}"
        line = _parse(raw)
        if line is None and end + len(raw) == len(data) and not raw.endswith(b"\n"):
            break  # torn: the process was killed while it wrote
        if line is None:
            raise InputError("this is no result line; choose another --output or repair the file", place=place)
        if difference := settled.difference(line):
            raise InputError(
                f"this line was made with other settings ({difference}); choose another --output", place=place
            )
        lines.append(line)
        end += len(raw)
    if end < len(data):
        print(f"{path}: removed a torn last line of {len(data) - end} bytes", file=sys.stderr)
        os.truncate(path, end)
    elif data and not data.endswith(b"\n"):  # complete but for its line end
        with path.open("ab") as stream:
            stream.write(b"\n")
    return lines


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:  # also UnicodeDecodeError
        return None
    is_result = isinstance(line, dict) and all(isinstance(line.get(name), str) for name in ("id", "question", "status"))
    return line if is_result else None


def _replace(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Put these lines in the file's place in one step."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as stream:
        stream.write("".join(json_line(line) for line in lines).encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
