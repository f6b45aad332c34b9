"""What an evaluation runs: its entries, each a method with options, over every question at every gold position.

A :class:`Task` is one run: one question for one entry. Its key says which line of the result file is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mdqa.benchmarks.placing import Placement, Setting, place
from mdqa.errors import ConfigError, InputError
from mdqa.methods.base import MethodConfig
from mdqa.records import Profile, Question
from mdqa.registry import METHODS, method_class

PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "vanilla": ("direct", {}),
        "oracle": ("direct", {"context": "gold_only"}),
        "closed_book": ("direct", {"context": "none"}),
        "bm25": ("retrieve_read", {"ranker": "bm25"}),
        "dense": ("retrieve_read", {"ranker": "dense"}),
        "hybrid": ("retrieve_read", {"ranker": "rrf"}),
    }
)
"""Names of the field for a method with options: those of DuQUAD's tables, CAFE's oracle, closed-book."""

TaskKey = tuple[str, str]
"""An entry's label and the id of a question, the placed one where gold is placed."""


@dataclass(frozen=True)
class Entry:
    """A method with its options under a label; ``profile`` is found when the model is known."""

    label: str
    method: str
    config: MethodConfig
    profile_name: str = ""
    profile: Profile | None = None


@dataclass(frozen=True)
class Task:
    """One run: the entry with this label answers ``item``."""

    entry: str
    item: Question

    @property
    def key(self) -> TaskKey:
        """What tells the task's result line from the others of its model."""
        return self.entry, self.item.id


def make_entry(name: str, options: Mapping[str, Any], *, label: str = "", profile: str = "") -> Entry:
    """An entry from a method's name or one of ``PRESETS``, with options that win over the preset's.

    ConfigError names what does not exist or cannot be: the method, an option, a profile that is of no use.
    """
    method, preset = PRESETS.get(name, (name, {}))
    if method not in METHODS:
        raise ConfigError(f"unknown method {name!r}; there is: {', '.join((*METHODS, *PRESETS))}")
    cls = method_class(method)
    if profile and not cls.uses_profile:
        raise ConfigError(f"entry {label or name!r}: the method {method} uses no profile")
    try:
        config = cls.Config.parse({**preset, **options})
    except ConfigError as problem:
        raise ConfigError(f"entry {label or name!r}: {problem}") from None
    given = (f"{key}={value}" for key, value in options.items())
    return Entry(label or " ".join((name, *given)), method, config, profile)


def check_labels(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries; ConfigError if there is none, or if two have the same label."""
    if not entries:
        raise ConfigError("there is nothing to evaluate; name at least one method")
    labels = [entry.label for entry in entries]
    if repeated := next((label for label in labels if labels.count(label) > 1), None):
        raise ConfigError(f"two entries are called {repeated!r}; give one another label: LABEL=METHOD")
    return tuple(entries)


def placements(positions: Sequence[int], documents: Sequence[int], setting: Setting = "given") -> list[Placement]:
    """Every position with every number of documents in a setting; one that changes nothing where none is given.

    ConfigError for what excludes each other: a setting other than ``given`` leaves no evidence to place.
    """
    return [Placement(position, count, setting) for count in documents or (None,) for position in positions or (None,)]


def check_closed_book(entries: Iterable[Entry]) -> None:
    """ConfigError names the first entry whose method cannot answer without documents."""
    for entry in entries:
        if not method_class(entry.method).closed_book:
            what = f"entry {entry.label!r}: the method {entry.method} cannot answer without documents"
            raise ConfigError(f"--setting closed_book: {what}")


def placed_questions(
    questions: Iterable[Question], wanted: Sequence[Placement], on_left_out: Callable[[str], None]
) -> list[Question]:
    """Every question with its documents placed in every way, question by question.

    ``on_left_out`` is told of each that cannot be placed so, with the reason.
    """
    found: list[Question] = []
    for item in questions:
        for placement in wanted:
            try:
                found.append(place(item, placement.position, placement.documents, placement.setting))
            except InputError as problem:
                on_left_out(str(problem))
    return found


def tasks(entries: Iterable[Entry], questions: Sequence[Question]) -> list[Task]:
    """All runs in their order, which is that of the finished result file: entry by entry, question by question."""
    return [Task(entry.label, item) for entry in entries for item in questions]
