"""Between values and what SQLite can keep: text without surrogates and NUL, strict JSON, compressed long text."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from mdqa.errors import StorageError

COMPRESS_FROM = 4096
"""JSON texts of at least this many characters are stored compressed (a trace repeats the documents per prompt)."""


def now() -> str:
    """This moment as UTC with milliseconds, so that texts sort as times."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def clean_text(text: str) -> str:
    """The text without NUL and with U+FFFD for every lone surrogate; two halves of a pair become one character.

    SQLite refuses surrogates and some of its readers stop at NUL.
    """
    text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def holds(column: str) -> str:
    """SQL: whether a text (its one parameter) stands anywhere in a column; case counts for other than ASCII letters.

    Not ``like``: SQLite takes patterns of 50,000 bytes at most, and questions from files may be longer.
    """
    return f"instr(lower({column}), lower(?)) > 0"


def to_json(value: Any, place: str, *, lenient: bool = False) -> str:
    """Strict JSON of records and plain values, every text cleaned; ``place`` (say, "run x") begins a complaint.

    ``lenient`` is for free-form values that came with somebody's data: NaN and infinity become null there.

    Raises:
        StorageError: a number is not finite, or a value has no JSON form; the text says which.
    """
    return json.dumps(_plain(value, place, lenient), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any, place: str, lenient: bool) -> Any:
    """The value as JSON types with clean texts."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean_text(value)
        case float():
            if math.isfinite(value):
                return value
            if lenient:
                return None
            raise StorageError(f"{place} cannot be stored: the number is {value}, which JSON does not have")
        case BaseModel():
            # Not mode="json": it would turn NaN into null without a word.
            return _plain(value.model_dump(), place, lenient)
        case Mapping():
            return {clean_text(str(key)): _plain(item, f"{place}, {key}", lenient) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{place}[{index}]", lenient) for index, item in enumerate(value)]
        case _:
            return _plain(_converted(value, place), place, lenient)


def _converted(value: Any, place: str) -> Any:
    """Dates, paths, sets and the like as pydantic writes them."""
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, UnicodeError) as error:
        raise StorageError(f"{place} cannot be stored: {error}") from None


def pack(text: str) -> str | bytes:
    """The text as it is, or compressed when that is worth it."""
    return text if len(text) < COMPRESS_FROM else zlib.compress(text.encode())


def unpack(data: str | bytes) -> str:
    """What :func:`pack` was given."""
    return data if isinstance(data, str) else zlib.decompress(data).decode()
