"""McNemar's exact test: do two methods, asked the same questions, get different shares of them right?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
    from scipy.stats import binomtest  # noqa: PLC0415 (seconds that most of the program need not wait for)

    return float(binomtest(b, b + c, 0.5).pvalue)


def mcnemar(first: Sequence[float], second: Sequence[float]) -> McNemar:
    """The test for two lists of 0 and 1 (wrong and right) over the same questions in the same order.

    ValueError for lists of different lengths or values other than 0 and 1.
    """
    if len(first) != len(second):
        raise ValueError(f"paired values must be as many: {len(first)} and {len(second)}")
    for place, pair in enumerate(zip(first, second, strict=True)):
        if not set(pair) <= {0, 1}:
            raise ValueError(f"pair {place} is {pair!r}; McNemar's test takes 0 (wrong) and 1 (right) only")
    b = sum(x > y for x, y in zip(first, second, strict=True))
    c = sum(x < y for x, y in zip(first, second, strict=True))
    return McNemar(b, c, exact_p(b, c), len(first))
