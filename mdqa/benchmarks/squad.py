"""SQuAD 1.1 and 2.0: paragraphs of Wikipedia articles with questions (rajpurkar.github.io/SQuAD-explorer).

Example (one JSON object for the whole set)::

    {"version": "1.1", "data": [{"title": "...", "paragraphs": [{"context": "...", "qas": [
        {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 0}], "is_impossible": false}]}]}]}

SQuAD asks about one paragraph. Here its question gets up to :data:`DOCUMENTS` paragraphs of the same article, in the
article's order: its own, which is gold, and its nearest neighbours. One record per question (``context`` beside
``question``, as on the Hugging Face hub) is read with that one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mdqa.benchmarks.fields import (
    Item,
    Record,
    answers_in,
    at,
    bool_field,
    derived_id,
    id_field,
    list_field,
    object_at,
    passages,
    problem_of,
    text_field,
)
from mdqa.errors import InputError
from mdqa.records import Question

DOCUMENTS = 10


def recognises(record: Record) -> bool:
    """Whether the record is the whole set or one question with its context."""
    return isinstance(record.get("data"), list) or ("question" in record and isinstance(record.get("context"), str))


def read(record: Record, place: str) -> Iterator[Item]:
    """All questions of the set, or the question of one record; a bad article or question does not stop the others."""
    if "data" not in record:
        context = text_field(record, "context", place)
        title = text_field(record, "title", place, default="")
        yield _question(record, place, [(title, context)], 0)
        return
    for number, value in enumerate(list_field(record, "data", place), 1):
        try:
            yield from _article(value, f"{place}, article {number}")
        except InputError as error:
            yield problem_of(error)


def _article(value: Any, place: str) -> Iterator[Item]:
    article = object_at(value, place, "data")
    title = text_field(article, "title", place, default="").replace("_", " ")
    paragraphs = [object_at(p, place, "paragraphs") for p in list_field(article, "paragraphs", place)]
    places = [f"{place}, paragraph {number}" for number in range(1, len(paragraphs) + 1)]
    texts = [text_field(paragraph, "context", where) for paragraph, where in zip(paragraphs, places, strict=True)]
    for own, (paragraph, where) in enumerate(zip(paragraphs, places, strict=True)):
        first = max(0, min(own - DOCUMENTS // 2, len(texts) - DOCUMENTS))
        window = [(title, text) for text in texts[first : first + DOCUMENTS]]
        for number, entry in enumerate(list_field(paragraph, "qas", where), 1):
            spot = f"{where}, question {number}"
            try:
                yield _question(object_at(entry, where, f"qas[{number - 1}]"), spot, window, own - first)
            except InputError as error:
                yield problem_of(error)


def _question(record: Record, place: str, window: list[tuple[str, str]], own: int) -> Question:
    question = text_field(record, "question", place)
    answers = _answers(record, place)
    impossible = bool_field(record, "is_impossible", place) or ("answers" in record and not answers)
    found = [(title, text, index == own and not impossible) for index, (title, text) in enumerate(window)]
    return Question(
        id=id_field(record, "id", place, derived_id("squad", question, window[own][1])),
        question=question,
        answers=() if impossible else answers,
        documents=passages(found),
        meta={"dataset": "squad", "answerable": not impossible, "paragraph": own},
    )


def _answers(record: Record, place: str) -> tuple[str, ...]:
    value = record.get("answers")
    if isinstance(value, dict):  # the hub's columns
        return answers_in(value.get("text"), place, "answers.text")
    if not isinstance(value, list):
        return answers_in(value, place, "answers")
    if all(isinstance(answer, str) for answer in value):
        return answers_in(value, place, "answers")
    texts = [
        text_field(object_at(a, place, f"answers[{i}]"), "text", at(place, f"answers[{i}]"))
        for i, a in enumerate(value)
    ]
    return answers_in(texts, place, "answers")
