"""Studies as JSON-ready objects: documents by their ids, everything else as the records have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdqa.records import Record
from mdqa.studies.leave_one_out import LeaveOneOut
from mdqa.studies.position_sweep import PositionSweep


def leave_one_out_line(found: LeaveOneOut) -> dict[str, Any]:
    """The study; a row's ``document`` is the id of what was left out, beside its gold mark."""
    line: dict[str, Any] = to_json(found)
    for row, kept in zip(line["rows"], found.rows, strict=True):
        row |= {"document": kept.document.id, "gold": kept.document.gold}
    return line


def sweep_line(found: PositionSweep) -> dict[str, Any]:
    """The study, with a point per method and position."""
    line: dict[str, Any] = to_json(found)
    return line


def to_json(value: Any) -> Any:
    """Records, frozen dataclasses, tuples and mappings as JSON-ready values."""
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(entry) for entry in value]
    names = getattr(value, "__dataclass_fields__", None)
    return {name: to_json(getattr(value, name)) for name in names} if names else value
