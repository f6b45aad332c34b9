"""Position sweep: the same question with the evidence at one position after the other, under one or several methods.

The gold documents are placed as :mod:`mdqa.benchmarks.placing` does (they stand together, the first of them at the
position); a document that somebody chose is moved alone. The others keep their order and the question its id, from
which seeds are made, so that nothing but the position differs along a curve. A curve of one question has no interval:
there is one run per point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mdqa.benchmarks.placing import place
from mdqa.errors import ConfigError, InputError
from mdqa.interventions import Move, Wanted, apply, plan
from mdqa.records import Question, RunResult, Stage
from mdqa.scoring.losses import own_stages, placing
from mdqa.studies.base import Outcome, Tally, Variant, attention_mass, outcome, tally

GOLD = ""
"""The choice of the documents that are marked gold, instead of a document's id."""

MEASURES: Mapping[str, str] = {
    "sub_em": "SubEM (1: right)",
    "f1": "F1 against the accepted answers",
    "attention": "Attention mass on what is moved",
    "reached": "Moved documents that were read",
    "rank": "Best rank of a moved document",
    "computed": "Prompt tokens computed",
    "seconds": "Time in seconds",
}
"""What can be drawn over the position."""


@dataclass(frozen=True)
class AtStage:
    """A stage as the moved documents saw it: how many of them came in and were kept, and the best of them.

    ``rank`` (from 1 among ``of``) and ``score`` are those of the stage's deciding signal, None without a number.
    """

    name: str
    title: str
    came: int
    kept: int
    signal: str
    rank: int | None
    of: int
    score: float | None


@dataclass(frozen=True)
class Point:
    """One method at one position. ``attention`` is summed over the moved documents; None where nothing looked."""

    method: str
    position: int
    outcome: Outcome
    same: bool = False
    stages: tuple[AtStage, ...] = ()
    attention: float | None = None

    def value(self, measure: str) -> float | None:
        """One of :data:`MEASURES`; None where it is not known.

        Time and computed tokens of a run that memory of earlier ones shortened say nothing about the position.
        """
        if self.outcome.state != "ok" or (measure in ("computed", "seconds") and not self.outcome.cost.own_work):
            return None
        match measure:
            case "sub_em":
                return self.outcome.sub_em
            case "f1":
                return self.outcome.f1
            case "attention":
                return self.attention
            case "reached":
                return float(self.stages[-1].kept) if self.stages else None
            case "rank":
                return next((float(stage.rank) for stage in self.stages if stage.rank is not None), None)
            case "computed":
                return float(self.outcome.cost.prefill_tokens_computed)
            case "seconds":
                return self.outcome.cost.seconds
            case _:
                raise ConfigError(f"there is no measure {measure!r}; there is: {', '.join(MEASURES)}")


@dataclass(frozen=True)
class PositionSweep:
    """The study as far as it got: a point per method and position, missing ones among them. ``moved``: their ids."""

    moved: tuple[str, ...]
    methods: tuple[str, ...]
    positions: tuple[int, ...]
    points: tuple[Point, ...] = field(repr=False)
    tally: Tally

    def curve(self, method: str) -> list[Point]:
        """A method's points by position."""
        return [point for point in self.points if point.method == method]

    def measures(self) -> list[str]:
        """Those of :data:`MEASURES` that at least one point has."""
        return [name for name in MEASURES if any(point.value(name) is not None for point in self.points)]


def moved_documents(question: Question, document: str = GOLD) -> tuple[str, ...]:
    """The ids of what is moved; InputError if no document is marked gold or the chosen one is not there."""
    if document == GOLD:
        if not question.gold_ids:
            raise InputError("no document is marked gold; choose the document to move", place="Document")
        return question.gold_ids
    if document not in question.document_ids:
        raise InputError(f"there is no document {document!r} in the question", place="Document")
    return (document,)


def last_position(question: Question, document: str = GOLD) -> int:
    """The last position that the moved documents fit into."""
    return len(question.documents) - len(moved_documents(question, document)) + 1


def every_position(question: Question, document: str = GOLD) -> tuple[int, ...]:
    """All positions."""
    return tuple(range(1, last_position(question, document) + 1))


def few_positions(question: Question, document: str = GOLD) -> tuple[int, ...]:
    """First, middle and last."""
    last = last_position(question, document)
    return tuple(sorted({1, (last + 1) // 2, last}))


def given_position(question: Question, document: str = GOLD) -> int | None:
    """The position at which the question is as it is; None where the moved documents do not stand together."""
    moved, ids = moved_documents(question, document), question.document_ids
    first = ids.index(moved[0])
    return first + 1 if ids[first : first + len(moved)] == moved else None


def read_positions(words: str, last: int) -> tuple[int, ...]:
    """Positions that somebody typed (``1, 5, 10``), sorted and once each; ConfigError names the bad part."""
    parts = [part for part in words.replace(";", ",").replace(" ", ",").split(",") if part]
    if not parts:
        raise ConfigError("positions: there is none; write for example 1, 5, 10")
    found = set()
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) < 7 and 1 <= int(part) <= last):
            raise ConfigError(f"positions: {part!r} is none; here they are 1 to {last}")
        found.add(int(part))
    return tuple(sorted(found))


def at_position(question: Question, document: str, position: int) -> Question:
    """The question with the moved documents at a position; its meta says that they were moved."""
    moved_documents(question, document)
    if document != GOLD:
        return apply(question, [Move(document=document, position=position)])
    order = place(question, position).document_ids
    return apply(question, plan(question, [Wanted(document=name) for name in order]))


def key(method: str, position: int) -> str:
    """The key of a member."""
    return f"{method}@{position}"


def variants(
    question: Question, methods: Sequence[str], positions: Sequence[int], document: str = GOLD
) -> tuple[Variant, ...]:
    """Every method at every position, position by position, so that a sweep that is stopped early compares methods.

    InputError for a position that is not there, ConfigError where nothing is chosen.
    """
    if not methods:
        raise ConfigError("methods: choose at least one")
    if not positions:
        raise ConfigError("positions: choose at least one")
    placed = {position: at_position(question, document, position) for position in positions}
    return tuple(
        Variant(key(method, position), method, placed[position]) for position in positions for method in methods
    )


def position_sweep(
    question: Question,
    methods: Sequence[str],
    positions: Sequence[int],
    results: Mapping[str, RunResult],
    document: str = GOLD,
) -> PositionSweep:
    """The study from those members that there are, by :func:`key`."""
    moved = moved_documents(question, document)
    points = tuple(
        _point(method, position, results.get(key(method, position)), moved, question)
        for method in methods
        for position in positions
    )
    return PositionSweep(
        moved, tuple(methods), tuple(positions), points, tally(point.outcome.state for point in points)
    )


def _point(method: str, position: int, run: RunResult | None, moved: tuple[str, ...], question: Question) -> Point:
    found = outcome(run)
    if run is None:
        return Point(method, position, found)
    mass = attention_mass(run)
    known = [mass.documents[name] for name in moved if name in mass.documents] if mass is not None else []
    return Point(
        method=method,
        position=position,
        outcome=found,
        same=run.question.documents == question.documents,
        stages=tuple(_at_stage(stage, moved) for stage in own_stages(run.stages) if stage.documents),
        attention=sum(known) if known else None,
    )


def _at_stage(stage: Stage, moved: tuple[str, ...]) -> AtStage:
    came = [name for name in moved if name in stage.documents]
    places = [placing(stage, name, moved) for name in came]
    ranked = [found for found in places if found.rank is not None]
    best = min(ranked, key=lambda found: found.rank or 0, default=None)
    return AtStage(
        name=stage.name,
        title=stage.title,
        came=len(came),
        kept=sum(name in stage.kept for name in moved),
        signal=best.signal if best else "",
        rank=best.rank if best else None,
        of=len(stage.documents),
        score=best.score if best else None,
    )
