"""Listwise reranking: somebody orders all documents at once, and through a sliding window where they are too many.

The procedure of RankGPT (Sun et al., EMNLP 2023, section 3.2): the window starts at the end of the list, its documents
are put in order, and it moves towards the beginning by less than its own length, so that the best documents of one
window stand in the next one as well. With as many documents as the window holds, that is one ordering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mdqa.errors import ConfigError
from mdqa.records import Document
from mdqa.retrieval.base import by_place

Permute = Callable[[str, Sequence[Document]], Sequence[int]]
"""Orders a few documents for a question: every index once, the most relevant document first."""

WINDOW = 20
"""Documents per ordering; RankGPT's. It moves by half of that."""


def windows(count: int, window: int) -> Iterator[tuple[int, int]]:
    """Places [start, end) of each window over ``count`` documents, from the end to the beginning."""
    if window < 2:
        raise ConfigError(f"a window of {window} documents leaves nothing to order; it must hold 2 at least")
    end = count
    while True:
        start = max(0, end - window)
        yield start, end
        if start == 0:
            return
        end -= window // 2


class ListwiseRanker:
    """Ranks by an order that is asked for, window by window."""

    name = "listwise"

    def __init__(self, permute: Permute, *, window: int = WINDOW) -> None:
        self.permute = permute
        self.window = window

    def order(self, question: str, documents: Sequence[Document]) -> list[int]:
        """Indices of the documents, the most relevant first; fewer than two documents need no ordering."""
        order = list(range(len(documents)))
        if len(order) < 2:
            return order
        for start, end in windows(len(order), self.window):
            inside = order[start:end]
            places = list(self.permute(question, [documents[index] for index in inside]))
            if sorted(places) != list(range(len(inside))):
                raise ValueError(f"{places} does not name each of {len(inside)} documents once")
            order[start:end] = [inside[place] for place in places]
        return order

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Reciprocal places in the order, in the order of the documents."""
        return by_place(self.order(question, documents))
