"""The numbers of a comparison with their intervals: they are put down first and then drawn all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdqa.statistics.clustered import cluster_sums, percentiles, resampled_ratios

Interval = dict[str, float | int | None]
"""``mean``, ``low``, ``high`` and ``n``, the number of values behind them, ready for JSON."""


@dataclass(frozen=True)
class Column:
    """A number that is put down: its place among all, what it is, and how many values it rests on."""

    index: int
    value: float
    n: int


class Draws:
    """Numbers over the same questions. ``clusters``: (questions,) the cluster of each."""

    def __init__(self, clusters: np.ndarray) -> None:
        self._clusters = clusters
        self._above: list[np.ndarray] = []
        self._below: list[np.ndarray] = []
        self._drawn = np.empty((0, 0))

    def mean(self, values: np.ndarray) -> Column | None:
        """The mean of (questions,) values, NaN left out; None where there is no other."""
        return self.ratio(values, np.where(np.isnan(values), np.nan, 1.0))

    def ratio(self, above: np.ndarray, below: np.ndarray) -> Column | None:
        """``sum(above) / sum(below)`` over the questions that have both; None if that divides by 0."""
        known = ~(np.isnan(above) | np.isnan(below))
        if not known.any() or not below[known].sum() > 0:
            return None
        self._above.append(np.where(known, above, 0.0))
        self._below.append(np.where(known, below, 0.0))
        value = float(above[known].sum() / below[known].sum())
        return Column(len(self._above) - 1, value, int(known.sum()))

    def draw(self) -> None:
        """Draw everything that was put down."""
        if self._above:
            sums = [cluster_sums(np.stack(side, axis=1), self._clusters) for side in (self._above, self._below)]
            self._drawn = resampled_ratios(*sums)

    def samples(self, column: Column) -> np.ndarray:
        """The number in every draw, (resamples,)."""
        return self._drawn[:, column.index]

    def interval(self, column: Column | None) -> Interval | None:
        """The number with its 95% interval."""
        return None if column is None else interval(column.value, self.samples(column), column.n)


def interval(value: Any, samples: np.ndarray, n: int) -> Interval:
    """A value with the 95% interval of its draws."""
    low, high = percentiles(samples) or (None, None)
    return {"mean": float(value), "low": low, "high": high, "n": n}
