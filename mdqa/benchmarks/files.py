"""From bytes to records: JSON lines, a JSON array, one JSON object or CSV, plain or gzip, told apart by content.

JSON lines, arrays and CSV are read piece by piece: memory does not grow with the file. A broken line of JSON lines is
reported and the next one is read; where a break leaves no way to find the next record, reading ends with the report.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from mdqa.benchmarks.fields import Problem, problem_of
from mdqa.benchmarks.tables import read_table
from mdqa.errors import InputError

MAX_RECORD = 64 * 2**20
"""Most bytes of one line or record, unpacked."""

MAX_RATIO = 400
"""A gzip file that unpacks to more than this many times its size (beyond MAX_RECORD) is refused; text reaches 30."""

_CHUNK = 2**18
_UTF8_BOM = b"\xef\xbb\xbf"
_CONVERT = "save it as UTF-8 in a text editor, or run: iconv -f {} -t UTF-8 OLD > NEW"
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Office file; unpack it, or export it as CSV",
    b"PAR1": "a Parquet file; convert it to JSON lines",
    b"%PDF": "a PDF file; give its text",
    b"BZh": "packed with bzip2; unpack it",
    b"\xfd7zXZ": "packed with xz; unpack it",
    b"\x28\xb5\x2f\xfd": "packed with zstandard; unpack it",
    b"SQLite format 3": "a database",
}

Found = tuple[str, Any] | Problem
"""A record with its place, or what is wrong at a place."""


class Stream:
    """Bytes of a source with a name for messages; ``line`` counts lines taken by :meth:`readline`."""

    def __init__(self, source: io.BufferedReader[Any] | gzip.GzipFile, name: str, packed: int | None) -> None:
        self.name, self.line = name, 0
        self._source: Any = source
        self._packed = packed
        self._total = 0

    def peek(self) -> bytes:
        """Some of the coming bytes without taking them; empty at the end."""
        return self._guard(lambda: self._source.peek(_CHUNK))

    def readline(self) -> bytes:
        """The next line, cut after MAX_RECORD + 1 bytes; empty at the end."""
        line = self._guard(lambda: self._source.readline(MAX_RECORD + 1))
        self.line += bool(line)
        self._count(line)
        return line

    def skip_line(self) -> None:
        """Leave the rest of a line that :meth:`readline` cut."""
        while (piece := self._guard(lambda: self._source.readline(_CHUNK))) and not piece.endswith(b"\n"):
            self._count(piece)

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        data = self._guard(lambda: self._source.read(size))
        self._count(data)
        return data

    def _guard(self, action: Any) -> bytes:
        where = f"{self.name}, after line {self.line}" if self.line else self.name
        try:
            return bytes(action())
        except EOFError:
            raise InputError("the gzip file ends too early; it was cut off, copy it again", place=where) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"the gzip file is damaged ({error}); copy it again", place=where) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", place=where) from None

    def _count(self, data: bytes) -> None:
        self._total += len(data)
        if self._packed is not None and self._total > max(MAX_RECORD, MAX_RATIO * self._packed):
            raise InputError(
                f"unpacks to more than {MAX_RATIO} times its size; such a file is not read",
                place=f"{self.name}, after line {self.line}",
            )


@contextmanager
def open_stream(source: Path | bytes, name: str) -> Iterator[Stream]:
    """Open a path or bytes, unpacking gzip; InputError for what is not there or is no text at all."""
    raw: Any = io.BytesIO(source) if isinstance(source, bytes) else _open(source, name)
    with io.BufferedReader(raw, _CHUNK) as plain:
        size = len(source) if isinstance(source, bytes) else _size(source)
        try:
            head = plain.peek(16)[:16]
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", place=name) from None
        if not head:
            raise InputError("the file is empty", place=name)
        packed = head[:2] == b"\x1f\x8b"
        if name.lower().endswith(".gz") and not packed:
            raise InputError("is called .gz but is not a gzip file; rename or pack it", place=name)
        stream = Stream(gzip.GzipFile(fileobj=plain) if packed else plain, name, size if packed else None)
        _refuse_foreign(stream)
        yield stream


def _open(path: Path, name: str) -> BinaryIO:
    if path.is_dir():
        raise InputError("is a folder; give a file", place=name)
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        raise InputError("there is no such file", place=name) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", place=name) from None


def _size(path: Path) -> int:
    return path.stat().st_size or MAX_RECORD  # a pipe has no size


def _refuse_foreign(stream: Stream) -> None:
    """InputError for UTF-16, UTF-32 and well-known binary files; leaves out UTF-8's byte-order mark."""
    head = stream.peek()
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"is {what}", place=stream.name)
    wide = _wide_encoding(head[:512])
    if wide:
        convert = _CONVERT.format(wide)
        raise InputError(f"is encoded in {wide}, not in UTF-8; {convert}", place=f"{stream.name}, line 1, byte 0")
    if head.startswith(_UTF8_BOM):
        stream.read(len(_UTF8_BOM))


def _wide_encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    for start, name in ((0, "UTF-16BE"), (1, "UTF-16LE")):
        half = head[start::2]
        if len(half) > 1 and half.count(0) > 0.6 * len(half):
            return name
    return ""


def records(source: Path | bytes, name: str) -> Iterator[Found]:
    """The records of a source with their places. InputError where reading cannot go on."""
    with open_stream(source, name) as stream:
        base = name.lower().removesuffix(".gz")
        first = stream.peek().lstrip()[:1]
        if first == b"[":
            yield from _array(stream)
        elif first == b"{" or base.endswith((".jsonl", ".json", ".ndjson")):
            yield from _objects(stream, lines_only=base.endswith((".jsonl", ".ndjson")))
        else:
            yield from read_table(_text_lines(stream), name)


def decode(data: bytes, place: str, start: int = 0) -> str:
    """UTF-8 text; InputError names the first byte that is none (``start``: where ``data`` begins)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        raise InputError(
            f"byte {start + error.start} (0x{data[error.start]:02x}) is not UTF-8; the file looks like Latin-1 or "
            f"Windows-1252: {_CONVERT.format('WINDOWS-1252')}",
            place=f"{place}, line {line + 1}" if line else place,
        ) from None


def parse_json(text: str, place: str) -> Any:
    """A JSON value; InputError says what is broken and where."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError(f"broken JSON at {line}column {error.colno}: {error.msg}", place=place) from None
    except (ValueError, RecursionError) as error:
        raise InputError(_json_fault(error), place=place) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed in JSON; use a number or null")


def _json_fault(error: Exception) -> str:
    return "lists and objects are nested too deep" if isinstance(error, RecursionError) else f"broken JSON: {error}"


def _text_lines(stream: Stream) -> Iterator[str]:
    """Lines with their line feeds; InputError for one that is too long or not UTF-8."""
    while line := stream.readline():
        place = f"{stream.name}, line {stream.line}"
        if len(line) > MAX_RECORD:
            raise InputError(_too_long(), place=place)
        yield decode(line, place)


def _too_long() -> str:
    return f"the line is longer than {MAX_RECORD // 2**20} MB"


def _objects(stream: Stream, *, lines_only: bool) -> Iterator[Found]:
    """JSON lines, or one JSON object over several lines."""
    while line := stream.readline():
        place = f"{stream.name}, line {stream.line}"
        if len(line) > MAX_RECORD:
            if not line.endswith(b"\n"):
                stream.skip_line()
            yield Problem(place, _too_long())
            continue
        if not line.strip():
            continue
        if not lines_only and _opens_object(line):
            yield _whole(stream, line)
            return
        lines_only = True
        try:
            yield place, parse_json(decode(line, place).removeprefix("\ufeff"), place)
        except InputError as error:
            yield problem_of(error)


def _opens_object(line: bytes) -> bool:
    """Whether the first line begins an object that goes on in the next line."""
    text = line.strip()
    if not text.startswith(b"{"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text.endswith(b"}")
    return False


def _whole(stream: Stream, first: bytes) -> Found:
    data = first + stream.read(MAX_RECORD + 1)
    if len(data) > MAX_RECORD:
        raise InputError(f"one JSON object of more than {MAX_RECORD // 2**20} MB; use JSON lines", place=stream.name)
    return stream.name, parse_json(decode(data, stream.name), stream.name)


class _ArrayText:
    """The text of a JSON array as far as it was read: ``text[at:]`` is not yet used."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.text, self.at, self.ended = stream, "", 0, False
        self._decoder = getincrementaldecoder("utf-8")()
        self._lines_before = 0
        self._bytes = 0

    def place(self, offset: int = 0) -> str:
        """The line of the character ``offset`` after the current one."""
        line = self._lines_before + self.text.count("\n", 0, self.at + offset) + 1
        return f"{self.stream.name}, line {line}"

    def more(self, size: int) -> bool:
        """Read on; False if there is nothing more."""
        self._lines_before += self.text.count("\n", 0, self.at)
        self.text, self.at = self.text[self.at :], 0
        data = self.stream.read(size)
        try:
            self.text += self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            bad = error.object[error.start : error.start + 1]
            decode(bad, self.place(len(self.text)), self._bytes + error.start - len(error.object) + len(data))
        self._bytes += len(data)
        self.ended = not data
        return bool(data)

    def next_character(self) -> str:
        """The next character that is no white space, not taken; empty at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n\ufeff":
                self.at += 1
            if self.at < len(self.text) or not self.more(_CHUNK):
                return self.text[self.at : self.at + 1]


def _array(stream: Stream) -> Iterator[Found]:
    """The elements of a JSON array, one by one."""
    source = _ArrayText(stream)
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    source.next_character()
    source.at += 1  # the opening bracket
    number = 0
    while (character := source.next_character()) != "]":
        if not character:
            raise InputError("broken JSON: the file ends before the closing ']'", place=source.place())
        if number:
            if character != ",":
                raise InputError("broken JSON: expected ',' or ']' after a record", place=source.place())
            source.at += 1
            source.next_character()
        number += 1
        yield f"{source.place()}, record {number}", _element(source, decoder, number)
    source.at += 1
    if source.next_character():
        raise InputError("broken JSON: something follows the closing ']'", place=source.place())


def _element(source: _ArrayText, decoder: json.JSONDecoder, number: int) -> Any:
    """Decode the element at the current place, reading on while it may only be cut off."""
    size = _CHUNK
    while True:
        try:
            value, end = decoder.raw_decode(source.text, source.at)
        except json.JSONDecodeError as error:
            left = len(source.text) - source.at
            may_be_cut = error.msg.startswith("Unterminated") or error.pos >= len(source.text) - 16
            if may_be_cut and left <= MAX_RECORD and not source.ended:
                source.more(size)
                size *= 2  # each try starts over: doubling keeps the sum linear
                continue
            offset = max(error.pos - source.at, 0)
            what = "the file ends inside this record" if source.ended else error.msg
            place = f"{source.place(offset)}, record {number}"
            if left > MAX_RECORD:
                what = f"the record is longer than {MAX_RECORD // 2**20} MB"
            raise InputError(f"broken JSON: {what}", place=place) from None
        except (ValueError, RecursionError) as error:
            raise InputError(_json_fault(error), place=f"{source.place()}, record {number}") from None
        # a number at the very end of what was read may go on
        if end < len(source.text) or source.ended:
            source.at = end
            return value
        source.more(size)
