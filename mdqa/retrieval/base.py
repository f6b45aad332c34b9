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
