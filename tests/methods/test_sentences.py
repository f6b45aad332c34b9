"""Splitting documents into sentences."""

from __future__ import annotations

import time

import pytest

from mdqa.methods.sentences import sentence_spans, split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met J. F. Kennedy. They spoke.", ["Dr. Smith met J. F. Kennedy.", "They spoke."]),
        (
            "It costs 3.5 dollars at 5 p.m. on Jan. 5. It rained.",
            ["It costs 3.5 dollars at 5 p.m. on Jan. 5.", "It rained."],
        ),
        (
            "The U.S. Army won. He lives in the U.S. The end.",
            ["The U.S. Army won.", "He lives in the U.S.", "The end."],
        ),
        ("He works at Apple Inc. The firm is old.", ["He works at Apple Inc.", "The firm is old."]),
        ("Take vitamin C. It helps.", ["Take vitamin C.", "It helps."]),
        ('"Really?" she asked. "Yes." They left.', ['"Really?" she asked.', '"Yes."', "They left."]),
        ("Wait... what? So. He came.", ["Wait... what?", "So.", "He came."]),
        ("See No. 5 there. 20 men came.", ["See No. 5 there.", "20 men came."]),
        ("e.g. this one. Ok.", ["e.g. this one.", "Ok."]),
        ("東京は首都です。人口は多い！本当？", ["東京は首都です。", "人口は多い！", "本当？"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟", "نعم."]),
        ("यह एक वाक्य है। दूसरा।", ["यह एक वाक्य है।", "दूसरा।"]),
        ("¿Qué? ¡Sí! Él vino.", ["¿Qué?", "¡Sí!", "Él vino."]),
        ("Born: 1900\nDied: 1980", ["Born: 1900", "Died: 1980"]),
        ("A sentence that is\nwrapped. Next", ["A sentence that is\nwrapped.", "Next"]),
        ("a heading\n\nand text", ["a heading", "and text"]),
        ("no mark at all", ["no mark at all"]),
        ("!!!", ["!!!"]),
        ("  \n ", []),
    ],
)
def test_split(text: str, expected: list[str]) -> None:
    assert list(split_sentences(text)) == expected


@pytest.mark.parametrize("text", ["One. Two!\n\nThree (maybe.) Four", " x\u3000。y  z. ", "A.\r\nB.\tC…  D"])
def test_sentences_are_exact_pieces_and_nothing_but_blanks_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    position = 0
    for sentence in sentences:
        found = text.index(sentence, position)
        assert not text[position:found].strip()
        position = found + len(sentence)
    assert not text[position:].strip()


@pytest.mark.parametrize("text", ["." * 300_000, "a. " * 100_000, '."' * 100_000, "\n" * 300_000, "Mr. A" * 60_000])
def test_strange_texts_take_linear_time(text: str) -> None:
    began = time.perf_counter()
    split_sentences(text)
    assert time.perf_counter() - began < 10


def test_spans_are_where_the_sentences_stand() -> None:
    text = "  One. Two!\n\nTwo! 三。四"
    assert [text[a:b] for a, b in sentence_spans(text)] == list(split_sentences(text))
    assert sentence_spans(text) == ((2, 6), (7, 11), (13, 17), (18, 20), (20, 21))
    assert sentence_spans(" \n ") == ()
