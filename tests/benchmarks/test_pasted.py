"""Documents from pasted text."""

from __future__ import annotations

import pytest

from mdqa.benchmarks.base import clean_text, parse_pasted
from mdqa.errors import InputError


def parts(text: str) -> list[tuple[str, str, str]]:
    return [(d.id, d.title, d.text) for d in parse_pasted(text)]


def test_blank_lines_split() -> None:
    assert parts("one\nmore\n\n \n\ntwo\r\n\r\nthree") == [
        ("d1", "", "one\nmore"),
        ("d2", "", "two"),
        ("d3", "", "three"),
    ]


def test_headings_split_and_give_titles() -> None:
    text = "### Alpha\nfirst\n\nstill first\n###\nsecond\n### \n\n###Gamma\nthird\n#### no heading"
    assert parts(text) == [
        ("d1", "Alpha", "first\n\nstill first"),
        ("d2", "", "second"),
        ("d3", "Gamma", "third\n#### no heading"),
    ]


def test_text_before_the_first_heading_is_a_document() -> None:
    assert parts("zero\n### A\none") == [("d1", "", "zero"), ("d2", "A", "one")]


def test_a_title_line() -> None:
    assert parts("Title: Alpha\nfirst\n\ntitle:Beta\nsecond") == [("d1", "Alpha", "first"), ("d2", "Beta", "second")]
    assert parts("###\n\nTitle: A\nx") == [("d1", "A", "x")]
    assert parts("first\nTitle: no") == [("d1", "", "first\nTitle: no")]


@pytest.mark.parametrize("text", ["", " \n\n", "###", "### \n###\n"])
def test_nothing_gives_nothing(text: str) -> None:
    assert parse_pasted(text) == ()


def test_a_title_without_text_is_refused() -> None:
    with pytest.raises(InputError, match="pasted text, document 2: has the title 'B' and no text"):
        parse_pasted("### A\nx\n### B\n")


def test_limits() -> None:
    with pytest.raises(InputError, match="has 3 documents; at most 2"):
        parse_pasted("a\n\nb\n\nc", max_documents=2)
    with pytest.raises(InputError, match="has 5 characters; at most 4"):
        parse_pasted("abcde", max_characters=4)


def test_clean_text() -> None:
    assert clean_text("plain \U0001f600\ufeff") == ("plain \U0001f600\ufeff", ())
    assert clean_text("a\x00b\udc80\ud800") == (
        "ab\ufffd\ufffd",
        ("2 lone surrogates replaced by U+FFFD", "1 NUL character removed"),
    )
