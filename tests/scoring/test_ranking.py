"""Ranking metrics by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.scoring.ranking import first_is_gold, recall_at, reciprocal_rank

RANKING = ("d3", "d1", "d4", "d2")


@pytest.mark.parametrize(("k", "share"), [(0, 0.0), (1, 0.0), (2, 0.5), (3, 0.5), (4, 1.0), (9, 1.0)])
def test_recall_at(k: int, share: float) -> None:
    assert recall_at(RANKING, ["d1", "d2"], k) == share


@pytest.mark.parametrize(("gold", "value"), [(["d3"], 1.0), (["d2", "d1"], 0.5), (["d2"], 0.25), (["d9"], 0.0)])
def test_reciprocal_rank(gold: list[str], value: float) -> None:
    assert reciprocal_rank(RANKING, gold) == value


def test_first_is_gold() -> None:
    assert first_is_gold(RANKING, ["d3", "d1"]) is True
    assert first_is_gold(RANKING, ["d1"]) is False
    assert first_is_gold((), ["d1"]) is False
    assert reciprocal_rank((), ["d1"]) == 0.0


def test_without_gold_nothing_is_defined() -> None:
    assert (recall_at(RANKING, [], 2), reciprocal_rank(RANKING, []), first_is_gold(RANKING, [])) == (None, None, None)


@given(st.permutations("abcdef"), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_the_three_agree(ranking: list[str], gold: set[str]) -> None:
    wanted = sorted(gold)
    first = first_is_gold(ranking, wanted)
    assert first == (reciprocal_rank(ranking, wanted) == 1.0)
    assert first == ((recall_at(ranking, wanted, 1) or 0) > 0)
    shares = [recall_at(ranking, wanted, k) or 0.0 for k in range(7)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
