"""From a method's configuration class to the fields of a form, and from the form's values back; no Gradio here."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mdqa.errors import ConfigError

SPELLED: Mapping[str, str] = {"atf": "ATF", "cot": "CoT", "nf": "No-Filter", "pde": "PDE", "sda": "SDA"}
"""Parts of options' names and choices that are abbreviations."""

Kind = Literal["switch", "choice", "whole", "number", "text", "list"]


@dataclass(frozen=True)
class FormField:
    """One option: ``optional`` ones may be left empty. ``default`` of a list is its text, parts joined by commas."""

    name: str
    label: str
    help: str
    kind: Kind
    default: Any
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    optional: bool = False


def form_fields(config: type[BaseModel]) -> tuple[FormField, ...]:
    """The fields of a configuration class in their order, defaults filled in."""
    return tuple(_field(name, info) for name, info in config.model_fields.items())


def _field(name: str, info: FieldInfo) -> FormField:
    annotation, optional = _without_none(info.annotation)
    kind, choices = _kind(annotation)
    default = info.get_default(call_default_factory=True)
    low, high = _limits(info)
    shown = ", ".join(_show(part) for part in default) if kind == "list" and default is not None else default
    label = info.title or spelled(name)
    return FormField(
        name, label[:1].upper() + label[1:], _help(info, low, high), kind, shown, choices, low, high, optional
    )


def spelled(name: object) -> str:
    """The name of an option or a choice in words: ``sda_cot`` is SDA CoT."""
    return " ".join(SPELLED.get(part, part) for part in str(name).split("_"))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(parts) == 1:
            return parts[0], True
    return annotation, False


def _kind(annotation: Any) -> tuple[Kind, tuple[Any, ...]]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin is Literal:
        return "choice", typing.get_args(annotation)
    if origin in (tuple, list):
        return "list", ()
    if annotation is bool:
        return "switch", ()
    if annotation is int:
        return "whole", ()
    return ("number", ()) if annotation is float else ("text", ())


def _limits(info: FieldInfo) -> tuple[float | None, float | None]:
    low = high = None
    for part in info.metadata:
        if isinstance(part, annotated_types.Ge):
            low = float(part.ge)  # type: ignore[arg-type]
        if isinstance(part, annotated_types.Gt):
            low = float(part.gt)  # type: ignore[arg-type]
        if isinstance(part, annotated_types.Le):
            high = float(part.le)  # type: ignore[arg-type]
        if isinstance(part, annotated_types.Lt):
            high = float(part.lt)  # type: ignore[arg-type]
    return low, high


def _help(info: FieldInfo, low: float | None, high: float | None) -> str:
    words = (info.description or "").strip()
    if low is not None and high is not None:
        words += f" ({low:g} to {high:g})"
    elif low is not None:
        words += f" (from {low:g})"
    return words.strip()


def _show(part: Any) -> str:
    return f"{part:g}" if isinstance(part, float) else str(part)


def read_form(config: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the configuration class takes them: empty ones left out or None, lists split, numbers typed.

    Raises:
        ConfigError: a value that is not of its option's kind; unknown options are left to the class.
    """
    known = {field.name: field for field in form_fields(config)}
    return {name: _value(known[name], value) if name in known else value for name, value in values.items()}


def _value(field: FormField, value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip() and field.kind != "text"):
        if field.optional:
            return None
        raise ConfigError(f"option {field.label!r} is empty; its default is {field.default}")
    if field.kind == "whole":
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ConfigError(f"option {field.label!r} must be a whole number, got {value!r}")
        return int(value)
    if field.kind == "list":
        return [part.strip() for part in str(value).split(",") if part.strip()]
    return value
