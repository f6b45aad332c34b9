"""The tables of exported queues, and what their values have to be so that an import leaves nothing unreadable behind.

The log of labels is never changed or deleted: one row that cannot be read would spoil it for good.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from mdqa.errors import InputError, StorageError
from storage.annotations import KINDS
from storage.encoding import clean_text
from storage.labels import Action
from storage.queue_settings import LABELS, MAX_OVERLAP, ItemOrder, PracticeItem
from storage.queues import person_name, queue_name

MOST = 2**53
"""The highest id or number: SQLite gives no further id after 2**63 - 1, and others read numbers as floats."""


@dataclass(frozen=True)
class Table:
    """A table of the file: its columns with their types, and which of them point at a row of another table."""

    columns: Mapping[str, type]
    points_at: Mapping[str, str]


TABLES: Mapping[str, Table] = {
    "queues": Table({"id": int, "name": str, "created": str, "note": str}, {}),
    "queue_items": Table({"id": int, "queue": int, "run": str}, {"queue": "queues"}),
    "queue_log": Table(
        {"id": int, "item": int, "present": int, "who": str, "note": str, "created": str}, {"item": "queue_items"}
    ),
    "queue_settings": Table(
        {
            **{"id": int, "queue": int, "version": int, "guidelines": str, "overlap": int, "item_order": str},
            **{"labels": str, "practice_items": str, "made_by": str, "created": str},
        },
        {"queue": "queues"},
    ),
    "labels": Table(
        {
            **{"id": int, "token": str, "created": str, "action": str, "annotator": str, "queue": int, "item": int},
            **{"run": str, "label": str, "evidence": str, "note": str, "version": int, "practice": int},
            **{"seconds": float, "idle_seconds": float, "swapped": int},
        },
        {"queue": "queues", "item": "queue_items"},
    ),
    "assignments": Table(
        {
            **{"id": int, "token": str, "item": int, "annotator": str, "swapped": int, "practice": int},
            **{"version": int, "state": str, "label": str, "entry": int, "given": str, "expires": str},
        },
        {"item": "queue_items", "entry": "labels"},
    ),
    "annotations": Table(
        {"id": int, "token": str, "created": str, "annotator": str, "run": str, "kind": str, "value": str}, {}
    ),
}
"""What the file holds beside runs, in the order in which it is written and read."""

OPTIONAL = {("assignments", "entry")}


def _of(*words: str) -> Callable[[Any], bool]:
    return lambda value: value in words


def _is_name(read: Callable[[str], str]) -> Callable[[Any], bool]:
    return lambda value: read(value) == value


def _is_moment(value: str) -> bool:
    return datetime.fromisoformat(value).tzinfo is not None


def _is_list(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def work(value: str) -> bool:
        found = json.loads(value)
        return isinstance(found, list) and all(isinstance(one, str) and test(one) for one in found)

    return work


def _are_practice(value: str) -> bool:
    items = [PracticeItem(**item) for item in json.loads(value)]
    return all(isinstance(item.feedback + item.run, str) and item.label in LABELS for item in items)


def _is_verdict(value: str) -> bool:
    found = json.loads(value)
    return found is None or type(found) in KINDS.values()


_MOMENT = ("a time with its zone", _is_moment)
_PERSON = ("a name of 1 to 200 characters without blanks around it", _is_name(person_name))
_LABEL = (f"empty or one of {', '.join(LABELS)}", _of("", *LABELS))

RULES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("created", "given", "expires"), _MOMENT),
    **dict.fromkeys(("annotator", "who", "made_by"), _PERSON),
    **dict.fromkeys(("present", "practice", "swapped"), ("0 or 1", lambda value: value in (0, 1))),
    **dict.fromkeys(("labels.label", "assignments.label"), _LABEL),
    **dict.fromkeys(("seconds", "idle_seconds"), ("a time", lambda value: 0 <= value <= MOST)),
    "queues.name": ("a name of 1 to 100 characters with single blanks", _is_name(queue_name)),
    "overlap": (f"between 1 and {MAX_OVERLAP}", lambda value: 1 <= value <= MAX_OVERLAP),
    "item_order": (f"one of {', '.join(get_args(ItemOrder))}", _of(*get_args(ItemOrder))),
    "queue_settings.labels": ("a JSON list of labels", _is_list(_of(*LABELS))),
    "practice_items": ("a JSON list of practice items", _are_practice),
    "action": (f"one of {', '.join(get_args(Action))}", _of(*get_args(Action))),
    "evidence": ("a JSON list of texts", _is_list(lambda _: True)),
    "state": ("one of open, labelled, skipped", _of("open", "labelled", "skipped")),
    "kind": (f"one of {', '.join(KINDS)}", _of(*KINDS)),
    "annotations.value": ("true, false or null, as JSON", _is_verdict),
}
"""By column, or table and column: what a value is, and whether one is that."""


def checked_row(kind: str, line: dict[str, Any], place: str) -> dict[str, Any]:
    """The row of a line; InputError names a field that is missing, unknown or cannot be kept."""
    columns = TABLES[kind].columns
    for field in (*columns, *line):
        if field not in line:
            raise InputError("is missing", place=f"{place}, {field}")
        if field not in columns:
            raise InputError(f"is no field of {kind}; there is: {', '.join(columns)}", place=f"{place}, {field}")
        value, wanted = line[field], columns[field]
        if value is None and (kind, field) in OPTIONAL:
            continue
        fits = isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(value, bool)
        if not fits:
            raise InputError(f"expected {wanted.__name__}, found {value!r:.80}", place=f"{place}, {field}")
        if reason := _wrong(kind, field, value):
            raise InputError(f"expected {reason}, found {value!r:.80}", place=f"{place}, {field}")
    return line


def _wrong(kind: str, field: str, value: Any) -> str:
    """What the value should be; empty if it is that."""
    if isinstance(value, str) and clean_text(value) != value:
        return "a text without NUL and lone surrogates"
    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if isinstance(value, int) and not (field in ("id", "queue", "item", "entry")) <= value <= MOST:
        return f"a number up to {MOST}"
    words, fits = RULES.get(f"{kind}.{field}") or RULES.get(field) or ("", lambda _: True)
    try:
        return "" if fits(value) else words
    except (ValueError, TypeError, StorageError, RecursionError):
        return words
