"""Between values and what SQLite can keep: text without surrogates and NUL, strict JSON, compressed long text."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from mdqa.errors import StorageError

COMPRESS_FROM = 4096
"""JSON texts of at least this many characters are stored compressed (a trace repeats the documents per prompt)."""


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


def to_json(value: Any, place: str) -> str:
    """Strict JSON of records and plain values, every text cleaned; ``place`` (say, "run x") begins a complaint.

    Raises:
        StorageError: a number is not finite, or a value has no JSON form; the text says which.
    """
    return json.dumps(_plain(value, place), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def storable(values: Mapping[str, Any], place: str) -> Any:
    """Free-form values that came with somebody's data: as JSON has them, with null for NaN and infinity."""
    try:
        return _plain(to_jsonable_python(dict(values), inf_nan_mode="constants"), place, lenient=True)
    except PydanticSerializationError as error:
        raise StorageError(f"{place} cannot be stored: {error}") from None


def _plain(value: Any, place: str, *, lenient: bool = False) -> Any:
    """The value as JSON types. ``lenient``: null where a number is not finite, instead of an error."""
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
            return _plain(value.model_dump(), place, lenient=lenient)
        case Mapping():
            return {
                clean_text(str(key)): _plain(item, f"{place}, {key}", lenient=lenient) for key, item in value.items()
            }
        case list() | tuple():
            return [_plain(item, f"{place}[{index}]", lenient=lenient) for index, item in enumerate(value)]
        case _:
            raise StorageError(f"{place} cannot be stored: {type(value).__name__} has no JSON form")


def pack(text: str) -> str | bytes:
    """The text as it is, or compressed when that is worth it."""
    return text if len(text) < COMPRESS_FROM else zlib.compress(text.encode())


def unpack(data: str | bytes) -> str:
    """What :func:`pack` was given."""
    return data if isinstance(data, str) else zlib.decompress(data).decode()
