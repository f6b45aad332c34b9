"""What a ranker is, and what it reads of a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mdqa.records import Document


class Encoder(Protocol):
    """A sentence encoder (the same protocol as ``methods.base.Encoder``, which stands to the right of this layer)."""

    name: str

    def encode(self, texts: Sequence[str]) -> Any:
        """Unit-length embeddings, one row per text."""
        ...


@runtime_checkable
class RetrievalEncoder(Encoder, Protocol):
    """A sentence encoder that reads a question otherwise than a document."""

    def encode_question(self, question: str, instruction: str | None = None) -> Any:
        """The question's unit vector (dimensions,). ``instruction``: text before it; None is the model's own."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Unit vectors of documents (texts, dimensions)."""
        ...


class PairScorer(Protocol):
    """A cross-encoder: reads a question and a text together."""

    name: str
    max_tokens: int

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One finite score per text; higher is more relevant."""
        ...

    def truncated(self, question: str, texts: Sequence[str]) -> list[bool]:
        """For every text, whether :meth:`score` reads only the beginning of it (or of the question)."""
        ...


@runtime_checkable
class Ranker(Protocol):
    """Scores documents for a question."""

    name: str

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """One finite score per document, in the order given; higher is better."""
        ...


def full_text(document: Document) -> str:
    """Title and text, on two lines where there is a title."""
    title = document.title.strip()
    return f"{title}\n{document.text.strip()}" if title else document.text.strip()


def best_first(scores: Sequence[float]) -> list[int]:
    """Indices from the highest score to the lowest; equal scores keep their input order."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def by_place(order: Sequence[int]) -> list[float]:
    """The reciprocal place of every index in an order that names each once: 1, 1/2, 1/3 ... from the first on.

    Scores for rankers that give an order and no number; ``best_first`` gives the order back.
    """
    scores = [0.0] * len(order)
    for place, index in enumerate(order, 1):
        scores[index] = 1.0 / place
    return scores
