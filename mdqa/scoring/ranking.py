"""How high a ranking puts the gold documents. Rankings are ids, best first; None where nothing is marked gold."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.scoring.evidence import gold_recall_at


def recall_at(ranking: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Share of the gold ids among the first ``k`` (k at least 0)."""
    return gold_recall_at(ranking, gold, k)


def reciprocal_rank(ranking: Sequence[str], gold: Sequence[str]) -> float | None:
    """1 over the place of the first gold id, counted from 1; 0 if there is none in the ranking."""
    if not gold:
        return None
    wanted = set(gold)
    return next((1 / place for place, document in enumerate(ranking, 1) if document in wanted), 0.0)


def first_is_gold(ranking: Sequence[str], gold: Sequence[str]) -> bool | None:
    """Whether the best document is a gold one (top-1); False for an empty ranking."""
    return bool(ranking) and ranking[0] in gold if gold else None
