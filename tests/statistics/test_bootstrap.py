"""Intervals against what can be worked out by hand."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.statistics.bootstrap import Interval, mean_interval, paired_difference, ratio_interval

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@pytest.mark.parametrize("values", [[0.25], [1.0, 1.0, 1.0]])
def test_equal_values_leave_no_room(values: list[float]) -> None:
    assert mean_interval(values) == Interval(values[0], values[0], values[0], len(values))


def test_two_values_by_hand() -> None:
    """Means of two draws from {0, 1}: 0, 1/2, 1 with 1/4, 1/2, 1/4. The middle 95 % reach both ends, 40 % do not."""
    assert mean_interval([0.0, 1.0]) == Interval(0.5, 0.0, 1.0, 2)
    assert mean_interval([0.0, 1.0], level=0.4) == Interval(0.5, 0.5, 0.5, 2)


def test_many_values_come_near_the_normal_interval() -> None:
    values = np.random.default_rng(3).normal(2.0, 1.0, 400)
    found = mean_interval(values.tolist())
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.01)
    assert found.high == pytest.approx(values.mean() + half, abs=0.01)


@given(NUMBERS)
def test_the_interval_lies_within_the_values(values: list[float]) -> None:
    found = mean_interval(values, resamples=200)
    slack = 1e-9 * max(map(abs, values), default=0.0)
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack


def test_a_higher_level_is_wider_and_a_seed_decides() -> None:
    values = [0.0, 0.2, 0.9, 1.0, 0.4, 0.7]
    narrow, wide = mean_interval(values, level=0.5), mean_interval(values, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert mean_interval(values, seed=4) == mean_interval(values, seed=4)
    assert mean_interval(values, resamples=100, seed=4) != mean_interval(values, resamples=100, seed=5)


def test_memory_stays_small_and_chunks_do_not_change_the_number_of_means() -> None:
    values = (np.arange(20_000) % 2).tolist()
    tracemalloc.start()
    found = mean_interval(values, resamples=400)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6, "400 times 20,000 values at once would be 128 MB"
    half = 1.96 * 0.5 / math.sqrt(len(values))
    assert found.high - found.low == pytest.approx(2 * half, rel=0.2)


def test_pairs_take_out_what_questions_share() -> None:
    """Each question has its own difficulty; the second method is better by 0.1 on every one."""
    first = np.linspace(0, 1, 50)
    second = first + 0.1
    found = paired_difference(second.tolist(), first.tolist())
    assert (found.mean, found.low, found.high, found.n) == (
        pytest.approx(0.1),
        pytest.approx(0.1),
        pytest.approx(0.1),
        50,
    )
    alone = mean_interval(second.tolist())
    assert alone.high - alone.low > 0.1, "unpaired, the same difference could not be told from chance"


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=20))
def test_turning_the_pair_round_turns_the_difference_round(pairs: list[tuple[float, float]]) -> None:
    first, second = zip(*pairs, strict=True)
    there, back = (paired_difference(a, b, resamples=50) for a, b in ((first, second), (second, first)))
    assert there.mean == pytest.approx(-back.mean)
    assert there.low == pytest.approx(-back.high, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "words"),
    [([], "at least one"), ([1.0, float("nan")], "value 1 is not"), ([float("inf")], "value 0 is not")],
)
def test_values_without_a_mean(values: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mean_interval(values)


@pytest.mark.parametrize("options", [{"level": 0.0}, {"level": 1.0}, {"resamples": 0}])
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="level must lie"):
        mean_interval([1.0], **options)  # type: ignore[arg-type]


def test_lists_of_different_lengths_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_a_ratio_draws_questions_whole() -> None:
    """One document in the first question, three in the second: the draws are 1/1, 1/4 twice, and 0/3."""
    found = ratio_interval([1, 0], [1, 3])
    assert (found.mean, found.low, found.high, found.n) == (0.25, 0.0, 1.0, 2)
    assert ratio_interval([2, 2], [4, 4]).low == 0.5


def test_a_ratio_over_equal_counts_is_the_mean() -> None:
    values = [0.0, 1.0, 0.5, 1.0]
    alone, ratio = mean_interval(values), ratio_interval([2 * v for v in values], [2] * 4)
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((alone.mean, alone.low, alone.high))


def test_draws_without_anything_to_count_are_left_out() -> None:
    found = ratio_interval([1, 0, 0], [1, 0, 0])
    assert (found.mean, found.low, found.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("sums", "counts", "words"),
    [
        ([1], [1, 2], "as many"),
        ([math.nan], [1], "finite"),
        ([0, 0], [0, 0], "nothing"),
        ([1, 1], [2, -1], "0 or more"),
        ([], [], "nothing"),
    ],
)
def test_a_ratio_of_nothing(sums: list[float], counts: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ratio_interval(sums, counts)
    with pytest.raises(ValueError, match="level"):
        ratio_interval([1], [1], level=1.0)
