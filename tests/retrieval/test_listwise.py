"""Listwise ranking: the windows and the order that comes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.errors import ConfigError
from mdqa.records import Document
from mdqa.retrieval.base import best_first, by_place
from mdqa.retrieval.listwise import ListwiseRanker, windows


def docs(relevance: Sequence[int]) -> tuple[Document, ...]:
    return tuple(Document(id=str(i), text=str(value)) for i, value in enumerate(relevance))


def by_number(_: str, documents: Sequence[Document]) -> list[int]:
    return best_first([float(document.text) for document in documents])


def test_windows_slide_from_the_end_by_half() -> None:
    assert list(windows(10, 4)) == [(6, 10), (4, 8), (2, 6), (0, 4)]
    assert list(windows(20, 20)) == [(0, 20)]
    assert list(windows(21, 20)) == [(1, 21), (0, 11)]
    assert list(windows(3, 2)) == [(1, 3), (0, 2)]
    with pytest.raises(ConfigError, match="2 at least"):
        list(windows(3, 1))


def test_one_window_is_one_question() -> None:
    asked: list[int] = []

    def permute(question: str, documents: Sequence[Document]) -> list[int]:
        asked.append(len(documents))
        return by_number(question, documents)

    ranker = ListwiseRanker(permute)
    assert ranker.order("q", docs([3, 9, 5])) == [1, 2, 0]
    assert ranker.rank("q", docs([3, 9, 5])) == [1 / 3, 1.0, 1 / 2]
    assert ranker.order("q", docs([1])) == [0]
    assert ranker.rank("q", ()) == []
    assert asked == [3, 3], "one document, or none, is not asked about"


@given(st.permutations(range(11)), st.integers(2, 12))
def test_the_best_half_window_reaches_the_front_from_anywhere(relevance: list[int], window: int) -> None:
    order = ListwiseRanker(by_number, window=window).order("q", docs(relevance))
    assert sorted(order) == list(range(11))
    best = max(window - window // 2, 1) if window < 11 else 11
    front = [relevance[index] for index in order[: min(best, window // 2)]]
    assert front == sorted(relevance, reverse=True)[: len(front)]


def test_what_is_no_order_is_a_fault() -> None:
    with pytest.raises(ValueError, match="each of 2 documents once"):
        ListwiseRanker(lambda *_: [0, 0]).order("q", docs([1, 2]))


def test_reciprocal_places_give_the_order_back() -> None:
    assert best_first(by_place([2, 0, 1])) == [2, 0, 1]
