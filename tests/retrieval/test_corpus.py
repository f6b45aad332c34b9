"""The index gives the scores of the plain ranker, and the best documents in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.records import Document
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.retrieval.corpus import BM25Index

WORDS = st.lists(st.sampled_from(("river", "sea", "Danube", "the", "東京", "")), max_size=6).map(" ".join)


def documents(texts: list[str]) -> list[Document]:
    return [Document(id=f"d{i}", title="Title" if i % 2 else "", text=text or "-") for i, text in enumerate(texts)]


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS)
def test_scores_are_those_of_the_ranker(texts: list[str], question: str) -> None:
    corpus = documents(texts)
    assert BM25Index(corpus).scores(question).tolist() == pytest.approx(bm25_scores(question, corpus))


@given(st.lists(WORDS, max_size=8), WORDS, st.integers(0, 10))
def test_the_best_are_the_first_of_all(texts: list[str], question: str, count: int) -> None:
    index = BM25Index(documents(texts))
    scores = index.scores(question).tolist()
    everything = sorted(range(len(texts)), key=lambda place: -scores[place])
    assert index.best(question, count) == everything[:count]
