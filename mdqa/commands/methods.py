"""List the methods with their options."""

from __future__ import annotations

import argparse
from typing import Any

from mdqa.commands.listing import add_output_argument, show
from mdqa.methods.base import MethodConfig
from mdqa.registry import CALIBRATIONS, METHODS, method_class


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the methods."""
    return show([_row(name) for name in METHODS], args.output, empty="there is no method")


def _row(name: str) -> dict[str, Any]:
    cls = method_class(name)
    return {
        "name": name,
        "title": cls.title,
        "summary": cls.summary,
        "needs": list(cls.needs(cls.Config())),
        "profile": _profile(name, uses=cls.uses_profile, requires=cls.requires_profile),
        "options": options(cls.Config),
    }


def _profile(name: str, *, uses: bool, requires: bool) -> str:
    made = "made by calibrate" if name in CALIBRATIONS else ""
    return f"{'needed' if requires else 'used if there is one'}, {made}".rstrip(", ") if uses else ""


def options(config: type[MethodConfig]) -> dict[str, str]:
    """Every option with its default, type and description in one line."""
    properties = config.model_json_schema().get("properties", {})
    defaults = config().model_dump(mode="json")
    return {
        name: f"{defaults[name]!r} ({_kind(properties[name])}) {field.description or ''}".strip()
        for name, field in config.model_fields.items()
    }


def _kind(schema: dict[str, Any]) -> str:
    """The type and limits of an option, for people."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    limits = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
    }
    found = [text.format(schema[key]) for key, text in limits.items() if key in schema]
    return ", ".join([str(schema.get("type", "value")), *found])
