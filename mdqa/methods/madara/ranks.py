"""Ranks and rank correlation of small lists of scores. Pure.

Scores from 0 to 5 tie all the time, so ties are the rule here: equal values share the mean of their ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Ascending ranks from 0 to n - 1; equal values get the mean of the ranks they cover."""
    array = np.asarray(values, dtype=float)  # (n,)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # one past the last rank of every distinct value
    return [float(r) for r in (last - (counts + 1) / 2)[inverse]]


def ordinal_ranks(values: Sequence[float]) -> list[float]:
    """Ascending ranks from 0 to n - 1; of equal values the one that comes first in the list has the lower rank."""
    order = np.argsort(np.asarray(values, dtype=float), kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    return [float(r) for r in ranks]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation with mid-ranks, from -1 to 1.

    NaN where it is undefined: fewer than two pairs, or a list whose values are all equal. ValueError if the lengths
    differ.
    """
    if len(first) != len(second):
        raise ValueError(f"lists of {len(first)} and {len(second)} values cannot be correlated")
    if len(first) < 2:
        return math.nan
    a, b = np.array(mid_ranks(first)), np.array(mid_ranks(second))  # (n,)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return min(max(float(a @ b) / scale, -1.0), 1.0) if scale else math.nan
