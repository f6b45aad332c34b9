"""Bytes of a file or an upload: unpacked, guarded against what is no text, with places for messages."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from mdqa.errors import InputError

MAX_RECORD = 64 * 2**20
"""Most bytes of one line or record, unpacked."""

MAX_RATIO = 400
"""A gzip file that unpacks to more than this many times its size (beyond MAX_RECORD) is refused; text reaches 30."""

MAX_BLANK_LINES = 100_000
"""Most blank lines in a row; a small gzip file can hold hundreds of millions."""

CHUNK = 2**18
_UTF8_BOM = b"\xef\xbb\xbf"
_CONVERT = "save it as UTF-8 in a text editor, or run: iconv -f {} -t UTF-8 OLD > NEW"
_FOREIGN = MappingProxyType(
    {
        b"PK\x03\x04": "a zip archive or an Office file; unpack it, or export it as CSV",
        b"PAR1": "a Parquet file; convert it to JSON lines",
        b"%PDF": "a PDF file; give its text",
        b"BZh": "packed with bzip2; unpack it",
        b"\xfd7zXZ": "packed with xz; unpack it",
        b"\x28\xb5\x2f\xfd": "packed with zstandard; unpack it",
        b"SQLite format 3": "a database",
    }
)


class Stream:
    """Bytes of a source with a name for messages; ``line`` counts lines taken by :meth:`readline`."""

    def __init__(self, source: io.BufferedReader[Any] | gzip.GzipFile, name: str, packed: int | None) -> None:
        self.name, self.line = name, 0
        self._source: Any = source
        self._packed = packed
        self._total = 0
        self._blank = 0

    def peek(self) -> bytes:
        """Some of the coming bytes without taking them; empty at the end."""
        return self._guard(lambda: self._source.peek(CHUNK))

    def readline(self) -> bytes:
        """The next line, cut after MAX_RECORD + 1 bytes; empty at the end."""
        line = self._guard(lambda: self._source.readline(MAX_RECORD + 1))
        self.line += bool(line)
        self._count(line)
        self._blank = 0 if line.strip() else self._blank + 1
        if self._blank > MAX_BLANK_LINES:
            raise InputError(
                f"more than {MAX_BLANK_LINES:,} blank lines in a row; reading stopped here",
                place=f"{self.name}, line {self.line}",
            )
        return line

    def skip_line(self) -> None:
        """Leave the rest of a line that :meth:`readline` cut."""
        while (piece := self._guard(lambda: self._source.readline(CHUNK))) and not piece.endswith(b"\n"):
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
    with io.BufferedReader(raw, CHUNK) as plain:
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
