"""Reciprocal rank fusion of several rankings (Cormack, Clarke and Buettcher, SIGIR 2009), alone or then reranked."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.errors import ConfigError
from mdqa.records import Document
from mdqa.retrieval.base import Ranker, best_first, by_place

RRF_K = 60
"""The constant of the original paper; DuQUAD's baselines do not print theirs."""


def ranks(scores: Sequence[float]) -> list[int]:
    """The rank of every score from 1 (highest); equal scores are ranked in input order."""
    result = [0] * len(scores)
    for rank, index in enumerate(best_first(scores), 1):
        result[index] = rank
    return result


def reciprocal_rank_fusion(rankings: Sequence[Sequence[float]], k: float = RRF_K) -> list[float]:
    """Fused score per document: the sum over rankings of 1 / (k + rank). ``rankings``: scores, one list per ranker."""
    if k <= 0:
        raise ConfigError(f"the constant k of reciprocal rank fusion must be positive, is {k}")
    by_ranker = [ranks(scores) for scores in rankings]
    return [sum(1.0 / (k + rank) for rank in document) for document in zip(*by_ranker, strict=True)]


class ReciprocalRankFusion:
    """Fuses the rankings of other rankers."""

    name = "rrf"

    def __init__(self, *rankers: Ranker, k: float = RRF_K) -> None:
        if not rankers:
            raise ConfigError("reciprocal rank fusion needs at least one ranker")
        self.rankers = rankers
        self.k = k

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Fused scores, in the order of the documents."""
        return reciprocal_rank_fusion([ranker.rank(question, documents) for ranker in self.rankers], self.k)


def reranked(first: Sequence[float], second: Sequence[float]) -> list[int]:
    """Indices by falling ``second`` scores, where these are equal by falling ``first`` ones, then in input order."""
    return sorted(range(len(second)), key=lambda i: (-second[i], -first[i]))


class FusionThenReranking:
    """Fuses rankings, then lets a reranker order all documents; its ties keep the fused order.

    DuQUAD's hybrid with reranking: all documents are reranked, since its baselines prune nothing (``methods.md`` 4).
    """

    name = "rrf_rerank"

    def __init__(self, *rankers: Ranker, reranker: Ranker, k: float = RRF_K) -> None:
        self.fusion = ReciprocalRankFusion(*rankers, k=k)
        self.reranker = reranker

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Reciprocal places in the final order, in the order of the documents."""
        fused = self.fusion.rank(question, documents)
        return by_place(reranked(fused, self.reranker.rank(question, documents)))
