"""Found in the Middle: attention to a document beyond what its place gets anyway.

Hsieh et al., Found in the Middle (Findings of ACL 2024), section 3: attention to the document at place k is taken as
its relevance plus a bias of the place, Attn(doc, k) = rel(doc) + bias(k). The same attention to a dummy document at
place k shows the bias, so Attn(doc, k) - Attn(dummy, k) ranks by relevance. Attn is the weight that the prompt's last
token puts on a document's tokens, mean over its tokens, heads and layers. The paper then rescales the attention while
the answer is written; here the calibrated attention only re-orders the documents (the cheaper variant, ``methods.md``
4). Its name collides with another method of 2024, Ms-PoE.

Our reading where sources are silent or differ: the last 16 layers (where the paper intervenes; all of a model that has
fewer), the prompt of the answer, whose question stands after the documents only, and the dummy.

Cost: K + 1 passes for K documents. One dummy at a time takes a document's place and all others stay, which is
what the formula asks for; K dummies in one prompt would be one pass, but over a context without any document. Each
pass takes over the keys and values of what stands before the dummy, so together they compute about half of K
prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdqa.backends.base import Attention
from mdqa.errors import ModelError
from mdqa.records import Document
from mdqa.retrieval.bm25 import words

LAYERS = 16
"""The last layers that count."""

FILLER = "This passage is a placeholder and tells nothing about anything."
"""The dummy's sentence, as often as it takes."""


@dataclass(frozen=True)
class Look:
    """An attention pass to carry out. ``replaced``: index of the document whose place the dummy has taken, if any.

    ``prefix``: keys and values of the pass over the documents themselves.
    """

    documents: tuple[Document, ...]
    replaced: int | None = None
    prefix: Any = None


Attend = Callable[[str, Look], Attention]
"""The attention of the prompt's last row for a question and these documents, mean over each document's tokens."""


@dataclass(frozen=True)
class Calibrated:
    """Attention to every document in its place, and to the dummy there: means over tokens, heads and layers."""

    attention: tuple[float, ...]
    dummy: tuple[float, ...]

    @property
    def scores(self) -> list[float]:
        """Calibrated attention: the differences."""
        return [seen - usual for seen, usual in zip(self.attention, self.dummy, strict=True)]


def dummy_text(documents: Sequence[Document]) -> str:
    """A text without content of about the mean length of the documents, in words, so that the prompt stays as long.

    One for all places: its own relevance is then a constant that does not matter.
    """
    mean = sum(len(words(document.text)) for document in documents) / max(len(documents), 1)
    return " ".join([FILLER] * max(1, round(mean / len(words(FILLER)))))


def per_document(attention: Attention) -> np.ndarray:
    """Mean attention per document (D,) float64, over the heads of the last ``LAYERS`` layers.

    Raises:
        ModelError: the attention was summed over tokens, so that long documents would get more.
    """
    if attention.map.pool != "mean":
        raise ModelError(f"attention is pooled by {attention.map.pool}; this ranking needs means over tokens")
    mean: np.ndarray = attention.map.mass[-LAYERS:].astype(np.float64).mean(axis=(0, 1))
    return mean


class FoundInTheMiddle:
    """Ranks by calibrated attention; ``attend`` carries the passes out."""

    name = "found_in_the_middle"

    def __init__(self, attend: Attend) -> None:
        self.attend = attend

    def calibrate(
        self, question: str, documents: Sequence[Document], on_done: Callable[[int, int], None] | None = None
    ) -> Calibrated:
        """Attention to the documents and to the dummy in each of their places: one pass, then one per document."""
        documents = tuple(documents)
        if not documents:
            return Calibrated((), ())
        first = self.attend(question, Look(documents))
        text, usual = dummy_text(documents), list[float]()
        for place, document in enumerate(documents):
            # the dummy goes by the id of the document in whose place it stands
            dummy = document.model_copy(update={"title": "", "text": text})
            there = (*documents[:place], dummy, *documents[place + 1 :])
            usual.append(float(per_document(self.attend(question, Look(there, place, first.prefix)))[place]))
            if on_done:
                on_done(place + 1, len(documents))
        return Calibrated(tuple(float(seen) for seen in per_document(first)), tuple(usual))

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Calibrated attention, in the order of the documents."""
        return self.calibrate(question, documents).scores
