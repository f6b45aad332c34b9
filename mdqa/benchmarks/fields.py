"""Reading single fields of a record: every refusal names the place, the field and what was found there."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from mdqa.errors import InputError
from mdqa.records import Document, Question

MAX_DEPTH = 64
"""Deepest nesting of lists and objects in a record."""

MAX_NOTICES = 20
"""Most notices about one record; what more there is is counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Problem:
    """Something about an input: an ``error`` (the record was left out) or a ``notice`` (it was used all the same)."""

    place: str
    message: str
    severity: Literal["error", "notice"] = "error"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


def first_notices(notices: Iterable[Problem], place: str) -> Iterator[Problem]:
    """The first MAX_NOTICES of a record's notices and the number of the others."""
    notices = iter(notices)
    yield from islice(notices, MAX_NOTICES)
    more = sum(1 for _ in notices)
    if more:
        yield Problem(place, f"{more:,} further notices of this kind", "notice")


def problem_of(error: InputError) -> Problem:
    """An error as a report."""
    return Problem(error.place, str(error).removeprefix(f"{error.place}: "))


Record = Mapping[str, Any]
Item = Question | Problem
Reader = Callable[[Record, str], Iterator[Item]]
"""A format: from one record and its place to its questions (SQuAD's published file is one record with many).

It may raise InputError for the whole record.
"""


def at(place: str, field: str) -> str:
    """The place of a field of a record."""
    return f"{place}, field {field!r}" if place else f"field {field!r}"


def clean_text(text: str) -> tuple[str, tuple[str, ...]]:
    """A text that every store and tokenizer takes, and what was changed.

    Lone surrogates (half a character, which no encoding can write) become U+FFFD; NUL characters are removed.
    """
    notices: list[str] = []
    text, surrogates = _SURROGATE.subn("\ufffd", text)
    if surrogates:
        notices.append(f"{_count(surrogates, 'lone surrogate')} replaced by U+FFFD")
    if nuls := text.count("\x00"):
        text = text.replace("\x00", "")
        notices.append(f"{_count(nuls, 'NUL character')} removed")
    return text, tuple(notices)


def clean_value(value: Any, place: str, notices: list[Problem], path: str = "", depth: int = 0) -> Any:
    """A JSON value with all its texts cleaned; what was changed is added to ``notices``.

    InputError for nesting deeper than MAX_DEPTH and for numbers that are not finite.
    """
    if depth > MAX_DEPTH:
        raise InputError(f"lists and objects are nested more than {MAX_DEPTH} deep", place=place)
    if isinstance(value, str):
        text, changes = clean_text(value)
        notices.extend(Problem(at(place, path), change, "notice") for change in changes)
        return text
    if isinstance(value, dict):
        return {
            clean_text(key)[0]: clean_value(item, place, notices, f"{path}.{key}" if path else key, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [clean_value(item, place, notices, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError("the number is too large", place=at(place, path))
    return value


def text_field(record: Record, name: str, place: str, *, default: str | None = None) -> str:
    """A text that is not blank; with a default the field may be absent, null or blank."""
    value = record.get(name)
    if value is None and default is not None:
        return default
    if name not in record:
        raise InputError(f"is missing; the record has {_names(record)}", place=at(place, name))
    if not isinstance(value, str):
        raise InputError(f"must be a text, is {_kind(value)}", place=at(place, name))
    if not value.strip():
        if default is not None:
            return default
        raise InputError("is empty", place=at(place, name))
    return value


def id_field(record: Record, name: str, place: str, default: str) -> str:
    """An identifier: a text or a whole number; ``default`` where there is none."""
    value = record.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"must be a text or a whole number, is {_kind(value)}", place=at(place, name))
    return str(value)


def list_field(record: Record, name: str, place: str) -> list[Any]:
    """A list."""
    value = record.get(name)
    if name not in record:
        raise InputError(f"is missing; the record has {_names(record)}", place=at(place, name))
    if not isinstance(value, list):
        raise InputError(f"must be a list, is {_kind(value)}", place=at(place, name))
    return value


def object_at(value: Any, place: str, field: str) -> Record:
    """An object inside a list or field."""
    if not isinstance(value, dict):
        raise InputError(f"must be an object, is {_kind(value)}", place=at(place, field))
    return value


def bool_field(record: Record, name: str, place: str) -> bool | None:
    """True, false, or None where the field is absent or null."""
    value = record.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"must be true or false, is {_kind(value)}", place=at(place, name))


def answers_in(value: Any, place: str, name: str) -> tuple[str, ...]:
    """Accepted answers: a text, a list of texts, or none. Blank ones are left out, repeated ones kept once."""
    texts = [value] if isinstance(value, str) else value
    if texts is None:
        return ()
    if not isinstance(texts, list):
        raise InputError(f"must be a text or a list of texts, is {_kind(value)}", place=at(place, name))
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"must be a text, is {_kind(text)}", place=at(place, f"{name}[{index}]"))
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def passages(
    pairs: Iterable[tuple[str, str, bool | None]],
) -> tuple[Document, ...]:
    """Documents d1, d2, ... from (title, text, gold)."""
    return tuple(
        Document(id=f"d{number}", title=title, text=text, gold=gold)
        for number, (title, text, gold) in enumerate(pairs, 1)
    )


def derived_id(prefix: str, *parts: str) -> str:
    """An id for records that have none: the same for the same texts, whatever the file or the line."""
    return f"{prefix}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def rest(record: Record, used: Sequence[str]) -> dict[str, Any]:
    """The fields a reader has no other place for; they go into ``meta``."""
    return {name: value for name, value in record.items() if name not in used}


def _kind(value: Any) -> str:
    """What a JSON value is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _names(record: Record) -> str:
    names = [str(name)[:40] for name in list(record)[:12]]
    return f"the fields {', '.join(names)}{', ...' if len(record) > 12 else ''}" if names else "no fields"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
