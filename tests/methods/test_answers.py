"""The final answer's text."""

from __future__ import annotations

import pytest

from mdqa.methods.answers import short_answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Paris", "Paris"),
        ("\n\n  Paris \nbecause", "Paris"),
        ("Paris\r\nLondon", "Paris"),
        ("Answer: Paris.", "Answer: Paris."),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_the_first_line_and_nothing_else(reply: str, answer: str) -> None:
    assert short_answer(reply) == answer
