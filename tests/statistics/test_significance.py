"""The p-value of a paired bootstrap: by hand where it can be, and what it must not depend on."""

from __future__ import annotations

import pytest

from mdqa.statistics.significance import bootstrap_p

SMALLEST = 2 / 10_001


def test_two_differences_by_hand():
    # Of the four equally likely draws of (1, 0) only (0, 0) has a mean that is not above 0: p = 2 / 4
    assert bootstrap_p([1, 0]) == pytest.approx(0.5, abs=0.02)


def test_the_same_sign_everywhere_gives_the_smallest_p_there_is():
    assert bootstrap_p([1, 1, 1]) == bootstrap_p([-1, -1, -1]) == pytest.approx(SMALLEST)


def test_nothing_to_tell():
    assert bootstrap_p([0, 0, 0]) == 1 and bootstrap_p([1, -1]) > 0.9


def test_versions_of_a_question_are_drawn_whole():
    assert bootstrap_p([1, 1, 0, 0], ["a", "a", "b", "b"]) == bootstrap_p([1, 0])
    assert bootstrap_p([1, 1, 0, 0]) < bootstrap_p([1, 0])


@pytest.mark.parametrize(("differences", "clusters"), [([], None), ([1.0], ["a", "b"])])
def test_what_cannot_be_tested(differences: list[float], clusters: list[str] | None):
    with pytest.raises(ValueError, match="paired bootstrap"):
        bootstrap_p(differences, clusters)
