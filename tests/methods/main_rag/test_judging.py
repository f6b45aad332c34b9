"""The judge bar by hand, and what holds for any scores."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.methods.main_rag.judging import NO_ANSWER, judge_bar, log_odds, ranking, reasons, select
from mdqa.records import DocumentScore

NUMBERS = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


def scored(*values: float | None) -> dict[str, DocumentScore]:
    return {f"d{i}": NO_ANSWER if v is None else DocumentScore(value=v) for i, v in enumerate(values)}


def test_log_odds() -> None:
    assert log_odds(-0.25, -2.25).value == 2.0
    for yes, no in ((-math.inf, -1.0), (-1.0, -math.inf), (-math.inf, -math.inf), (math.nan, 0.0)):
        found = log_odds(yes, no)
        assert (found.value, found.status) == (None, "unavailable")
        assert repr(yes) in found.detail


@pytest.mark.parametrize(("n", "bar"), [(0.0, 2.0), (0.5, 1.0), (1.0, 0.0), (-1.0, 4.0)])
def test_the_bar_is_the_mean_minus_n_population_deviations(n: float, bar: float) -> None:
    """Scores 0, 0, 4, 4: mean 2, deviation sqrt(16 / 4) = 2 (that of a sample would be 2.31)."""
    found = judge_bar(scored(0.0, 4.0, None, 0.0, 4.0), n)
    assert found is not None
    assert (found.mean, found.deviation) == (2.0, 2.0)
    assert found.value == pytest.approx(bar)


def test_no_score_no_bar() -> None:
    scores = scored(None, None)
    assert judge_bar(scores, 0.0) is None
    assert select(scores, None) == ["d0", "d1"]
    assert set(reasons(scores, None, ["d0", "d1"])) == set(scores)


def test_a_document_without_a_score_is_last_and_dropped() -> None:
    scores = scored(None, -9.0, None, -7.0)
    bar = judge_bar(scores, 5.0)
    assert ranking(scores) == ["d3", "d1", "d0", "d2"]
    kept = select(scores, bar)
    assert kept == ["d3", "d1"]
    assert reasons(scores, bar, kept)["d0"] == "dropped: the Predictor gave no answer, so there is nothing to judge"


def test_a_bar_above_all_keeps_the_best() -> None:
    scores = scored(1.0, 3.0, 3.0, 0.0)
    bar = judge_bar(scores, -5.0)
    kept = select(scores, bar)
    assert kept == ["d1"]
    found = reasons(scores, bar, kept)
    assert found["d1"].endswith("is below the bar +8.245, kept as the best")
    assert found["d2"] == "rank 2 of 4: log-odds +3.000 is below the bar +8.245"


@given(st.floats(-50, 50), st.integers(1, 12), st.floats(-5, 5))
def test_equal_scores_all_go_on_in_their_given_order(value: float, count: int, n: float) -> None:
    scores = scored(*[value] * count)
    assert select(scores, judge_bar(scores, n)) == list(scores)


@given(NUMBERS, st.floats(-5, 5), st.floats(0, 5))
def test_what_goes_on_is_a_beginning_of_the_ranking_and_grows_with_n(
    values: list[float], n: float, more: float
) -> None:
    scores = scored(*values)
    order = ranking(scores)
    assert [scores[i].value for i in order] == sorted(values, reverse=True)
    kept, wider = (select(scores, judge_bar(scores, x)) for x in (n, n + more))
    assert kept
    assert kept == order[: len(kept)]
    assert wider[: len(kept)] == kept
