"""Accuracy by where the evidence stands (lost in the middle): of placed questions, or of questions as given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mdqa.comparison.draws import Draws, Interval
from mdqa.comparison.observations import Series, arrays
from mdqa.statistics.clustered import cluster_numbers


@dataclass(frozen=True)
class AtPosition:
    """One position of the evidence, from 1: per series the mean with its interval, None where it has no question."""

    position: int
    entries: tuple[Interval | None, ...]


def by_position(series: Sequence[Series], positions: Mapping[str, int | None], metric: str) -> list[AtPosition]:
    """The mean of a metric at every position, with 95% intervals as in :mod:`mdqa.comparison.numbers`.

    ``positions`` says where the evidence of each question stands; questions without a place are left out. All positions
    are drawn at once over the same questions, a question at several positions whole.
    """
    observations = {o.question: o.source for one in series for o in one.observations}
    numbers = {question: number for number, question in enumerate(observations)}
    if not numbers:
        return []
    draws = Draws(cluster_numbers(list(observations.values())))
    where = np.array([positions.get(question) or 0 for question in numbers])
    found = sorted({place for place in where.tolist() if place > 0})
    values = [arrays(one, numbers).get((metric,), np.full(len(numbers), np.nan)) for one in series]
    columns = [[draws.mean(np.where(where == place, own, np.nan)) for own in values] for place in found]
    draws.draw()
    rows = [
        AtPosition(place, tuple(draws.interval(column) for column in own))
        for place, own in zip(found, columns, strict=True)
    ]
    return [row for row in rows if any(entry is not None for entry in row.entries)]
