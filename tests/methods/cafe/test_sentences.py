"""Sentence granularity against hand-computed cases: which token belongs where, shares, choice and reasons."""

from __future__ import annotations

import numpy as np
import pytest

from mdqa.cancellation import CancelToken
from mdqa.methods.cafe.attending import prompt
from mdqa.methods.cafe.sentences import Sentence, select_sentences, sentence_shares, sentences_of
from mdqa.methods.sentences import split_sentences
from mdqa.records import Document, Question, TokenHeat
from tests.tiny import tiny_backend

A = Document(id="a", title="One", text=" It rained. Then it stopped.\n")
B = Document(id="b", text="Nobody knows.")
BLOCKS = ("Document [1] (Title: One)\nIt rained. Then it stopped.", "Document [2]\nNobody knows.")
HEADS = ((3, 1), (2, 0))


def heat(tokens: list[tuple[int, str]], weights: list[list[float]], texts: tuple[str, ...] = BLOCKS) -> TokenHeat:
    """Tokens as (document, text) in order; each is found after the one before it. Heads stand in layer order."""
    spans, place, last = [], 0, 0
    for document, text in tokens:
        place = 0 if document != last else place
        start = texts[document].index(text, place)
        spans.append((start, start + len(text)))
        place, last = start + len(text), document
    documents = np.array([document for document, _ in tokens], dtype=np.int32)
    return TokenHeat(((2, 0), (3, 1)), texts, documents, np.array(spans), np.array(weights, dtype=np.float32))


TOKENS = [(0, "Document [1] (Title: One)"), (0, "\n"), (0, "It"), (0, " rained"), (0, "."), (0, " Then"),
          (0, " it stopped."), (1, "Document [2]\n"), (1, "Nobody"), (1, " knows.")]  # fmt: skip
WEIGHTS = [[9, 9, 1, 1, 1, 2, 3, 9, 4, 0], [9, 9, 0, 0, 1, 0, 1, 9, 0, 8]]


def test_sentences_with_their_places_and_no_header():
    found = sentences_of(heat(TOKENS, WEIGHTS), (A, B))
    assert [(s.document_id, s.text) for s in found] == [
        ("a", "It rained."),
        ("a", "Then it stopped."),
        ("b", "Nobody knows."),
    ]
    for sentence, block in zip(found, (BLOCKS[0], BLOCKS[0], BLOCKS[1]), strict=True):
        assert block[sentence.start : sentence.end] == sentence.text


def test_shares_by_hand():
    sentences = sentences_of(heat(TOKENS, WEIGHTS), (A, B))
    shares = sentence_shares(heat(TOKENS, WEIGHTS), ("a", "b"), sentences, HEADS)
    np.testing.assert_allclose(shares, [[0.1, 0.1, 0.8], [3 / 12, 5 / 12, 4 / 12]])  # in the order of HEADS
    mean = sentence_shares(heat(TOKENS, WEIGHTS), ("a", "b"), sentences, HEADS, pool="mean")
    expected = np.array([[1 / 3, 1 / 2, 8 / 2], [3 / 3, 5 / 2, 4 / 2]])
    np.testing.assert_allclose(mean, expected / expected.sum(1, keepdims=True))


def test_a_token_over_a_border_belongs_to_its_first_character_and_one_without_text_to_the_token_before():
    tokens = [(0, ")\n"), (0, "It rained. Then"), (0, ""), (0, " it stopped."), (1, "[2]\nNobody knows.")]
    found = heat(tokens, [[5, 1, 2, 4, 5], [0, 0, 0, 0, 0]])
    sentences = sentences_of(found, (A, B))
    shares = sentence_shares(found, ("a", "b"), sentences, HEADS)
    np.testing.assert_allclose(shares[1], [3 / 7, 4 / 7, 0])
    np.testing.assert_allclose(shares[0], [1 / 3] * 3)  # a head without attention has no preference


def test_a_title_of_two_lines_and_broken_control_tokens():
    """Inside a prompt a control token is broken by a space; the ledger gets the document's own words."""
    document = Document(id="x", title="Up\nDown", text="See <|im_end|> here. <s>And there.")
    item = Question(id="q", question="Where?", documents=(document, B))
    backend = tiny_backend()
    found = backend.attend(
        prompt(item, ("x", "b")), stage="s", title="S", cancel=CancelToken(), retrieval_heads=((3, 1), (0, 2))
    ).map.heat
    assert found is not None
    assert "< |im_end|>" in found.texts[0]
    sentences = sentences_of(found, item.documents)
    assert [s.text for s in sentences] == [*split_sentences(document.text), "Nobody knows."]
    assert found.texts[0][sentences[0].start : sentences[0].end] == "See < |im_end|> here."
    assert found.texts[0][sentences[1].start : sentences[1].end] == "< s>And there."


@pytest.mark.parametrize("text", ["川は丘から北へ流れる。海は遠い。", "emoji 🏔️🌊. And e\u0301!", "no mark at all"])
def test_shares_are_the_attention_of_the_sentences_tokens(text):
    item = Question(id="q", question="Where?", documents=(Document(id="x", title="T", text=text), A))
    found = (
        tiny_backend()
        .attend(prompt(item, ("x", "a")), stage="s", title="S", cancel=CancelToken(), retrieval_heads=((1, 4),))
        .map.heat
    )
    assert found is not None
    sentences = sentences_of(found, item.documents)
    assert [s.text for s in sentences] == [*split_sentences(text), *split_sentences(A.text)]
    total = np.zeros(len(sentences))
    for document, (start, end), weight in zip(found.document, found.spans, found.weights[0], strict=True):
        piece = found.texts[document][start:end]
        place = start + len(piece) - len(piece.lstrip()) if piece.strip() else end - 1
        for i, s in enumerate(sentences):
            if item.documents[document].id == s.document_id and s.start <= place < s.end:
                total[i] += weight
    assert (total > 0).all()
    np.testing.assert_allclose(sentence_shares(found, ("x", "a"), sentences, ((1, 4),))[0], total / total.sum())


FOUR = tuple(Sentence(d, 0, 1, t) for d, t in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1")))


def test_choice_is_the_union_of_every_heads_best_in_prompt_order():
    shares = np.array([[0.1, 0.4, 0.2, 0.3], [0.1, 0.7, 0.1, 0.1]])
    found = select_sentences(("a", "b", "c"), FOUR, shares, HEADS, 1)
    assert [s.text for s in found.chosen] == ["a2"]
    assert found.documents == ("a",)
    assert found.texts == {"a": ("a2",)}
    np.testing.assert_allclose(found.best, [[0.4, 0.2, 0.3], [0.7, 0.1, 0.1]])
    assert found.relevance == pytest.approx({"a": 1.1, "b": 0.3, "c": 0.4})
    assert found.reasons == {
        "a": "candidate: 1 sentence in the top 1 of head 3-1, 2-0",
        "b": "not a candidate: best sentence rank 3 (head 3-1), 1 needed",
        "c": "not a candidate: best sentence rank 2 (head 3-1), 1 needed",
    }


def test_ties_go_to_the_earlier_sentence_and_asking_for_all_gives_all():
    even = np.full((2, 4), 0.25)
    found = select_sentences(("a", "b", "c"), FOUR, even, HEADS, 2)
    assert [s.text for s in found.chosen] == ["a1", "a2"]
    assert found.reasons["a"] == "candidate: 2 sentences in the top 2 of head 3-1, 2-0"
    everything = select_sentences(("a", "b", "c"), FOUR, even, HEADS, 9)
    assert [s.text for s in everything.chosen] == ["a1", "a2", "b1", "c1"]
    assert everything.documents == ("a", "b", "c")


def test_a_document_without_a_sentence_is_said():
    found = select_sentences(("a", "b", "c", "z"), FOUR, np.full((2, 4), 0.25), HEADS, 4)
    assert found.reasons["z"] == "not a candidate: no sentence"
    assert found.relevance["z"] == 0
