"""Where the evidence went: recall and precision of the gold documents after every stage of a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mdqa.records import Stage


@dataclass(frozen=True)
class StageEvidence:
    """Gold documents at one stage. ``recall`` and ``precision`` lie in [0, 1] and are None where undefined.

    ``recall``: share of the question's gold documents among the kept ones (None without gold marks).
    ``precision``: share of gold among the kept documents (None without gold marks or when nothing is kept).
    ``lost``: gold documents that came into this stage and were not kept.
    """

    name: str
    title: str
    branch: str
    kept: int
    recall: float | None
    precision: float | None
    lost: tuple[str, ...]


def gold_recall(kept: Collection[str], gold: Sequence[str]) -> float | None:
    """Share of the gold ids that are kept; None if there is no gold document."""
    return sum(document in kept for document in gold) / len(gold) if gold else None


def gold_precision(kept: Collection[str], gold: Sequence[str]) -> float | None:
    """Share of the kept ids that are gold; None if there is no gold document or nothing is kept."""
    return sum(document in kept for document in gold) / len(kept) if gold and kept else None


def gold_recall_at(ranking: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Share of the gold ids among the first ``k`` of a ranking (best first); None if there is no gold document."""
    return gold_recall(ranking[:k], gold)


def stage_evidence(stage: Stage, gold: Sequence[str]) -> StageEvidence:
    """What one stage did to the gold documents ``gold`` of the whole question."""
    kept = set(stage.kept)
    incoming = set(stage.documents)
    return StageEvidence(
        name=stage.name,
        title=stage.title,
        branch=stage.branch,
        kept=len(stage.kept),
        recall=gold_recall(kept, gold),
        precision=gold_precision(kept, gold),
        lost=tuple(document for document in gold if document in incoming and document not in kept),
    )
