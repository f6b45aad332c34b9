"""Who is right where: the answers of several entries to the same questions laid over each other.

Everything here knows right and wrong only. A question counts for two entries where both answered it and an accepted
answer is known; for all entries where all did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.comparison.entries import Compared
from mdqa.comparison.numbers import TESTED
from mdqa.comparison.observations import Series
from mdqa.comparison.positions import AtPosition, by_position
from mdqa.errors import InputError

Rights = Mapping[str, bool]
"""Whether an entry's answer is right, by question; without those that it did not answer or that have no answer."""


@dataclass(frozen=True)
class Pair:
    """The questions that two entries answered, by who is right."""

    both: tuple[str, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]
    neither: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of questions that both answered."""
        return len(self.both) + len(self.first_only) + len(self.second_only) + len(self.neither)


@dataclass(frozen=True)
class Pattern:
    """The questions on which exactly these entries are right; ``right`` has one place per entry."""

    right: tuple[bool, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Overlap:
    """Who is right where by one metric. ``rights`` and the places of ``pairs`` are in the order of the entries."""

    metric: str
    rights: tuple[Rights, ...]
    pairs: Mapping[tuple[int, int], Pair]
    patterns: tuple[Pattern, ...]
    positions: tuple[AtPosition, ...]


def overlap(compared: Compared, metric: str) -> Overlap:
    """Lay compared entries over each other; InputError for a metric that does not know right and wrong."""
    if metric not in TESTED:
        raise InputError(f"{metric!r} does not say what is right; there is: {', '.join(TESTED)}")
    found = tuple(rights(series, metric) for series in compared.series)
    places = range(len(found))
    return Overlap(
        metric=metric,
        rights=found,
        pairs={(one, two): pair(found[one], found[two]) for one in places for two in places if one != two},
        patterns=tuple(patterns(found)),
        positions=tuple(by_position(compared.series, compared.positions, metric)),
    )


def rights(series: Series, metric: str) -> dict[str, bool]:
    """Which questions a series got right by a metric that is 0 or 1; a share such as F1 counts as right above 0."""
    return {o.question: o.values[metric,] > 0 for o in series.observations if (metric,) in o.values}


def pair(first: Rights, second: Rights) -> Pair:
    """Two entries over the questions that both answered, in the first one's order."""
    common = [question for question in first if question in second]

    def where(one: bool, other: bool) -> tuple[str, ...]:
        return tuple(q for q in common if first[q] is one and second[q] is other)

    return Pair(where(True, True), where(True, False), where(False, True), where(False, False))


def patterns(columns: Sequence[Rights]) -> list[Pattern]:
    """The questions that all entries answered, by who is right: the most frequent first (an UpSet plot's rows).

    Equally frequent ones stand with more right entries first, then in the order of the entries.
    """
    found: dict[tuple[bool, ...], list[str]] = {}
    for question in columns[0] if columns else ():
        if all(question in column for column in columns):
            found.setdefault(tuple(column[question] for column in columns), []).append(question)
    order = sorted(found, key=lambda right: (-len(found[right]), -sum(right), [not one for one in right]))
    return [Pattern(right, tuple(found[right])) for right in order]


def pareto(points: Sequence[tuple[float, float] | None]) -> set[int]:
    """Places of the (cost, accuracy) points that no other beats: none is as cheap and as accurate, and better in one.

    Points without a number are on no front; equal points are on it together.
    """
    known = {place: point for place, point in enumerate(points) if point is not None}
    return {
        place
        for place, (cost, accuracy) in known.items()
        if not any(
            other_cost <= cost and other_accuracy >= accuracy and (other_cost, other_accuracy) != (cost, accuracy)
            for other_cost, other_accuracy in known.values()
        )
    }
