"""Reading replies: what is accepted, what is dropped, what cannot be read, and the last resort."""

from __future__ import annotations

import json

import pytest

from mdqa.methods.asking import Unreadable
from mdqa.methods.duquad.parsing import (
    agent_parser,
    agrees_with,
    existing_sentences,
    parse_judge,
    parse_score,
    raw_answer,
)


def agent(documents: object, answer: object = "Paris") -> str:
    return json.dumps({"reasoning": "why", "answer": answer, "important_documents": documents})


def test_agent_reply() -> None:
    reply = agent_parser([1, 2, 3], 5)("Sure! " + agent([3, 1]) + " Bye")
    assert (reply.reasoning, reply.answer, reply.documents, reply.dropped) == ("why", "Paris", (3, 1), ())


@pytest.mark.parametrize(
    ("listed", "documents", "dropped"),
    [
        ([2, 2, 1, 2], (2, 1), ()),
        ([0, 4, -1, 2], (2,), ("0", "4", "-1")),
        (["2", "Document [3]", "-2", "2.5", "1 or 2"], (2, 3), ('"-2"', '"2.5"', '"1 or 2"')),
        ([2.0, 2.5, True, None, [1]], (2,), ("2.5", "true", "null", "[1]")),
        (2, (2,), ()),
        ([], (), ()),
        (None, (), ()),
        ({"a": 1}, (), ('{"a": 1}',)),
        ([10**30, "9" * 5000], (), (str(10**30), '"' + "9" * 39)),
    ],
)
def test_cited_numbers(listed: object, documents: tuple[int, ...], dropped: tuple[str, ...]) -> None:
    reply = agent_parser([1, 2, 3], 5)(agent(listed))
    assert (reply.documents, reply.dropped) == (documents, dropped)


def test_at_most_so_many_are_cited() -> None:
    reply = agent_parser(range(1, 9), 5)(agent([8, 7, 6, 5, 4, 3, 3, 2]))
    assert (reply.documents, reply.dropped) == ((8, 7, 6, 5, 4), ("3", "2"))


def test_a_reply_without_the_list_cites_nothing() -> None:
    reply = agent_parser([1], 5)('{"answer": "x"}')
    assert (reply.answer, reply.reasoning, reply.documents) == ("x", "", ())


def test_a_number_as_answer_is_text() -> None:
    assert parse_judge('{"answer": 1969}').answer == "1969"


@pytest.mark.parametrize(
    "text",
    ["", "Paris", '{"answer": "Pa', '{"reasoning": "x"}', '{"answer": ["a"]}', '{"answer": true}',
     '{"answer": " ... "}',
     '{"answer": null}', '{"answer": "<a few words>"}', '["answer"]', '{"reasoning": 3, "answer": "x"}', "{" * 3000],
)  # fmt: skip
def test_unreadable_agent_and_judge_replies(text: str) -> None:
    for parse in (agent_parser([1], 5), parse_judge):
        with pytest.raises(Unreadable) as caught:
            parse(text)
        assert caught.value.status == "parse_error"
        assert caught.value.detail


def test_score_reply() -> None:
    reply = parse_score('{"score": 0.7, "key_sentences": [3, 1, 3, "2", "x"]}')
    assert (reply.score, reply.sentences) == (0.7, (3, 1, 2))
    assert parse_score('{"score": 1}').sentences == ()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"score": 1.1}', "out_of_range"),
        ('{"score": -0.1}', "out_of_range"),
        ('{"score": NaN}', "out_of_range"),
        ('{"score": 1e400}', "out_of_range"),
        ('{"score": "0.8"}', "parse_error"),
        ('{"score": "8/10"}', "parse_error"),
        ('{"score": true}', "parse_error"),
        ('{"score": null}', "parse_error"),
        ('{"key_sentences": [1]}', "parse_error"),
        ("0.8", "parse_error"),
        ('{"score": 0.', "parse_error"),
    ],
)
def test_unreadable_scores_say_why(text: str, status: str) -> None:
    with pytest.raises(Unreadable) as caught:
        parse_score(text)
    assert caught.value.status == status


def test_existing_sentences_are_indices_in_document_order() -> None:
    assert existing_sentences((4, 9, 0, 1, 2), count=4, limit=2) == (0, 3)
    assert existing_sentences((9,), count=4, limit=2) == ()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        ("\n\n Answer: Paris.\nBecause", "Paris."),
        ("**Final answer:** Paris", "Paris"),
        ('```json\n{"reasoning": "a", "answer": "Pa\\"ris"', 'Pa"ris'),
        ('{"answer": "the city of Par', "the city of Par"),
        ('{"reasoning": "It is Paris, be', "It is Paris, be"),
        ('{"answer": "cut \\u00', "cut \\u00"),
        ('{"answer": "...", "x"', '{"answer": "...", "x"'),
        ("...\n!!", ""),
        ("", ""),
    ],
)
def test_last_resort(text: str, answer: str) -> None:
    assert raw_answer(text) == answer


@pytest.mark.parametrize(
    ("judge", "local", "other", "group"),
    [
        ("The Paris.", "paris", "Lyon", "local"),
        ("Lyon", "paris", "lyon!", "global"),
        ("Lyon", "lyon", "LYON", "both"),
        ("Nice", "lyon", "paris", "neither"),
        ("", "", "", "neither"),
        ("Lyon", None, "Lyon", "global"),
        ("Lyon", "Lyon", None, "local"),
        ("A", "the", "a", "global"),
        ("東京", "東京", "大阪", "local"),
    ],
)
def test_whose_answer_the_judge_gives(judge: str, local: str | None, other: str | None, group: str) -> None:
    assert agrees_with(judge, local_answer=local, global_answer=other) == group
