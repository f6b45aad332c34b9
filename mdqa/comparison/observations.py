"""From result lines to what is compared: per entry and model one series of observations, without any texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdqa.benchmarks.placing import Placement, read_suffix, source_id
from mdqa.records import Question, RunResult
from mdqa.reporting import changed_options, named_stages
from mdqa.result_lines import Group
from mdqa.scoring.answers import HEADLINE, Accepted
from mdqa.scoring.evidence import gold_recall

COSTS = ("llm_calls", "prompt_tokens", "prefill_tokens_computed", "cached_tokens", "completion_tokens", "seconds")
"""The costs of a run that are compared: fields of :class:`~mdqa.records.Cost`."""

SHORTENED = ("prefill_tokens_computed", "cached_tokens", "seconds")
"""Those that a run does not have whose work was shortened by what the program remembered of earlier runs."""

Name = tuple[str, ...]
"""The name of a number: ("em",), ("seconds",), ("stage", the stage's name, "gold_recall" or "kept")."""


_METRIC_NAMES: tuple[Name, ...] = tuple((name,) for name in HEADLINE)
_COST_NAMES: tuple[tuple[Name, str], ...] = tuple(((name,), name) for name in COSTS)
_AS_GIVEN = Placement()


@dataclass(frozen=True, slots=True)
class Observation:
    """One run. ``values`` are its numbers by name, none if it failed; ``error`` is then the error's type and text.

    ``remembered``: it was shortened by what the program remembered of earlier runs, and lacks :data:`SHORTENED`.
    """

    question: str
    source: str
    placement: Placement
    has_answers: bool
    has_gold: bool
    values: dict[Name, float]
    error: tuple[str, str] | None = None
    remembered: bool = False


@dataclass
class Series:
    """The runs of one entry and model, in file order, with what they have in common."""

    group: Group
    settings: dict[str, Any]
    observations: list[Observation] = field(default_factory=list)

    def at(self, placement: Placement) -> Series:
        """The part whose documents were placed so."""
        return Series(self.group, self.settings, [o for o in self.observations if o.placement == placement])


class Observer:
    """Makes observations; what many runs share is made once: accepted answers in normal form, names of stages."""

    def __init__(self) -> None:
        self._accepted: dict[str, Accepted] = {}
        self._stages: dict[str, tuple[Name, Name]] = {}

    def observe(self, result: RunResult) -> Observation:
        """The numbers of a run; answer metrics only where there are accepted answers, recall only with evidence."""
        item, source = result.question, source_id(result.question)
        error = None if result.error is None else (result.error.type, result.error.message)
        return Observation(
            question=item.id,
            source=source,
            placement=placement_of(item),
            has_answers=bool(item.answers),
            has_gold=bool(gold := item.gold_ids),
            values=self._values(result, source, gold) if result.status == "ok" else {},
            error=error if error or result.status == "ok" else (result.status, ""),
            remembered=result.status == "ok" and not result.cost.own_work,
        )

    def _values(self, result: RunResult, source: str, gold: tuple[str, ...]) -> dict[Name, float]:
        values: dict[Name, float] = {}
        if result.question.answers:
            if source not in self._accepted:
                self._accepted[source] = Accepted(result.question.answers)
            scores = self._accepted[source].score(result.answer)
            values.update(zip(_METRIC_NAMES, scores, strict=True))
        for name, stage in named_stages(result):
            if name not in self._stages:
                self._stages[name] = ("stage", name, "gold_recall"), ("stage", name, "kept")
            recall, kept = self._stages[name]
            if (share := gold_recall(stage.kept, gold)) is not None:
                values[recall] = share
            values[kept] = float(len(stage.kept))
        for key, cost in _COST_NAMES:
            if cost not in SHORTENED or result.cost.own_work:
                values[key] = float(getattr(result.cost, cost))
        return values


def series_of(results: Iterable[tuple[Group, RunResult]]) -> list[Series]:
    """The series of a result file, in order of appearance; the results are let go one by one."""
    found: dict[Group, Series] = {}
    observer = Observer()
    for group, result in results:
        series = found.get(group)
        if series is None:
            settings = {
                "entry": group.entry or result.method,
                "model": result.model,
                "method": result.method,
                "config": changed_options(result.method, result.config),
                "profile": result.profile,
                "seed": result.seed,
            }
            series = found[group] = Series(group, settings)
        series.observations.append(observer.observe(result))
    return list(found.values())


def placement_of(item: Question) -> Placement:
    """How a question's documents were placed; the empty placement for one that was not."""
    found = read_suffix(item.id) if "placed" in item.meta else None
    return found[1] if found and found[0] == source_id(item) else _AS_GIVEN


def arrays(series: Series, numbers: dict[str, int]) -> dict[Name, np.ndarray]:
    """Every number of a series as (questions,) float64, NaN where a question has none.

    ``numbers`` counts the questions of all compared series; those of this one are among them.
    """
    found: dict[Name, np.ndarray] = {}
    for observation in series.observations:
        place = numbers[observation.question]
        for name, value in observation.values.items():
            if name not in found:
                found[name] = np.full(len(numbers), np.nan)
            found[name][place] = value
    return found
