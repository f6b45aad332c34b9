"""Ranking metrics by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.scoring.ranking import first_is_gold, mean_reciprocal_rank, ndcg, recall_at, reciprocal_rank

RANKING = ("d3", "d1", "d4", "d2")


@pytest.mark.parametrize(("k", "share"), [(0, 0.0), (1, 0.0), (2, 0.5), (3, 0.5), (4, 1.0), (9, 1.0)])
def test_recall_at(k: int, share: float) -> None:
    assert recall_at(RANKING, ["d1", "d2"], k) == share


@pytest.mark.parametrize(("gold", "value"), [(["d3"], 1.0), (["d2", "d1"], 0.5), (["d2"], 0.25), (["d9"], 0.0)])
def test_reciprocal_rank(gold: list[str], value: float) -> None:
    assert reciprocal_rank(RANKING, gold) == value


def test_reciprocal_rank_within_the_first_k() -> None:
    assert [reciprocal_rank(RANKING, ["d1"], k) for k in (1, 2, 9)] == [0.0, 0.5, 0.5]


def test_mean_reciprocal_rank_leaves_out_what_has_no_gold() -> None:
    questions = [(RANKING, ["d3"]), (RANKING, ["d2"]), (RANKING, [])]
    assert mean_reciprocal_rank(questions) == 0.625
    assert mean_reciprocal_rank(questions, k=2) == 0.5
    assert mean_reciprocal_rank([(RANKING, [])]) is None


@pytest.mark.parametrize(
    ("gold", "k", "value"),
    [
        (["d3"], None, 1.0),
        (["d1"], None, 1 / math.log2(3)),
        (["d1"], 1, 0.0),
        (["d1", "d2"], None, (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))),
        (["d1", "d2"], 2, (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        (["d3", "d1", "d4"], 2, 1.0),
        (["d9"], None, 0.0),
        (["d3"], 0, 0.0),
    ],
)
def test_ndcg(gold: list[str], k: int | None, value: float) -> None:
    assert ndcg(RANKING, gold, k) == pytest.approx(value)


def test_first_is_gold() -> None:
    assert first_is_gold(RANKING, ["d3", "d1"]) is True
    assert first_is_gold(RANKING, ["d1"]) is False
    assert first_is_gold((), ["d1"]) is False
    assert reciprocal_rank((), ["d1"]) == 0.0


def test_without_gold_nothing_is_defined() -> None:
    assert (recall_at(RANKING, [], 2), reciprocal_rank(RANKING, []), first_is_gold(RANKING, [])) == (None, None, None)
    assert ndcg(RANKING, []) is None


@given(st.permutations("abcdef"), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_the_three_agree(ranking: list[str], gold: set[str]) -> None:
    wanted = sorted(gold)
    first = first_is_gold(ranking, wanted)
    assert first == (reciprocal_rank(ranking, wanted) == 1.0)
    assert first == ((recall_at(ranking, wanted, 1) or 0) > 0)
    shares = [recall_at(ranking, wanted, k) or 0.0 for k in range(7)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
