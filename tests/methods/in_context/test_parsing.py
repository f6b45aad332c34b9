"""Reading the numbers that the model names, and telling where the passages that it writes come from."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.methods.asking import Unreadable
from mdqa.methods.in_context.parsing import (
    Named,
    copied_sentences,
    copied_shares,
    numbers_parser,
    numbers_schema,
)
from mdqa.records import Document

PARSE = numbers_parser(8, 3)


def test_numbers_in_the_order_of_the_reply() -> None:
    assert PARSE('{"documents": [7, 1, 4]}') == Named((7, 1, 4))
    assert PARSE('Here: {"documents": [2]} and more') == Named((2,))


def test_what_is_left_out_is_reported() -> None:
    found = PARSE('{"documents": [9, 3, 3, 0, -1, 5, 8, 6]}')
    assert found.numbers == (3, 5, 8)
    assert found.dropped == (
        "9 (there is no such document)",
        "3 (named before)",
        "0 (there is no such document)",
        "-1 (there is no such document)",
        "6 (more than the 3 asked for)",
    )


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("Documents 1 and 2", "parse_error"),
        ('{"documents": [1, 2', "parse_error"),
        ('{"documents": 3}', "parse_error"),
        ('{"documents": []}', "parse_error"),
        ('{"numbers": [1]}', "parse_error"),
        ('{"documents": ["1"]}', "parse_error"),
        ('{"documents": [1, true]}', "parse_error"),
        ('{"documents": [1.0]}', "parse_error"),
        ('{"documents": [null]}', "parse_error"),
        ('{"documents": [9, 99]}', "out_of_range"),
        ('{"documents": [0]}', "out_of_range"),
        ("[1, 2]", "parse_error"),
        ("", "parse_error"),
    ],
)
def test_unreadable_replies_say_how(reply: str, status: str) -> None:
    with pytest.raises(Unreadable) as problem:
        PARSE(reply)
    assert problem.value.status == status
    assert problem.value.detail


@given(st.integers(1, 30), st.integers(1, 10), st.lists(st.integers(-3, 40), max_size=15))
def test_named_numbers_exist_once_each_and_nothing_is_lost(documents: int, count: int, entries: list[int]) -> None:
    try:
        found = numbers_parser(documents, count)(json.dumps({"documents": entries}))
    except Unreadable:
        assert not any(1 <= entry <= documents for entry in entries)
        return
    assert len(set(found.numbers)) == len(found.numbers) <= count
    assert all(1 <= number <= documents for number in found.numbers)
    assert len(found.numbers) + len(found.dropped) == len(entries)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert PARSE(text).numbers
    except Unreadable as problem:
        assert problem.detail


def test_the_schema_asks_for_as_many_as_were_wanted() -> None:
    numbers = numbers_schema(8, 3)["properties"]["documents"]
    assert (numbers["minItems"], numbers["maxItems"]) == (3, 3)
    assert numbers["items"] == {"type": "integer", "minimum": 1, "maximum": 8}


DOCUMENTS = (
    Document(id="a", title="Vienna", text="The Danube flows through Vienna. It is long. The city has many old parks."),
    Document(id="b", title="Graz", text="The Mur flows through Graz. The city has many new parks."),
)


def test_shares_of_copied_runs_by_hand() -> None:
    """Runs of three words: "the mur flows", "mur flows through", "flows through graz" (b) and "through graz today"."""
    assert copied_shares("The MUR flows -- through Graz today!", DOCUMENTS) == [0.0, 0.75]
    assert copied_shares("Vienna: The Danube flows", DOCUMENTS) == [1.0, 0.0], "the title counts"
    assert copied_shares("the city has many", DOCUMENTS) == [1.0, 1.0]


def test_passages_shorter_than_a_run_are_one_run() -> None:
    assert copied_shares("old parks", DOCUMENTS) == [1.0, 0.0]
    assert copied_shares("Danube", DOCUMENTS) == [1.0, 0.0]
    assert copied_shares("parks old", DOCUMENTS) == [0.0, 0.0]


@pytest.mark.parametrize("passages", ["", " ", "...", "Nothing of this is there at all"])
def test_passages_from_nowhere(passages: str) -> None:
    assert copied_shares(passages, DOCUMENTS) == [0.0, 0.0]
    assert copied_sentences(passages, DOCUMENTS[0]) == ()


def test_copied_sentences_are_pieces_of_the_document() -> None:
    passages = "Document [1] (Title: Vienna)\nthe danube flows through vienna It is long the city has many new parks"
    assert copied_sentences(passages, DOCUMENTS[0]) == ("The Danube flows through Vienna.",), "three words tell nothing"
    assert copied_sentences(passages, DOCUMENTS[1]) == ("The city has many new parks.",)


@given(st.text(max_size=80))
def test_a_document_copied_whole_is_found_whole(text: str) -> None:
    document = Document(id="x", text=f"{text} one more word")
    assert copied_shares(document.text, [document]) == [1.0]
