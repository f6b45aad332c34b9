"""The order of documents by a score that some of them may not have, for the methods that select by it."""

from __future__ import annotations

from collections.abc import Mapping

from mdqa.records import DocumentScore

TOLERANCE = 1e-9
"""Scores nearer to each other than this count as equal: a mean of equal numbers can differ in the last bit."""


def ranking(scores: Mapping[str, DocumentScore]) -> list[str]:
    """Documents by falling score; equal ones, and last those without a score, in the order in which they were given."""
    return sorted(scores, key=lambda document: _falling(scores[document]))


def _falling(score: DocumentScore) -> tuple[bool, float]:
    return (score.value is None, 0.0 if score.value is None else -score.value)
