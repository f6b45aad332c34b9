"""BM25 over the documents of one question.

Okapi's usual inverse document frequency, log((N - n + 0.5) / (n + 0.5)), is zero or negative for words that stand in
half of the documents or more. Over ten or twenty documents that is the rule, so the form that stays positive,
log(1 + (N - n + 0.5) / (n + 0.5)), is used. Parameters are k1 = 1.5 and b = 0.75.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence

from rank_bm25 import BM25Okapi

from mdqa.records import Document
from mdqa.retrieval.base import full_text

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


def words(text: str) -> list[str]:
    """Lower-cased words of any script; Chinese and Japanese characters count one by one."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class _PositiveBM25(BM25Okapi):
    """BM25 whose inverse document frequency is always positive."""

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = {word: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for word, n in nd.items()}


def bm25_scores(question: str, documents: Sequence[Document]) -> list[float]:
    """BM25 of every document (title and text), never negative; all 0 where no document has a word.

    Repeated words of the question count once per repetition, as in Okapi BM25.
    """
    corpus = [words(full_text(document)) for document in documents]
    if not any(corpus):
        return [0.0] * len(corpus)
    return [float(score) for score in _PositiveBM25(corpus).get_scores(words(question))]


class BM25Ranker:
    """Ranks by BM25."""

    name = "bm25"

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """BM25 scores, in the order of the documents."""
        return bm25_scores(question, documents)
