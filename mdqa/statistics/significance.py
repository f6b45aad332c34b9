"""The p-value that belongs to a paired bootstrap interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from mdqa.statistics.clustered import RESAMPLES, cluster_numbers, cluster_sums, resampled_ratios


def bootstrap_p(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """Two-sided p-value, 0 to 1, of the mean of paired differences being 0 (Davison and Hinkley 1997, section 4.4).

    Twice the smaller share of draws whose mean lies on the other side of 0 or on it; the data themselves count as one
    draw more, so that p is never below 2 / (resamples + 1). With ``clusters`` whole clusters are drawn.

    ValueError for no differences, one that is not finite, or clusters that are not as many.
    """
    if not differences or (clusters is not None and len(clusters) != len(differences)):
        raise ValueError(f"a paired bootstrap needs differences, and a cluster for each: {len(differences)}")
    numbers = cluster_numbers(range(len(differences)) if clusters is None else clusters)
    values = np.asarray(differences, dtype=np.float64)[:, None]
    drawn = resampled_ratios(
        cluster_sums(values, numbers), cluster_sums(np.ones_like(values), numbers), resamples=resamples, seed=seed
    )[:, 0]
    smaller = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (smaller + 1) / (resamples + 1))
