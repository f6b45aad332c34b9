"""Answers that are all required, by hand."""

from __future__ import annotations

import pytest

from mdqa.scoring.sets import set_match, set_recall, set_wrong


@pytest.mark.parametrize(
    ("prediction", "right"),
    [
        ("3,559 people in one, 499 in the other", 1.0),
        ("3,559", 0.0),
        ("3,559, 499, and not 10,000", 0.0),
        ("35590 and 4999", 0.0),
        ("", 0.0),
    ],
)
def test_all_required_and_none_wrong(prediction: str, right: float) -> None:
    assert set_match(prediction, ["3,559", "499"], ["10,000"]) == right


def test_shares() -> None:
    assert set_recall("the Danube and the Rhine", ["Danube", "Rhine", "Inn"]) == pytest.approx(2 / 3)
    assert set_recall("anything", []) is None
    assert set_match("anything", []) == 0.0
    assert set_wrong("Danube, Inn", ["Inn", "Elbe"]) == 1
    assert set_recall("winning", ["Inn"]) == 0.0, "a word, not letters within one"
    assert set_recall("the", ["the"]) == 0.0, "an answer without a word is never there"
