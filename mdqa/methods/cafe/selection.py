"""The document side of CAFE's two stages, without a model: who is kept, in which order, and why.

Shapes: K heads, D documents; ``shares`` is beta (K, D) of the chosen heads (paper eq. 1).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdqa.attention.heads import order_best_last, top_documents, union_of_top
from mdqa.records import Head

Order = Literal["best_last", "random", "original"]


@dataclass(frozen=True)
class Selection:
    """Union over heads of their top M documents: ``kept`` in the order they go on, ``relevance`` is gamma (eq. 5)."""

    kept: tuple[str, ...]
    relevance: dict[str, float]
    reasons: dict[str, str]


def head_name(head: Head) -> str:
    """A head as layer-head, both from 0."""
    return f"{head[0]}-{head[1]}"


def select(
    documents: Sequence[str],
    shares: np.ndarray,
    heads: Sequence[Head],
    top: int,
    *,
    order: Order = "best_last",
    seed: int = 0,
    verb: tuple[str, str] = ("kept", "dropped"),
) -> Selection:
    """Top ``top`` documents of every head, united (eq. 4 and 7), ordered by gamma ascending (eq. 6).

    Ties go to the earlier document. ``order`` random is the paper's ablation without re-ranking (seeded).
    """
    chosen = union_of_top(shares, top)
    gamma = shares.sum(axis=0)
    ranked = order_best_last({i: float(gamma[i]) for i in chosen})
    if order == "original":
        ranked = tuple(sorted(ranked))
    elif order == "random":
        mixed = list(ranked)
        random.Random(seed).shuffle(mixed)
        ranked = tuple(mixed)
    ranks = [{d: r for r, d in enumerate(top_documents(row, len(documents)), 1)} for row in shares]
    reasons = {}
    for i, document in enumerate(documents):
        if i in chosen:
            names = ", ".join(head_name(heads[k]) for k in chosen[i])
            reasons[document] = f"{verb[0]}: in the top {top} of head {names}"
        else:
            best = min(range(len(heads)), key=lambda k: ranks[k][i])
            reasons[document] = f"{verb[1]}: best rank {ranks[best][i]} (head {head_name(heads[best])}), {top} needed"
    return Selection(
        tuple(documents[i] for i in ranked), {d: float(gamma[i]) for i, d in enumerate(documents)}, reasons
    )
