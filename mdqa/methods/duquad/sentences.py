"""The choice of a document's sentences: the nearest ones by embedding, or those at given places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def nearest(query: Any, vectors: Any, count: int) -> tuple[int, ...]:
    """Indices of the ``count`` rows of ``vectors`` (N, D) nearest to ``query`` (D,) by dot product, in row order.

    With unit vectors this is the cosine; of equal rows the earlier one is taken.
    """
    similarity = np.asarray(vectors, dtype=np.float64) @ np.asarray(query, dtype=np.float64)
    best = np.argsort(-similarity, kind="stable")[:count]
    return tuple(sorted(int(index) for index in best))


def pick(sentences: Sequence[str], indices: Sequence[int]) -> tuple[str, ...]:
    """The sentences at these indices (from 0), in document order."""
    return tuple(sentences[index] for index in sorted(set(indices)))
