"""The file of result lines that a command writes: append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from mdqa.commands.options import check_output, json_line
from mdqa.errors import InputError, OutputError
from mdqa.records import Question

_ID = re.compile(rb'\{"id": "(?:[^"\\]|\\.)*')
_AFTER_ID = b'", "run": "'


Key = Hashable
Line = dict[str, Any]


class Checked(Protocol):
    """What says whether an earlier line may stay in the file."""

    def difference(self, line: Line) -> str:
        """How a line was made otherwise, in words; empty if it was not."""
        ...


@dataclass(frozen=True)
class Settled:
    """What must be the same for two runs to share a file or, with ``entry``, the entry of an evaluation."""

    method: str
    model: str
    seed: int
    profile: str
    config: dict[str, Any]
    entry: str | None = None

    def difference(self, line: Line) -> str:
        """How a line was made otherwise, in words; empty if it was not."""
        for name in ("entry", "method", "model", "seed", "profile"):
            if line.get(name) != getattr(self, name):
                return f"{name} {line.get(name)!r} instead of {getattr(self, name)!r}"
        theirs = line.get("config")
        if theirs == self.config:
            return ""
        theirs = theirs if isinstance(theirs, dict) else {}
        keys = [key for key in {**theirs, **self.config} if theirs.get(key) != self.config.get(key)]
        return ", ".join(f"{key}={theirs.get(key)!r} instead of {self.config.get(key)!r}" for key in keys)

    def about(self) -> Line:
        """What a line says of how it was made; the names are those that :meth:`difference` reads."""
        made = asdict(self)
        entry = made.pop("entry")
        return made if entry is None else {"entry": entry, **made}


@dataclass(frozen=True)
class Kept:
    """What is needed of a line to go on after it: its place in the file, and what it was made from."""

    start: int
    length: int
    question: str
    status: str
    digest: str | None


def by_question(line: Line) -> Key:
    """The key of a line where every question is answered once: the question's id."""
    return str(line["id"])


class ResultFile(ABC):
    """Where finished lines go, and what is in there already, by key."""

    def __init__(self, kept: Mapping[Key, Kept], name: str, key: Callable[[Line], Key]) -> None:
        self._kept = dict(kept)
        self._name = name
        self._key = key

    def append(self, line: Line, item: Question) -> None:
        """Write the line of this question so that it is safe when this returns; OutputError if that fails."""
        line = {**line, "input_sha256": input_digest(item)}
        data = json_line(line).encode("utf-8")
        self._kept[self._key(line)] = _kept(line, self._write(data), len(data))

    def has(self, key: Key, item: Question) -> bool:
        """Whether there is a line with this key; InputError if it belongs to another question or other documents."""
        kept = self._kept.get(key)
        if kept is None:
            return False
        if kept.question != item.question:
            raise InputError(
                f"the question {item.id!r} was {kept.question!r} and is {item.question!r} now; choose another --output",
                place=self._name,
            )
        if kept.digest not in (None, input_digest(item)):
            raise InputError(
                f"the documents of question {item.id!r} are other ones now; choose another --output", place=self._name
            )
        return True

    def keys(self) -> list[Key]:
        """The keys of all lines, in file order."""
        return list(self._kept)

    def missing(self, questions: Sequence[Question]) -> list[Question]:
        """The questions that have no line yet, in order, where the key is their id; errors as in :meth:`has`."""
        return [item for item in questions if not self.has(item.id, item)]

    def failed(self, questions: Sequence[Question]) -> int:
        """How many of these questions have a line that says that they failed, where the key is their id."""
        return self.failures([item.id for item in questions])

    def failures(self, keys: Iterable[Key]) -> int:
        """How many of these keys have a line that says that the run failed."""
        return sum(key in self._kept and self._kept[key].status != "ok" for key in keys)

    @abstractmethod
    def _write(self, data: bytes) -> int:
        """Write the bytes; the place where they begin."""


class DiskFile(ResultFile):
    """A file on disk; every line is flushed through to the disk. Use :func:`open_results`."""

    def __init__(self, path: Path, stream: BinaryIO, kept: Mapping[Key, Kept], name: str, key: Callable[[Line], Key]):
        super().__init__(kept, name, key)
        self._path, self._stream = path, stream

    def close(self) -> None:
        """Close the file, which unlocks it."""
        self._stream.close()

    def keep(self, keys: Iterable[Key]) -> None:
        """Make the file hold the lines of these keys in this order and no other ones, in one step.

        OutputError if that fails; the file is then as it was. Keys without a line are passed over.
        """
        chosen = {key: self._kept[key] for key in dict.fromkeys(keys) if key in self._kept}
        places = [kept.start for kept in chosen.values()]
        if len(chosen) == len(self._kept) and places == sorted(places):
            return
        stream = _replace(self._path, chosen.values())
        self._stream.close()
        self._stream, self._kept, start = stream, {}, 0
        for key, kept in chosen.items():
            self._kept[key] = replace(kept, start=start)
            start += kept.length

    def order(self, keys: Iterable[Key]) -> None:
        """Put the lines of these keys first, in this order, and the others after them; errors as in :meth:`keep`."""
        self.keep([*keys, *self._kept])

    def keep_good(self) -> None:
        """Take out the lines of runs that failed."""
        self.keep([key for key, kept in self._kept.items() if kept.status == "ok"])

    def _write(self, data: bytes) -> int:
        end = os.fstat(self._stream.fileno()).st_size
        try:
            _write_all(self._stream, data)
        except OSError as error:
            with suppress(OSError):  # half a line is of no use; should this fail, the next call removes it
                os.truncate(self._stream.fileno(), end)
            raise OutputError(self._name, error) from None
        return end


class StandardOutput(ResultFile):
    """Lines to standard output; nothing can be resumed from there."""

    def _write(self, data: bytes) -> int:
        sys.stdout.write(data.decode("utf-8"))
        sys.stdout.flush()
        return 0


@contextmanager
def open_results(output: str, settled: Checked, *, retry_failed: bool) -> Iterator[ResultFile]:
    """The result file, repaired and checked, for this process alone while it is open.

    InputError if it holds something else, was made otherwise, cannot be opened, or another process writes to it.
    """
    if output == "-":
        yield StandardOutput({}, "-", by_question)
        return
    with open_file(output, settled, by_question, retry_failed=retry_failed) as file:
        yield file


@contextmanager
def open_file(output: str, settled: Checked, key: Callable[[Line], Key], *, retry_failed: bool) -> Iterator[DiskFile]:
    """As :func:`open_results`, for a file on disk whose lines are told apart by ``key``."""
    path = Path(output).resolve()
    check_output(path)
    stream = _open_locked(path)
    try:
        file = DiskFile(path, stream, _usable_lines(path, settled, key), output, key)
    except BaseException:
        stream.close()
        raise
    try:
        if retry_failed:
            file.keep_good()
        yield file
    finally:
        file.close()


def input_digest(item: Question) -> str:
    """The SHA-256 of what a method is given: the question and the ids, titles and texts of its documents in order."""
    parts = [item.question, *((document.id, document.title, document.text) for document in item.documents)]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


def _kept(line: Line, start: int, length: int) -> Kept:
    return Kept(start, length, line["question"], line["status"], line.get("input_sha256"))


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
    _write_part(stream, data)
    os.fsync(stream.fileno())


def _write_part(stream: BinaryIO, data: bytes) -> None:
    """Write everything: an unbuffered stream may take less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _usable_lines(path: Path, settled: Checked, key: Callable[[Line], Key]) -> dict[Key, Kept]:
    """All complete lines of an earlier run. A last line that a kill cut off is removed from the file."""
    kept: dict[Key, Kept] = {}
    size, end, whole = path.stat().st_size, 0, True
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            place = f"{path}, line {number}"
            line = _parse(raw)
            if line is None and end + len(raw) == size and _is_cut(raw):
                break  # the process was killed while it wrote
            if line is None:
                raise InputError("this is no result line; choose another --output or repair the file", place=place)
            if difference := settled.difference(line):
                raise InputError(
                    f"this line was made with other settings ({difference}); choose another --output", place=place
                )
            whole = raw.endswith(b"\n")
            kept[key(line)] = _kept(line, end, len(raw) + (not whole))
            end += len(raw)
    if end < size:
        print(f"{path}: removed a torn last line of {size - end} bytes", file=sys.stderr)
        os.truncate(path, end)
    elif not whole:  # complete but for its line end
        with path.open("ab") as stream:
            stream.write(b"\n")
    return kept


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


def _replace(path: Path, lines: Iterable[Kept]) -> BinaryIO:
    """Put these lines of the file in its place, in one step; the new file, locked like the old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    stream = _open_locked(beside)
    try:
        beside.chmod(stat.S_IMODE(path.stat().st_mode))
        with path.open("rb") as old:
            for line in lines:
                old.seek(line.start)
                _write_part(stream, old.read(line.length))
        os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException as problem:
        stream.close()
        beside.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise OutputError(str(path), problem) from None
        raise
    return stream
