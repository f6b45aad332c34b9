"""From bytes to records: JSON lines, a JSON array, one JSON object or CSV, plain or gzip, told apart by content.

JSON lines, arrays and CSV are read piece by piece: memory does not grow with the file. A broken line of JSON lines is
reported and the next one is read; where a break leaves no way to find the next record, reading ends with the report.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from mdqa.benchmarks.fields import Problem, problem_of
from mdqa.benchmarks.streams import CHUNK, MAX_RECORD, Stream, decode, open_stream
from mdqa.benchmarks.tables import read_table
from mdqa.errors import InputError

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")

Found = tuple[str, Any] | Problem
"""A record with its place, or what is wrong at a place."""


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
            line = self._lines_before + self.text.count("\n") + error.object.count(b"\n", 0, error.start) + 1
            start = self._bytes + len(data) - len(error.object) + error.start
            decode(error.object[error.start : error.start + 1], f"{self.stream.name}, line {line}", start)
        self._bytes += len(data)
        self.ended = not data
        return bool(data)

    def next_character(self) -> str:
        """The next character that is no white space, not taken; empty at the end."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text) or not self.more(CHUNK):
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
    size = CHUNK
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
