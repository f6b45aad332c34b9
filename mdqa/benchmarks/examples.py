"""The built-in examples: short questions of our own writing, each with something to look at.

They are data files beside this module (``examples/<number>_<name>.json``); people, places and figures are invented
except for the plain facts of ``common_belief``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from mdqa.errors import ConfigError
from mdqa.records import Question


@dataclass(frozen=True)
class Example:
    """An example with its name, its title and one sentence on what to look at."""

    name: str
    title: str
    teaches: str
    question: Question


def examples() -> tuple[Example, ...]:
    """All built-in examples in their order."""
    folder = files(__package__) / "examples"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return tuple(
        Example(data["name"], data["title"], data["teaches"], Question.model_validate(data["question"]))
        for data in loaded
    )


def example(name: str) -> Example:
    """The example of this name; ConfigError lists what exists."""
    known = {found.name: found for found in examples()}
    if name not in known:
        raise ConfigError(f"unknown example {name!r}; there is: {', '.join(known)}")
    return known[name]
