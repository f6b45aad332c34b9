"""Prompts of a wanted length from the built-in examples."""

from __future__ import annotations

import pytest

from mdqa.benchmarks.examples import examples
from mdqa.errors import InputError
from mdqa.performance.cases import Case, answering_prompt, built_in_cases, prompt_tokens
from mdqa.records import Question
from mdqa.run import check_question
from tests.tiny import tiny_backend


def words(item: Question) -> int:
    return sum(len(turn.text.split()) for turn in answering_prompt(item).turns)


@pytest.mark.parametrize(("length", "documents"), [(300, 2), (1000, 7), (2800, 20), (8000, 57)])
def test_length_and_number_of_documents(length: int, documents: int) -> None:
    [case] = built_in_cases([length], words, rounds=3)
    assert len(case.items) == case.rounds == 3
    for item in case.items:
        assert len(item.documents) == documents
        assert length * 0.98 <= words(item) <= length
        check_question(item)
        sizes = [len(document.text.split()) for document in item.documents]
        assert max(sizes) - min(sizes) <= 1


def test_the_model_counts_the_tokens() -> None:
    backend = tiny_backend()
    [case] = built_in_cases([1500], lambda item: prompt_tokens(backend, item), rounds=1)
    tokens = len(backend.encoder.encode(answering_prompt(case.items[0])).ids)
    assert 1480 <= tokens <= 1500


def test_the_same_options_give_the_same_prompts() -> None:
    first, second = (built_in_cases([1000, 2800], words, rounds=2) for _ in range(2))
    assert first == second


def test_questions_are_the_examples_and_differ_from_round_to_round() -> None:
    known = {one.question.question for one in examples()}
    [case] = built_in_cases([1000], words, rounds=100)
    assert {item.question for item in case.items} == known
    assert case.item(0) == case.item(len(known)) == case.items[0]
    assert case.rounds == 100


def test_a_limit_keeps_the_rounds_and_lowers_the_number_of_questions() -> None:
    [case] = built_in_cases([1000], words, rounds=5, limit=2)
    assert (len(case.items), case.rounds) == (2, 5)
    assert [case.item(number).id for number in range(3)] == [case.items[i].id for i in (0, 1, 0)]


def test_evidence_stays_among_the_documents_and_not_in_one_place() -> None:
    [case] = built_in_cases([2800], words, rounds=len(examples()))
    places = set()
    for item, one in zip(case.items, examples(), strict=True):
        gold = [place for place, document in enumerate(item.documents) if document.gold]
        assert len(gold) == len(one.question.gold_ids)
        places.update(gold)
    assert len(places) > 5


def test_too_few_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="20 tokens are too few for 2 documents"):
        built_in_cases([20], words, rounds=1)


def test_a_case_goes_round_its_questions() -> None:
    items = tuple(one.question for one in examples()[:3])
    case = Case("file", items, rounds=6)
    assert [case.item(number) for number in range(6)] == [*items, *items]
