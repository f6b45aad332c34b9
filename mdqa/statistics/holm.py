"""Holm's correction for several tests at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def holm(p_values: Sequence[float], families: Sequence[Hashable] | None = None) -> list[float]:
    """p-values adjusted by Holm-Bonferroni (Holm 1979), in the order in which they were given.

    Of m tests the smallest p-value is multiplied by m, the next by m - 1 and so on; none becomes smaller than one
    before it, nor larger than 1. An adjusted value of at most alpha is significant while the chance of any false alarm
    in the family stays below alpha.

    Args:
        p_values: in [0, 1].
        families: the family of each test, corrected apart from the others; default: all are one family.

    ValueError for a p-value outside [0, 1] (NaN too) or families that are not as many as p-values.
    """
    for place, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p-value {place} is {p!r}, not within 0 to 1")
    labels: Sequence[Hashable] = [None] * len(p_values) if families is None else families
    if len(labels) != len(p_values):
        raise ValueError(f"{len(p_values)} p-values but {len(labels)} families")
    adjusted = [1.0] * len(p_values)
    for family in dict.fromkeys(labels):
        members = sorted((i for i, label in enumerate(labels) if label == family), key=lambda i: p_values[i])
        highest = 0.0
        for rank, i in enumerate(members):
            highest = max(highest, min(1.0, (len(members) - rank) * p_values[i]))
            adjusted[i] = highest
    return adjusted
