"""How far a probe's class can be trusted: per query, in halves, in small subsets (Appendix F.2, F.3). Pure.

Nothing here asks the model: all of it follows from the scores that the probe has anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from mdqa.methods.madara.ranks import spearman
from mdqa.methods.madara.router import Rho, model_class

SUBSET_SIZE = 30
SUBSET_DRAWS = 100


def correlations(scores: np.ndarray) -> tuple[list[float], list[int]]:
    """Spearman of normal and re-scored, pooled over all pairs, per level, and how many pairs each rests on.

    Args:
        scores: (n, 1 + levels), normal first; NaN where there is no score. A pair without one of the two scores is
            left out of that level; an undefined correlation counts as 0 (as in the released code).
    """
    rhos, counts = [], []
    for level in range(1, scores.shape[1]):
        both = scores[~np.isnan(scores[:, [0, level]]).any(axis=1)]  # (used, 1 + levels)
        value = spearman(both[:, 0].tolist(), both[:, level].tolist())
        rhos.append(0.0 if math.isnan(value) else value)
        counts.append(len(both))
    return rhos, counts


def rho_of(scores: np.ndarray) -> Rho:
    """The three correlations that the class rests on: without the control."""
    levels = correlations(scores)[0]
    return levels[1], levels[2], levels[3]


def by_query(queries: Sequence[str]) -> list[list[int]]:
    """Rows of each query, queries in the order in which they appear."""
    groups: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        groups.setdefault(query, []).append(index)
    return list(groups.values())


def bootstrap(
    scores: np.ndarray, groups: Sequence[Sequence[int]], *, samples: int, seed: int
) -> tuple[list[list[float]], float]:
    """95% percentile intervals per level over ``samples`` resamples of queries, and the share of the same class.

    Whole queries are drawn with replacement (Appendix G.2): the documents of one query are not independent.
    ``scores`` as in :func:`correlations`; ``groups``: the rows of every query.
    """
    rng = np.random.default_rng(seed)
    full = model_class(rho_of(scores))
    drawn = []
    for _ in range(samples):
        chosen = [index for group in rng.integers(len(groups), size=len(groups)) for index in groups[group]]
        drawn.append(correlations(scores[chosen])[0])
    low, high = np.percentile(np.array(drawn), (2.5, 97.5), axis=0)  # (levels,) each
    same = fmean(model_class((row[1], row[2], row[3])) == full for row in drawn)
    return [[float(a), float(b)] for a, b in zip(low, high, strict=True)], same


def per_query(
    scores: np.ndarray, groups: Sequence[Sequence[int]], levels: Sequence[str]
) -> dict[str, dict[str, float | int | None]]:
    """Spearman within each query, per level: mean, population standard deviation and number of queries (Table 10).

    A query counts where its correlation is defined: two documents at least, and no list of equal scores. Where none
    counts, ``n`` is 0 and there is no mean.
    """
    found: dict[str, dict[str, float | int | None]] = {}
    for level, name in enumerate(levels, 1):
        values = []
        for rows in groups:
            own = scores[list(rows)]
            both = own[~np.isnan(own[:, [0, level]]).any(axis=1)]
            value = spearman(both[:, 0].tolist(), both[:, level].tolist())
            if not math.isnan(value):
                values.append(value)
        found[name] = {
            "mean": fmean(values) if values else None,
            "sd": pstdev(values) if values else None,
            "n": len(values),
        }
    return found


def split_half(scores: np.ndarray, groups: Sequence[Sequence[int]]) -> dict[str, dict[str, Any]] | None:
    """Correlations and class of the first and of the last half of the queries (Table 11); None below two queries.

    With an odd number the middle query belongs to the last half.
    """
    if len(groups) < 2:
        return None
    middle = len(groups) // 2
    found = {}
    for name, half in (("first", groups[:middle]), ("second", groups[middle:])):
        rho = rho_of(scores[[index for group in half for index in group]])
        found[name] = {"rho": list(rho), "model_class": model_class(rho), "queries": len(half)}
    return found


def subsets(scores: np.ndarray, groups: Sequence[Sequence[int]], *, seed: int) -> dict[str, Any]:
    """Share of 100 random subsets of 30 queries that are quality-ordered (Table 11).

    The size stays 30 whatever the probe's is, so that shares can be compared with the paper's. With 30 queries or
    fewer there is only one subset or none: ``status`` and ``detail`` say so and there is no share.
    """
    if len(groups) <= SUBSET_SIZE:
        return {
            "size": SUBSET_SIZE,
            "draws": 0,
            "quality_ordered": None,
            "status": "unavailable",
            "detail": f"{len(groups)} queries; random subsets of {SUBSET_SIZE} need more than {SUBSET_SIZE}",
        }
    rng = np.random.default_rng([seed, SUBSET_SIZE])  # its own stream: the intervals do not depend on it
    ordered = []
    for _ in range(SUBSET_DRAWS):
        chosen = rng.choice(len(groups), size=SUBSET_SIZE, replace=False)
        rows = [index for group in chosen for index in groups[group]]
        ordered.append(model_class(rho_of(scores[rows])) == "quality_ordered")
    return {
        "size": SUBSET_SIZE,
        "draws": SUBSET_DRAWS,
        "quality_ordered": fmean(ordered),
        "status": "ok",
        "detail": "",
    }
