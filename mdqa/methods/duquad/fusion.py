"""The Structural Fusion Score without the model: normalising, weighing, ranking, and attention contrast as arithmetic.

Our reading: the text of the paper names the three signals and their weights (Table 6) and prints no formula.
Every signal is oriented so that a higher number means a more relevant document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mdqa.records import AttentionMap, DocumentScore, TokenHeat

Normalisation = Literal["z_score", "min_max"]
LocalRanker = Literal["sfs", "bm25", "dense", "rrf"]
LocalOrder = Literal["original", "descending", "ascending"]
Scores = Mapping[str, DocumentScore]

SPREAD = 1e-6
"""Values whose spread is below this part of their size are equal: float32 noise must not become a z-score."""

MASK_DEVIATIONS = 2.0
"""A token counts unless its contrast lies more than this many deviations below the mean of its document."""


def normalise(scores: Scores, kind: Normalisation = "z_score") -> dict[str, DocumentScore]:
    """One signal on a common scale over the documents of one question.

    ``z_score``: (x - mean) / population standard deviation. ``min_max``: (x - min) / (max - min). Equal values all
    become 0. A document without a number keeps its status and does not take part.
    """
    known = {key: score.value for key, score in scores.items() if score.value is not None}
    values = np.array(list(known.values()), dtype=np.float64)
    if not len(values):
        return dict(scores)
    low, high = float(values.min()), float(values.max())
    if high - low <= SPREAD * max(abs(low), abs(high)):
        scaled = np.zeros_like(values)
    elif kind == "z_score":
        scaled = (values - values.mean()) / values.std()
    else:
        scaled = (values - low) / (high - low)
    numbers = dict(zip(known, scaled.tolist(), strict=True))
    return {key: DocumentScore(value=numbers[key]) if key in numbers else score for key, score in scores.items()}


def fuse(signals: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, DocumentScore]:
    """SFS(d) = sum over the signals of weight x normalised signal, our reading of the weights in Table 6.

    A signal without a number for a document adds nothing for it; a document without any number gets ``unavailable``.
    """
    documents = list(dict.fromkeys(key for scores in signals.values() for key in scores))
    fused: dict[str, DocumentScore] = {}
    for document in documents:
        parts = [
            weights[name] * score.value
            for name, scores in signals.items()
            if (score := scores.get(document)) is not None and score.value is not None
        ]
        fused[document] = (
            DocumentScore(value=sum(parts))
            if parts
            else DocumentScore(status="unavailable", detail="no signal has a number for this document")
        )
    return fused


def rank(documents: Sequence[str], fused: Scores) -> tuple[str, ...]:
    """The documents, best first; ties and documents without a score in input order, the latter at the end."""

    def key(document: str) -> tuple[bool, float]:
        value = fused[document].value
        return (value is None, 0.0 if value is None else -value)

    return tuple(sorted(documents, key=key))


def arrange(chosen: Sequence[str], documents: Sequence[str], order: LocalOrder) -> tuple[str, ...]:
    """The chosen documents (given best first) in the order in which the Local Agent reads them."""
    if order == "descending":
        return tuple(chosen)
    if order == "ascending":
        return tuple(reversed(chosen))
    wanted = set(chosen)
    return tuple(document for document in documents if document in wanted)


def document_attention(question: AttentionMap) -> dict[str, float]:
    """The question's attention to each document, layers and heads summed: the contrast without its contrast."""
    return dict(zip(question.documents, question.mass.sum(axis=(0, 1), dtype=np.float64).tolist(), strict=True))


def document_contrast(question: AttentionMap, content_free: AttentionMap) -> dict[str, float]:
    """Attention of the question minus that of the content-free query, summed over layers and heads.

    Both masses are means over the query's rows and sums over the document's tokens. No token mask is applied.
    """
    difference = question.mass.astype(np.float64) - content_free.mass.astype(np.float64)
    return dict(zip(question.documents, difference.sum(axis=(0, 1)).tolist(), strict=True))


def relative_contrast(question: AttentionMap, content_free: AttentionMap) -> dict[str, float]:
    """The logarithm of the question's attention to a document over the content-free query's, layers and heads summed.

    An option of ours. The longer query puts more attention on everything, most where both look anyway; a difference
    keeps that preference for places, a ratio cancels it. A document that either gives no attention is not scored.
    """
    asked, free = (m.mass.sum(axis=(0, 1), dtype=np.float64) for m in (question, content_free))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(asked / free)
    return dict(zip(question.documents, ratio.tolist(), strict=True))


def token_masked_contrast(
    question: TokenHeat, content_free: TokenHeat, documents: Sequence[str], deviations: float = MASK_DEVIATIONS
) -> dict[str, float]:
    """The sum over a document's tokens of m_j (a_j(question) - a_j(content-free)), a_j summed over layers and heads.

    m_j drops the tokens whose difference is below mean - ``deviations`` x std within their document, as in-context
    re-ranking calibrates. ``documents`` names the heat's documents in its order; one without tokens gets 0.
    """
    difference = question.weights.sum(axis=0, dtype=np.float64) - content_free.weights.sum(axis=0, dtype=np.float64)
    contrast: dict[str, float] = {}
    for index, document in enumerate(documents):
        tokens = difference[question.document == index]  # (tokens of this document,)
        if not len(tokens):
            contrast[document] = 0.0
            continue
        kept = tokens[tokens >= tokens.mean() - deviations * tokens.std()]
        contrast[document] = float(kept.sum())
    return contrast
