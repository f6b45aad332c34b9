"""From attention mass to retrieval heads and documents (CAFE section 4.2 and 4.3; pure numpy).

Shapes: L layers, H heads, D documents; mass is (L, H, D).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mdqa.records import Head


def document_shares(mass: np.ndarray) -> np.ndarray:
    """Retrieval document scores beta (CAFE eq. 1): each head's mass divided by its sum over documents.

    (..., D) in and out. A head that puts nothing on any document shares equally: it has no preference.
    """
    total = mass.sum(axis=-1, keepdims=True)
    even = np.full_like(mass, 1.0 / mass.shape[-1])
    return np.divide(mass, total, out=even, where=total > 0)


def evidence_share(mass: np.ndarray, evidence: Sequence[int]) -> np.ndarray:
    """One sample's term of the head score eta (CAFE eq. 2): sum of beta over the evidence documents, (L, H)."""
    return np.asarray(document_shares(mass)[..., list(evidence)].sum(axis=-1))


def top_heads(scores: np.ndarray, count: int) -> tuple[Head, ...]:
    """The ``count`` heads with the highest score (CAFE eq. 3), best first; ties go to the lower layer and head."""
    order = np.argsort(-scores.ravel(), kind="stable")[:count]
    return tuple((int(i) // scores.shape[1], int(i) % scores.shape[1]) for i in order)


def head_shares(mass: np.ndarray, heads: Sequence[Head]) -> np.ndarray:
    """Beta of the given heads, (len(heads), D)."""
    return document_shares(np.stack([mass[layer, head] for layer, head in heads]))


def top_documents(shares: np.ndarray, count: int) -> tuple[int, ...]:
    """Indices of the ``count`` documents with the highest share, best first; ties go to the earlier document."""
    return tuple(int(i) for i in np.argsort(-shares, kind="stable")[:count])


def union_of_top(shares: np.ndarray, count: int) -> dict[int, tuple[int, ...]]:
    """Union over heads of their top documents (CAFE eq. 4 and 7): document index -> rows that chose it, by index."""
    chosen: dict[int, list[int]] = {}
    for row, beta in enumerate(shares):
        for document in top_documents(beta, count):
            chosen.setdefault(document, []).append(row)
    return {document: tuple(chosen[document]) for document in sorted(chosen)}


def order_best_last(relevance: Mapping[int, float]) -> tuple[int, ...]:
    """Documents in ascending relevance gamma (CAFE eq. 5 and 6), the best nearest to the question; ties keep order."""
    return tuple(sorted(relevance, key=lambda index: (relevance[index], index)))
