"""The built-in examples keep their promises."""

from __future__ import annotations

import re

import pytest

from mdqa.benchmarks.examples import Example, example, example_of, examples
from mdqa.benchmarks.names import benchmark_of
from mdqa.errors import ConfigError
from mdqa.run import check_question
from mdqa.scoring.answers import normalize

ALL = examples()


def test_there_are_about_twelve_with_different_names() -> None:
    assert len(ALL) >= 12
    assert len({item.name for item in ALL}) == len(ALL)
    assert len({item.question.id for item in ALL}) == len(ALL)
    kinds = {
        "single_hop",
        "two_hop",
        "conflict",
        "outdated",
        "unanswerable",
        "middle_of_twenty",
        "near_duplicates",
        "numeric",
    }
    assert kinds <= {item.name for item in ALL}


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_an_example_can_be_run_and_is_short(item: Example) -> None:
    check_question(item.question)
    assert item.title
    assert item.teaches.endswith(".")
    words = [len(document.text.split()) for document in item.question.documents]
    assert max(words) <= 120
    assert min(words) >= (25 if len(words) == 20 else 40)


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_the_answer_stands_in_a_gold_document(item: Example) -> None:
    question = item.question
    if item.name == "unanswerable":
        assert (question.answers, question.gold_ids) == ((), ())
        return
    assert question.answers
    texts = [normalize(question.document(document).text) for document in question.gold_ids]
    titles = [normalize(question.document(document).title) for document in question.gold_ids]
    if item.name == "common_belief":
        assert len(question.gold_ids) == 2
        return
    assert any(normalize(answer) in text for answer in question.answers for text in (*texts, *titles))


def test_the_gold_document_is_in_the_middle_of_twenty() -> None:
    question = example("middle_of_twenty").question
    assert len(question.documents) == 20
    assert question.gold_ids == (question.document_ids[9],)


def test_one_answer_is_in_one_document_only_where_that_is_the_point() -> None:
    for name in ("single_hop", "outdated", "near_duplicates", "numeric", "middle_of_twenty", "same_name"):
        question = example(name).question
        holders = {
            document.id
            for document in question.documents
            for answer in question.answers
            if f" {normalize(answer)} " in f" {normalize(document.text)} "
        }
        assert holders == set(question.gold_ids), name


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_what_an_example_shows_names_its_own_documents(item: Example) -> None:
    titles = {document.title for document in item.question.documents}
    named = re.findall("“(.*?)”", item.shows)
    assert [name for name in named if name[0].isupper()]
    assert {name for name in named if name[0].isupper()} <= titles
    assert item.look and set(item.look) <= {"flow", "documents", "decisions", "heads", "prompts"}
    assert benchmark_of(item.question) == "examples"


def test_numbers_that_an_example_explains_stand_in_its_documents() -> None:
    for item in ALL:
        text = " ".join(document.text for document in item.question.documents)
        for figure in re.findall(r"\d[\d,.]*\d", item.shows):
            assert figure in text or figure in item.question.question or "tenth" in item.shows, (item.name, figure)


def test_a_question_is_known_as_an_example_after_its_documents_changed() -> None:
    item = example("conflict")
    assert example_of(item.question.with_documents(item.question.documents[1:])) == item
    assert example_of(item.question.model_copy(update={"id": "conflict"})) is None
    assert example_of(item.question.model_copy(update={"id": "example-nothing"})) is None


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match="single_hop"):
        example("nothing")
