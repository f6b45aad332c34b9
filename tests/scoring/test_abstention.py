"""Saying that there is no answer."""

from __future__ import annotations

import pytest

from mdqa.scoring.abstention import abstains, abstention


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Unknown.",
        "N/A",
        "I don't know.",
        "I do not know who it was.",
        "The answer cannot be determined from the documents.",
        "It is not mentioned in the documents.",
        "The documents do not say.",
        "There is not enough information.",
        "No answer\nbecause the documents are silent",
    ],
)
def test_replies_without_an_answer(text: str) -> None:
    assert abstains(text)


@pytest.mark.parametrize("text", ["Vienna", "No", "The Unknown Soldier", "He did not know her.", "Vienna\nunknown"])
def test_replies_with_an_answer(text: str) -> None:
    assert not abstains(text)


def test_measures_by_hand() -> None:
    found = abstention(["unknown", "Vienna", "unknown", "Graz", "Linz"], [False, False, True, True, True])
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    assert (found.false_rate, found.accuracy, found.n) == (pytest.approx(1 / 3), pytest.approx(3 / 5), 5)


def test_what_is_not_defined_is_none() -> None:
    assert abstention([], []).accuracy is None
    never = abstention(["Vienna"], [True])
    assert (never.precision, never.recall, never.f1, never.false_rate) == (None, None, None, 0.0)
    wrong = abstention(["unknown", "Vienna"], [True, False])
    assert (wrong.precision, wrong.recall, wrong.f1) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="shorter"):
        abstention(["Vienna"], [])
