"""BM25 over a whole corpus: an inverted index in memory, made once and asked often.

Scores are those of :func:`mdqa.retrieval.bm25.bm25_scores` over the same documents (k1 = 1.5, b = 0.75, inverse
document frequency that stays positive); what is saved is reading all documents anew for every question. The index takes
about as much memory as the corpus does.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np

from mdqa.records import Document
from mdqa.retrieval.base import full_text
from mdqa.retrieval.bm25 import words

K1, B = 1.5, 0.75


class BM25Index:
    """Ranks all documents of a corpus for a question."""

    name = "bm25"

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(documents)
        postings: dict[str, tuple[array[int], array[int]]] = {}
        lengths = np.zeros(len(self.documents))
        for number, document in enumerate(self.documents):
            found = words(full_text(document))
            lengths[number] = len(found)
            for word, count in Counter(found).items():
                places, counts = postings.setdefault(word, (array("l"), array("l")))
                places.append(number)
                counts.append(count)
        mean = lengths.mean() if len(lengths) else 0.0
        self._norm = K1 * (1 - B + B * lengths / mean) if mean else np.ones(len(lengths))
        self._postings = postings

    def scores(self, question: str) -> np.ndarray:
        """BM25 of every document, (documents,) float64, never negative; words that no document has count nothing."""
        total = np.zeros(len(self.documents))
        for word in words(question):
            if word in self._postings:
                places, counts = (np.frombuffer(values, dtype=values.typecode) for values in self._postings[word])
                inverse = math.log(1 + (len(total) - len(places) + 0.5) / (len(places) + 0.5))
                total[places] += inverse * (counts * (K1 + 1) / (counts + self._norm[places]))
        return total

    def best(self, question: str, count: int) -> list[int]:
        """Places of the ``count`` best documents, best first; equal scores in the corpus's order.

        Documents that share no word with the question come last, so fewer than ``count`` only if there are fewer.
        """
        scores = self.scores(question)
        if count < len(scores):
            bar = np.partition(scores, -count)[-count] if count else np.inf
            candidates = np.flatnonzero(scores >= bar)
        else:
            candidates = np.arange(len(scores))
        order = candidates[np.argsort(-scores[candidates], kind="stable")]
        return [int(place) for place in order[:count]]
