"""The bootstrap of many ratios at once: the ordinary one where clusters are single, wider where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from mdqa.statistics.bootstrap import mean_interval
from mdqa.statistics.clustered import cluster_numbers, cluster_sums, percentiles, resampled_ratios


def test_with_single_clusters_it_is_the_ordinary_bootstrap() -> None:
    values = np.random.default_rng(5).random(40)
    drawn = resampled_ratios(values[:, None], np.ones((40, 1)))
    expected = mean_interval(values.tolist())
    assert percentiles(drawn[:, 0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_every_column_gets_the_same_draws() -> None:
    values = np.random.default_rng(6).random((30, 2))
    both = resampled_ratios(values, np.ones((30, 2)), resamples=50)
    difference = resampled_ratios(values[:, :1] - values[:, 1:], np.ones((30, 1)), resamples=50)
    assert difference[:, 0] == pytest.approx(both[:, 0] - both[:, 1])


def test_repeating_every_question_does_not_make_its_mean_surer() -> None:
    values = np.random.default_rng(7).random(25)
    numbers = cluster_numbers([f"q{i % 25}" for i in range(100)])
    repeated = np.tile(values, 4)[:, None]
    drawn = resampled_ratios(cluster_sums(repeated, numbers), cluster_sums(np.ones((100, 1)), numbers))
    single = mean_interval(values.tolist())
    assert percentiles(drawn[:, 0]) == pytest.approx((single.low, single.high), abs=1e-12)
    naive = mean_interval(repeated[:, 0].tolist())
    assert single.high - single.low > 1.5 * (naive.high - naive.low)


def test_different_denominators_by_a_direct_computation() -> None:
    generator = np.random.default_rng(8)
    above, below = generator.random((12, 3)), generator.integers(0, 3, (12, 3)).astype(float)
    drawn = resampled_ratios(above, below, resamples=20, seed=3)
    places = np.random.default_rng(3).integers(0, 12, (20, 12))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = above[places].sum(axis=1) / below[places].sum(axis=1)
    assert drawn == pytest.approx(expected)


def test_draws_without_anything_to_divide_by_are_left_out() -> None:
    below = np.array([[1.0], [0.0], [0.0]])
    drawn = resampled_ratios(below * 5, below, resamples=200)
    assert 0 < np.isnan(drawn).sum() < 200
    assert percentiles(drawn[:, 0]) == (5.0, 5.0)
    assert percentiles(np.array([np.nan])) is None


def test_sums_of_clusters() -> None:
    numbers = cluster_numbers(["b", "a", "b"])
    assert numbers.tolist() == [0, 1, 0]
    assert cluster_sums(np.array([[1.0, 2], [3, 4], [5, 6]]), numbers).tolist() == [[6, 8], [3, 4]]


@pytest.mark.parametrize(
    ("above", "below", "words"),
    [
        (np.ones((3, 1)), np.ones((2, 1)), "one shape"),
        (np.ones((0, 1)), np.ones((0, 1)), "one shape"),
        (np.array([[np.nan]]), np.ones((1, 1)), "finite"),
    ],
)
def test_what_cannot_be_drawn(above: np.ndarray, below: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        resampled_ratios(above, below)
