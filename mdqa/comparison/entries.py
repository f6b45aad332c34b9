"""Stored runs as the entries of a comparison: which run counts for which entry, and what is set side by side.

``evaluate`` names its entries; runs that were stored one by one have no such label. There an entry is a method with the
options that differ from its defaults, its profile, seed and model, and of several runs of it on one question the one
that is added first counts: add the newest first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mdqa.comparison.numbers import report as numbers_of
from mdqa.comparison.observations import Observation, Observer, Series
from mdqa.errors import InputError
from mdqa.interventions import META as INTERVENTIONS
from mdqa.records import RunResult
from mdqa.registry import METHODS, method_class
from mdqa.reporting import changed_options
from mdqa.reports.grouping import position_of
from mdqa.result_lines import Group

MOST_ENTRIES = 8
"""Entries that are compared at once at most: more colours and columns cannot be told apart."""

SHOWN_OPTION = 40
"""Characters of an option's value in a label."""


@dataclass(frozen=True)
class Entry:
    """What is compared. ``key`` is short and the same for equal entries; ``options`` differ from the defaults."""

    key: str
    label: str
    method: str
    model: str
    options: Mapping[str, Any]
    profile: str
    seed: int


@dataclass(frozen=True, slots=True)
class Counted:
    """The run of an entry that counts for a question. ``position``: where the evidence stands, from 1."""

    run: str
    observation: Observation
    position: int | None


Runs = Mapping[str, Counted]
"""The runs of an entry that count, by question."""


@dataclass(frozen=True)
class Entries:
    """Entries, those with most questions first, and their runs by the entry's key.

    ``older`` runs were passed over for another one of the same entry and question; the documents of ``changed`` runs
    were changed by hand, so they belong to no benchmark.
    """

    entries: tuple[Entry, ...]
    runs: Mapping[str, Runs]
    older: int = 0
    changed: int = 0

    def entry(self, key: str) -> Entry:
        """The entry with this key; InputError if there is none."""
        for entry in self.entries:
            if entry.key == key:
                return entry
        raise InputError("one of the entries is not there any more; compare anew")


class Counting:
    """Puts runs to their entries, one at a time; the runs themselves are let go."""

    def __init__(self) -> None:
        self._observer = Observer()
        self._entries: dict[str, Entry] = {}
        self._runs: dict[str, dict[str, Counted]] = {}
        self._older = self._changed = 0

    def add(self, question: str, result: RunResult) -> None:
        """Count a run unless one of its entry is there for this question; a failed one gives way to another one.

        ``question`` is a key that tells questions and versions of one apart: ids like "q1" are common. For the same
        reason a source is known by its id and words.
        """
        if INTERVENTIONS in result.question.meta:
            self._changed += 1
            return
        entry = _entry(result)
        self._entries.setdefault(entry.key, entry)
        own = self._runs.setdefault(entry.key, {})
        if question in own:
            self._older += 1
            if own[question].observation.error is None or result.status != "ok":
                return
        seen = self._observer.observe(result)
        source = f"{seen.source}\n{result.question.question}"
        own[question] = Counted(result.id, replace(seen, question=question, source=source), position_of(result))

    def made(self) -> Entries:
        """What the runs came to; what was added last stands first, so that the oldest run does, as in result files."""
        order = sorted(self._entries.values(), key=lambda one: (-len(self._runs[one.key]), one.label, one.key))
        runs = {key: dict(reversed(own.items())) for key, own in self._runs.items()}
        return Entries(_told_apart(order), runs, self._older, self._changed)


@dataclass(frozen=True)
class Compared:
    """Chosen entries over the same questions, or each over its own (``common`` is off).

    ``runs`` are those that the numbers rest on, per entry by question; ``everything`` are all runs of these entries.
    """

    entries: tuple[Entry, ...]
    runs: tuple[Runs, ...]
    everything: tuple[Runs, ...]
    series: tuple[Series, ...]
    common: bool

    @property
    def asked(self) -> list[str]:
        """The questions that any of the entries was asked."""
        return list(dict.fromkeys(question for own in self.everything for question in own))

    @property
    def questions(self) -> int:
        """How many questions the numbers rest on."""
        return len({question for own in self.runs for question in own})

    @property
    def positions(self) -> dict[str, int | None]:
        """Where the evidence of every question stands."""
        return {question: one.position for own in self.runs for question, one in own.items()}

    def place(self, key: str) -> int:
        """The place of the entry with this key; InputError if it is not among the compared ones."""
        for place, entry in enumerate(self.entries):
            if entry.key == key:
                return place
        raise InputError("the entry is not among the compared ones; compare anew")

    def failed(self, place: int) -> list[str]:
        """The questions on which an entry's run failed."""
        return [q for q, one in self.everything[place].items() if one.observation.error is not None]

    def missing(self, place: int) -> list[str]:
        """The questions that another entry was asked and this one was not."""
        return [question for question in self.asked if question not in self.everything[place]]

    def report(self) -> dict[str, Any]:
        """The numbers, unrounded, as ``evaluate`` has them (:func:`mdqa.comparison.numbers.report`)."""
        return numbers_of(self.series)


def first_choice(found: Entries) -> list[str]:
    """The keys of the entries to compare unless told: those with at least half as many questions as the largest.

    Answering directly comes first if it is among them: the others are set against the first.
    """
    most = max((len(own) for own in found.runs.values()), default=0)
    large = [entry for entry in found.entries if 2 * len(found.runs[entry.key]) >= most][:MOST_ENTRIES]
    plain = [entry for entry in large if entry.method == "direct" and not entry.options][:1]
    return [entry.key for entry in (*plain, *(entry for entry in large if entry not in plain))]


def choose(found: Entries, keys: Sequence[str], *, common: bool = True) -> Compared:
    """Entries side by side; InputError for none or too many. ``common``: over the questions that all answered only."""
    chosen = [found.entry(key) for key in dict.fromkeys(keys)]
    if not 1 <= len(chosen) <= MOST_ENTRIES:
        raise InputError(f"choose 1 to {MOST_ENTRIES} entries, not {len(chosen)}")
    runs = [found.runs[entry.key] for entry in chosen]
    kept: Sequence[Runs] = runs
    if common:
        done = [{q: one for q, one in own.items() if one.observation.error is None} for own in runs]
        shared = [question for question in done[0] if all(question in own for own in done)]
        kept = [{question: own[question] for question in shared} for own in done]
    return Compared(
        entries=tuple(chosen),
        runs=tuple(kept),
        everything=tuple(runs),
        series=tuple(_series(entry, own) for entry, own in zip(chosen, kept, strict=True)),
        common=common,
    )


def _entry(result: RunResult) -> Entry:
    options = changed_options(result.method, result.config)
    same = json.dumps([result.method, result.model, options, result.profile, result.seed], sort_keys=True, default=str)
    title = method_class(result.method).title if result.method in METHODS else result.method
    return Entry(
        key=hashlib.sha256(same.encode()).hexdigest()[:12],
        label=" ".join([title, *(f"{name}={_option(value)}" for name, value in options.items())]),
        method=result.method,
        model=result.model,
        options=options,
        profile=result.profile,
        seed=result.seed,
    )


def _option(value: Any) -> str:
    words = " ".join(str(value).split())
    return words if len(words) <= SHOWN_OPTION else words[: SHOWN_OPTION - 1] + "…"


def _told_apart(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with what else differs in the label, where two of a model are called the same."""
    found = []
    for entry in entries:
        like = [other for other in entries if (other.label, other.model) == (entry.label, entry.model)]
        more = [f"profile {entry.profile or 'none'}"] if len({other.profile for other in like}) > 1 else []
        more += [f"seed {entry.seed}"] if len({other.seed for other in like}) > 1 else []
        found.append(replace(entry, label=", ".join([entry.label, *more])))
    return tuple(found)


def _series(entry: Entry, runs: Runs) -> Series:
    settings = {
        "entry": entry.label,
        "model": entry.model,
        "method": entry.method,
        "config": dict(entry.options),
        "profile": entry.profile,
        "seed": entry.seed,
    }
    return Series(Group(entry.key, entry.model), settings, [one.observation for one in runs.values()])
