"""Bootstrap intervals of means over questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_DRAWN_AT_ONCE = 1 << 20
"""Values drawn at once (16 MB with their indices), so that memory stays small however many questions there are."""


@dataclass(frozen=True)
class Interval:
    """The mean of ``n`` values and the interval [low, high] around it, in the values' own unit."""

    mean: float
    low: float
    high: float
    n: int


def mean_interval(values: Sequence[float], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Percentile bootstrap of the mean (Efron 1979).

    The values are drawn ``resamples`` times with replacement; the middle share ``level`` of the means is the interval.
    Equal values, and so a single one, give an interval of length zero: it says how far the mean would move with other
    questions like these, and one question tells nothing about that. Look at ``n`` before you trust it.

    ValueError for no values, a value that is not finite, ``level`` outside (0, 1) or fewer than one resample.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not data.size:
        raise ValueError("the mean of no values has no interval; give at least one value")
    if not np.isfinite(data).all():
        raise ValueError(f"value {int(np.argmin(np.isfinite(data)))} is not a finite number")
    if not 0 < level < 1 or resamples < 1:
        raise ValueError(f"level must lie between 0 and 1 and resamples above 0, got {level} and {resamples}")
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    rows = max(1, _DRAWN_AT_ONCE // data.size)
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        drawn = data[generator.integers(0, data.size, (count, data.size))]  # (count, n)
        means[first : first + count] = drawn.mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(data.mean()), float(low), float(high), int(data.size))


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """The interval of the mean of ``first - second``, value by value over the same questions.

    Options and errors as :func:`mean_interval`; ValueError also for lists of different lengths. Zero outside the
    interval means a difference at this level.
    """
    if len(first) != len(second):
        raise ValueError(f"paired values must be as many: {len(first)} and {len(second)}")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return mean_interval(differences.tolist(), level=level, resamples=resamples, seed=seed)


def ratio_interval(
    sums: Sequence[float],
    counts: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The interval of ``sum(sums) / sum(counts)``, drawing questions whole.

    For means over things that come in groups: a question has several documents, which are no independent draws.
    ``n`` is the number of questions. Draws in which nothing is counted are left out.

    ValueError for lists of different lengths, values that are not finite, and if nothing is counted at all.
    """
    data = np.asarray([sums, counts] if len(sums) == len(counts) else [], dtype=np.float64)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise ValueError("sums and counts must be as many, and finite numbers")
    if not 0 < level < 1 or resamples < 1:
        raise ValueError(f"level must lie between 0 and 1 and resamples above 0, got {level} and {resamples}")
    totals = data.sum(axis=1)
    if not totals[1] > 0 or (data[1] < 0).any():
        raise ValueError("the ratio of nothing has no interval; counts are 0 or more, one of them above 0")
    size = data.shape[1]
    generator = np.random.default_rng(seed)
    drawn = np.empty((2, resamples))
    rows = max(1, _DRAWN_AT_ONCE // size)
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        places = generator.integers(0, size, (count, size))
        drawn[:, first : first + count] = data[:, places].sum(axis=2)
    some = drawn[1] > 0
    low, high = np.quantile(drawn[0, some] / drawn[1, some], [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(totals[0] / totals[1]), float(low), float(high), size)
