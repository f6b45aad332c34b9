"""The built-in examples: short questions of our own writing, each with something to look at.

They are data files beside this module (``examples/<number>_<name>.json``); people, places and figures are invented
except for the plain facts of ``common_belief``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from mdqa.benchmarks.names import EXAMPLES, named
from mdqa.errors import ConfigError
from mdqa.records import Question


@dataclass(frozen=True)
class Example:
    """An example with its name, its title and one sentence on what to look at.

    ``shows``: for after the run, what is interesting in it, naming documents by their titles. ``look``: the parts of a
    result where that is seen, the best one first.
    """

    name: str
    title: str
    teaches: str
    shows: str
    look: tuple[str, ...]
    question: Question


def examples() -> tuple[Example, ...]:
    """All built-in examples in their order."""
    folder = files(__package__) / "examples"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return tuple(
        Example(
            data["name"],
            data["title"],
            data["teaches"],
            data["shows"],
            tuple(data["look"]),
            named(Question.model_validate(data["question"]), EXAMPLES),
        )
        for data in loaded
    )


def example_of(question: Question) -> Example | None:
    """The example that a question is, whatever was done to its documents; None for any other question."""
    name = question.id.removeprefix("example-")
    if name == question.id:
        return None
    return next((found for found in examples() if (found.name, found.question.id) == (name, question.id)), None)


def example(name: str) -> Example:
    """The example of this name; ConfigError lists what exists."""
    known = {found.name: found for found in examples()}
    if name not in known:
        raise ConfigError(f"unknown example {name!r}; there is: {', '.join(known)}")
    return known[name]
