"""Holm's correction by hand, and what holds for any p-values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.statistics.holm import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def test_by_hand() -> None:
    """0.01 * 4, 0.02 * 3, then 0.03 * 2 = 0.06 after 0.06, and 0.04 * 1 not below that; in the order given."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.2]) == [0.2]
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_equal_p_values_get_the_same() -> None:
    assert holm([0.01, 0.5, 0.01]) == pytest.approx([0.03, 0.5, 0.03])


def test_families_are_corrected_apart() -> None:
    p = [0.01, 0.02, 0.03, 0.04]
    assert holm(p, ["x", "y", "x", "y"]) == pytest.approx([0.02, 0.04, 0.03, 0.04])
    assert holm(p, [1, 2, 3, 4]) == p
    assert holm(p, ["x"] * 4) == holm(p)


@given(P_VALUES)
def test_never_smaller_never_above_bonferroni_and_in_the_same_order(p: list[float]) -> None:
    found = holm(p)
    assert all(a <= b <= min(1.0, len(p) * a) + 1e-12 for a, b in zip(p, found, strict=True))
    assert [found[i] for i in sorted(range(len(p)), key=p.__getitem__)] == sorted(found)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.2))
def test_the_same_decisions_as_stepping_down(p: list[float], alpha: float) -> None:
    """Holm's own procedure: go up from the smallest p and stop at the first above alpha / (tests left)."""
    rejected = set()
    order = sorted(range(len(p)), key=p.__getitem__)
    for rank, i in enumerate(order):
        if (len(p) - rank) * p[i] > alpha:
            break
        rejected.add(i)
    assert {i for i, adjusted in enumerate(holm(p)) if adjusted <= alpha} == rejected


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_no_p_values(bad: float) -> None:
    with pytest.raises(ValueError, match="p-value 1 is"):
        holm([0.5, bad])


def test_as_many_families_as_tests() -> None:
    with pytest.raises(ValueError, match="2 p-values but 1 families"):
        holm([0.5, 0.1], ["x"])
