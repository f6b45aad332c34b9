"""The result file of ``answer``: append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mdqa.commands.options import check_output, json_line
from mdqa.errors import InputError, OutputError
from mdqa.records import Question

_ID = re.compile(rb'\{"id": "(?:[^"\\]|\\.)*')
_AFTER_ID = b'", "run": "'


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
        self._lines = {str(line["id"]): line for line in map(_essence, lines)}
        self._name = name

    def append(self, line: dict[str, Any], item: Question) -> None:
        """Write the line of this question so that it is safe when this returns; OutputError if that fails."""
        line = {**line, "input_sha256": input_digest(item)}
        self._write(json_line(line).encode("utf-8"))
        self._lines[item.id] = _essence(line)

    def missing(self, questions: Sequence[Question]) -> list[Question]:
        """The questions that have no line yet, in order; InputError if one has the id of another question."""
        left = []
        for item in questions:
            if item.id not in self._lines:
                left.append(item)
            elif (earlier := self._lines[item.id]["question"]) != item.question:
                raise InputError(
                    f"the question {item.id!r} was {earlier!r} and is {item.question!r} now; choose another --output",
                    place=self._name,
                )
            elif self._lines[item.id].get("input_sha256") not in (None, input_digest(item)):
                raise InputError(
                    f"the documents of question {item.id!r} are other ones now; choose another --output",
                    place=self._name,
                )
        return left

    def failed(self, questions: Sequence[Question]) -> int:
        """How many of these questions have a line that says that they failed."""
        return sum(item.id in self._lines and self._lines[item.id]["status"] != "ok" for item in questions)

    @abstractmethod
    def _write(self, data: bytes) -> None: ...


class DiskFile(ResultFile):
    """A file on disk; every line is flushed through to the disk."""

    def __init__(self, stream: BinaryIO, lines: Sequence[dict[str, Any]], name: str) -> None:
        super().__init__(lines, name)
        self._stream = stream

    def _write(self, data: bytes) -> None:
        end = os.fstat(self._stream.fileno()).st_size
        try:
            _write_all(self._stream, data)
        except OSError as error:
            with suppress(OSError):  # half a line is of no use; should this fail, the next call removes it
                os.truncate(self._stream.fileno(), end)
            raise OutputError(self._name, error) from None


class StandardOutput(ResultFile):
    """Lines to standard output; nothing can be resumed from there."""

    def _write(self, data: bytes) -> None:
        sys.stdout.write(data.decode("utf-8"))
        sys.stdout.flush()


@contextmanager
def open_results(output: str, settled: Settled, *, retry_failed: bool) -> Iterator[ResultFile]:
    """The result file, repaired and checked, for this process alone while it is open.

    InputError if it holds something else, was made otherwise, cannot be opened, or another process writes to it.
    """
    if output == "-":
        yield StandardOutput()
        return
    path = Path(output).resolve()
    check_output(path)
    with ExitStack() as open_files:
        stream = open_files.enter_context(_open_locked(path))
        lines = _usable_lines(path, settled)
        if retry_failed and any(line["status"] != "ok" for line in lines):
            lines = [line for line in lines if line["status"] == "ok"]
            stream = open_files.enter_context(_replace(path, lines))
        yield DiskFile(stream, lines, output)


def input_digest(item: Question) -> str:
    """The SHA-256 of what a method is given: the question and the ids, titles and texts of its documents in order."""
    parts = [item.question, *((document.id, document.title, document.text) for document in item.documents)]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


def _essence(line: dict[str, Any]) -> dict[str, Any]:
    """What is needed of a line to go on after it."""
    return {name: line.get(name) for name in ("id", "question", "status", "input_sha256")}


def _open_locked(path: Path) -> BinaryIO:
    """The file, opened to append and locked against other processes."""
    try:
        stream = path.open("ab", buffering=0)
    except OSError as error:
        raise InputError(f"cannot be opened for writing: {error.strerror}", place=str(path)) from None
    try:
        _lock(stream, path)
        if not path.exists() or not os.path.samestat(os.fstat(stream.fileno()), path.stat()):
            raise BlockingIOError  # another process replaced it between opening and locking
    except BlockingIOError:
        stream.close()
        raise InputError(
            "another process is writing to this file; wait for its end or choose another --output", place=str(path)
        ) from None
    return stream


def _lock(stream: BinaryIO, path: Path) -> None:
    """BlockingIOError if another process has the lock. It goes with the process, however that ends."""
    if sys.platform == "win32":
        return  # there, nobody else can replace or truncate a file that is open
    import fcntl  # noqa: PLC0415 (not on Windows)

    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:  # some network file systems have no locks
        print(f"{path}: cannot be locked ({error.strerror}); let only one process write to it", file=sys.stderr)


def _write_all(stream: BinaryIO, data: bytes) -> None:
    """Write through to the disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]
    os.fsync(stream.fileno())


def _usable_lines(path: Path, settled: Settled) -> list[dict[str, Any]]:
    """All complete lines of an earlier run. A last line that a kill cut off is removed from the file."""
    data = path.read_bytes()
    lines: list[dict[str, Any]] = []
    end = 0
    torn = False
    for number, raw in enumerate(data.splitlines(keepends=True), 1):
        place = f"{path}, line {number}"
        line = _parse(raw)
        if line is None and end + len(raw) == len(data) and _is_cut(raw):
            torn = True  # the process was killed while it wrote
            break
        if line is None:
            raise InputError("this is no result line; choose another --output or repair the file", place=place)
        if difference := settled.difference(line):
            raise InputError(
                f"this line was made with other settings ({difference}); choose another --output", place=place
            )
        lines.append(line)
        end += len(raw)
    if torn:
        print(f"{path}: removed a torn last line of {len(data) - end} bytes", file=sys.stderr)
        os.truncate(path, end)
    elif data and not data.endswith(b"\n"):  # complete but for its line end
        with path.open("ab") as stream:
            stream.write(b"\n")
    return lines


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):  # ValueError: also UnicodeDecodeError
        return None
    is_result = isinstance(line, dict) and all(isinstance(line.get(name), str) for name in ("id", "question", "status"))
    return line if is_result else None


def _is_cut(raw: bytes) -> bool:
    """Whether this is the beginning of one of our lines: nothing else may be removed from a file.

    A file system that lost its power may leave NUL bytes where data should be.
    """
    raw = raw.rstrip(b"\0")
    within_id = _ID.match(raw)
    if within_id is None:
        return b'{"id": "'.startswith(raw)
    rest = raw[within_id.end() :]
    return rest == b"\\" or rest.startswith(_AFTER_ID) or _AFTER_ID.startswith(rest)


def _replace(path: Path, lines: Sequence[dict[str, Any]]) -> BinaryIO:
    """Put these lines in the file's place in one step; the new file, locked like the old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    stream = _open_locked(beside)
    try:
        beside.chmod(stat.S_IMODE(path.stat().st_mode))
        _write_all(stream, "".join(json_line(line) for line in lines).encode("utf-8"))
        beside.replace(path)
    except BaseException as problem:
        stream.close()
        beside.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise OutputError(str(path), problem) from None
        raise
    return stream
