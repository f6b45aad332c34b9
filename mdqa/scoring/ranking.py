"""How high a ranking puts the gold documents. Rankings are ids, best first; None where nothing is marked gold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mdqa.scoring.evidence import gold_recall_at


def recall_at(ranking: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Share of the gold ids among the first ``k`` (k at least 0)."""
    return gold_recall_at(ranking, gold, k)


def reciprocal_rank(ranking: Sequence[str], gold: Sequence[str], k: int | None = None) -> float | None:
    """1 over the place of the first gold id, counted from 1; 0 if there is none (among the first ``k``, if given)."""
    if not gold:
        return None
    wanted = set(gold)
    return next((1 / place for place, document in enumerate(ranking[:k], 1) if document in wanted), 0.0)


def mean_reciprocal_rank(rankings: Iterable[tuple[Sequence[str], Sequence[str]]], k: int | None = None) -> float | None:
    """MRR over (ranking, gold ids) of many questions; those without gold are left out, None if none is left."""
    ranks = [reciprocal_rank(ranking, gold, k) for ranking, gold in rankings]
    known = [rank for rank in ranks if rank is not None]
    return sum(known) / len(known) if known else None


def ndcg(ranking: Sequence[str], gold: Sequence[str], k: int | None = None) -> float | None:
    """Normalised discounted cumulative gain of the first ``k`` (all without it), gold counts 1 and all others 0.

    DCG sums 1 / log2(place + 1) over the gold ids; it is divided by that of a ranking with all gold ids first
    (Jaervelin and Kekaelaeinen 2002, in the form with log2 of trec_eval and scikit-learn).
    """
    wanted = set(gold)
    if not wanted:
        return None
    best = len(wanted) if k is None else min(k, len(wanted))
    if not best:
        return 0.0
    places = [place for place, document in enumerate(ranking[:k], 1) if document in wanted]
    return _discounted(places) / _discounted(range(1, best + 1))


def _discounted(places: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(place + 1) for place in places)


def first_is_gold(ranking: Sequence[str], gold: Sequence[str]) -> bool | None:
    """Whether the best document is a gold one (top-1); False for an empty ranking."""
    return bool(ranking) and ranking[0] in gold if gold else None
