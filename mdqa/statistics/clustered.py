"""Bootstrap of many numbers at once over the same clusters (Field and Welsh 2007: whole clusters are drawn).

A cluster is what was drawn when the data was made: a question with all its placed versions, whose values are no
independent draws. Every number is a ratio of two sums over the drawn clusters, which covers means (values over how many
there are), paired differences and ratios of costs. All numbers see the same draws, so that what is computed from
several of them (an effect size) is drawn jointly too. With one value per cluster this is the ordinary bootstrap.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

_DRAWN_AT_ONCE = 1 << 20
"""As in :mod:`mdqa.statistics.bootstrap`: with the same draws a mean over questions gets the same interval."""

RESAMPLES = 10_000


def cluster_numbers(clusters: Sequence[Hashable]) -> np.ndarray:
    """(n,) the number of each value's cluster, counted from 0 in order of appearance."""
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    return np.array([numbers[cluster] for cluster in clusters], dtype=np.int64)


def cluster_sums(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """(clusters, k) sums of the rows of ``values`` (n, k) that belong to each cluster."""
    sums = np.zeros((int(clusters.max()) + 1 if clusters.size else 0, values.shape[1]))
    np.add.at(sums, clusters, values)
    return sums


def resampled_ratios(
    numerators: np.ndarray, denominators: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """Ratios of sums over clusters drawn with replacement.

    Args:
        numerators: (clusters, k) float64, finite, k at least 1.
        denominators: (clusters, k) float64, 0 or more; for a mean, how many values a cluster has.
        resamples: how often as many clusters as there are, are drawn.
        seed: of the draws.

    Returns:
        (resamples, k): one row per draw; NaN where a draw has nothing to divide by.

    ValueError for other shapes, nothing to draw or values that are not finite.
    """
    if numerators.shape != denominators.shape or numerators.ndim != 2 or not numerators.size:
        raise ValueError(f"need two tables of one shape: {numerators.shape} and {denominators.shape}")
    if not (np.isfinite(numerators).all() and np.isfinite(denominators).all()):
        raise ValueError("a value is not a finite number")
    places: dict[bytes, int] = {}  # most numbers have the same denominators; each kind is summed once
    which = np.array([places.setdefault(column.tobytes(), len(places)) for column in denominators.T])
    kinds = np.stack([np.frombuffer(kind, dtype=np.float64) for kind in places], axis=1)
    table = np.concatenate([numerators, kinds], axis=1)
    k = numerators.shape[1]
    ratios = np.empty((resamples, k))
    first = 0
    for counts in drawn(len(table), resamples, seed):
        sums = counts @ table
        below = sums[:, k:][:, which]
        block = ratios[first : first + len(counts)]
        np.divide(sums[:, :k], below, out=block, where=below > 0)
        block[below <= 0] = np.nan
        first += len(counts)
    return ratios


def percentiles(draws: np.ndarray, level: float = 0.95) -> tuple[float, float] | None:
    """The middle share ``level`` of draws (resamples,), NaN left out; None where none is left."""
    known = draws[~np.isnan(draws)]
    if not known.size:
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def drawn(size: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks (rows, size) of how often each cluster was drawn."""
    generator = np.random.default_rng(seed)
    rows = max(1, _DRAWN_AT_ONCE // size)
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        places = generator.integers(0, size, (count, size))
        places += np.arange(count)[:, None] * size
        yield np.bincount(places.ravel(), minlength=count * size).reshape(count, size).astype(np.float64)
