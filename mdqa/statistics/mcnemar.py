"""McNemar's exact test: do two methods, asked the same questions, get different shares of them right?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class McNemar:
    """The test's result over ``n`` pairs; only the discordant ones count.

    ``b``: pairs that only the first got right. ``c``: pairs that only the second got right. ``p``: two-sided, 0 to 1.
    """

    b: int
    c: int
    p: float
    n: int


def exact_p(b: int, c: int) -> float:
    """Two-sided p-value of ``b`` against ``c`` discordant pairs (McNemar 1947, exact as in MADARA, appendix G.3).

    If the methods are equally good, ``b`` is a draw from Binomial(b + c, 1/2). Without discordant pairs nothing
    speaks against that: 1. ValueError for negative counts.
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts of discordant pairs are 0 or more, got b = {b} and c = {c}")
    if b + c == 0:
        return 1.0
    from scipy.special import bdtr  # noqa: PLC0415 (time that most of the program need not wait for)

    return min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5)))  # both tails of a symmetric distribution


def sign_flip_p(differences: Sequence[int]) -> float:
    """Two-sided p-value of whole-number differences of clusters, each of which may as well have the other sign.

    The exact randomisation test of matched pairs (Fisher 1935) on their sum: the share of all choices of signs whose
    sum is as far from 0. With differences of 1 only, it is :func:`exact_p`. Zeros do not count.
    """
    counts = Counter(abs(difference) for difference in differences if difference)
    if set(counts) <= {1}:
        b = sum(difference > 0 for difference in differences)
        return exact_p(b, counts[1] - b)
    chances = np.ones(1)  # of the sums -reach, -reach + 1, ..., reach
    for size, count in counts.items():
        step = np.zeros(2 * size * count + 1)
        step[:: 2 * size] = _fair_chances(count)
        chances = np.convolve(chances, step)
    reach = len(chances) // 2
    observed = abs(sum(differences))
    return min(1.0, float(chances[np.abs(np.arange(-reach, reach + 1)) >= observed].sum()))


def _fair_chances(n: int) -> np.ndarray:
    """(n + 1,) the chance of 0, 1, ..., n heads in ``n`` fair throws."""
    from scipy.special import gammaln  # noqa: PLC0415 (as above)

    k = np.arange(n + 1)
    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) - n * np.log(2))


def mcnemar(first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable] | None = None) -> McNemar:
    """The test for two lists of 0 and 1 (wrong and right) over the same questions in the same order.

    With ``clusters``, pairs of one cluster (versions of one question) are no independent draws: ``b`` and ``c`` still
    count pairs, and ``p`` is that of :func:`sign_flip_p` over the clusters' sums: the same for one pair per cluster.

    ValueError for lists of different lengths or values other than 0 and 1.
    """
    if len(first) != len(second) or (clusters is not None and len(clusters) != len(first)):
        more = "" if clusters is None else f" and {len(clusters)} clusters"
        raise ValueError(f"paired values must be as many: {len(first)} and {len(second)}{more}")
    for place, pair in enumerate(zip(first, second, strict=True)):
        if not set(pair) <= {0, 1}:
            raise ValueError(f"pair {place} is {pair!r}; McNemar's test takes 0 (wrong) and 1 (right) only")
    b = sum(x > y for x, y in zip(first, second, strict=True))
    c = sum(x < y for x, y in zip(first, second, strict=True))
    if clusters is None:
        return McNemar(b, c, exact_p(b, c), len(first))
    sums: Counter[Hashable] = Counter()
    for cluster, x, y in zip(clusters, first, second, strict=True):
        sums[cluster] += int(x) - int(y)
    return McNemar(b, c, sign_flip_p(list(sums.values())), len(first))
