"""SQuAD 1.1 and 2.0: paragraphs of Wikipedia articles with questions (rajpurkar.github.io/SQuAD-explorer).

Example (one JSON object for the whole set)::

    {"version": "1.1", "data": [{"title": "...", "paragraphs": [{"context": "...", "qas": [
        {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 0}], "is_impossible": false}]}]}]}

SQuAD asks about one paragraph. Here its question gets up to :data:`DOCUMENTS` paragraphs of the set: its own, which is
gold, and as distractors those that BM25 ranks best for the question among all others. Paragraphs that hold an accepted
answer are no distractors: they would be evidence that nobody marked. The gold one stands in a place that follows from
the question's id. One record per question (``context`` beside ``question``, as on the Hugging Face hub) is read with
that one document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from mdqa.benchmarks.fields import (
    Item,
    Problem,
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
from mdqa.records import Document, Question
from mdqa.registry import INDEXES, load

DOCUMENTS = 10


def recognises(record: Record) -> bool:
    """Whether the record is the whole set or one question with its context."""
    return isinstance(record.get("data"), list) or ("question" in record and isinstance(record.get("context"), str))


def read(record: Record, place: str) -> Iterator[Item]:
    """All questions of the set, or the question of one record; a bad article or question does not stop the others."""
    if "data" not in record:
        context = text_field(record, "context", place)
        title = text_field(record, "title", place, default="")
        yield _question(record, place, Document(id="d1", title=title, text=context), None)
        return
    asked: list[tuple[Record, str, int]] = []
    paragraphs: list[Document] = []
    for number, value in enumerate(list_field(record, "data", place), 1):
        yield from _article(value, f"{place}, article {number}", paragraphs, asked)
    distractors = _Distractors(paragraphs)
    for entry, where, own in asked:
        try:
            yield _question(entry, where, paragraphs[own], distractors)
        except InputError as error:
            yield problem_of(error)


class _Distractors:
    """The paragraphs of the set with their BM25 index."""

    def __init__(self, paragraphs: Sequence[Document]) -> None:
        self._paragraphs = paragraphs
        self._index = load(INDEXES, "bm25", "index")(paragraphs)

    def of(self, question: str, own: Document, answers: Sequence[str], count: int) -> list[Document]:
        """The best ``count`` paragraphs for the question, best first, other than its own and without an answer."""
        sought = [answer.casefold() for answer in answers]
        texts, found = {own.text}, []
        for place in self._index.best(question, len(self._paragraphs)):
            paragraph = self._paragraphs[place]
            text = paragraph.text.casefold()
            if paragraph.text not in texts and not any(answer in text for answer in sought):
                texts.add(paragraph.text)
                found.append(paragraph)
                if len(found) == count:
                    break
        return found


def _article(
    value: Any, place: str, paragraphs: list[Document], asked: list[tuple[Record, str, int]]
) -> Iterator[Problem]:
    """Add an article's paragraphs, and its questions with their places and the numbers of their paragraphs.

    What cannot be read is told: the article, a paragraph with its questions, or a question.
    """
    try:
        article = object_at(value, place, "data")
        title = text_field(article, "title", place, default="").replace("_", " ")
        entries = list_field(article, "paragraphs", place)
    except InputError as error:
        yield problem_of(error)
        return
    for number, entry in enumerate(entries, 1):
        where = f"{place}, paragraph {number}"
        try:
            paragraph = object_at(entry, place, f"paragraphs[{number - 1}]")
            document = Document(id=f"p{len(paragraphs)}", title=title, text=text_field(paragraph, "context", where))
            questions = list_field(paragraph, "qas", where)
        except InputError as error:
            yield problem_of(error)
            continue
        own = len(paragraphs)
        paragraphs.append(document)
        for index, question in enumerate(questions, 1):
            try:
                asked.append((object_at(question, where, f"qas[{index - 1}]"), f"{where}, question {index}", own))
            except InputError as error:
                yield problem_of(error)


def _question(record: Record, place: str, own: Document, distractors: _Distractors | None) -> Question:
    question = text_field(record, "question", place)
    answers = _answers(record, place)
    impossible = bool_field(record, "is_impossible", place) or ("answers" in record and not answers)
    name = id_field(record, "id", place, derived_id("squad", question, own.text))
    others = distractors.of(question, own, () if impossible else answers, DOCUMENTS - 1) if distractors else []
    position = int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), 16) % (len(others) + 1)
    found = [(other.title, other.text, False) for other in others]
    found.insert(position, (own.title, own.text, not impossible))
    more = {"distractors": "bm25", "gold_position": position} if distractors else {}
    return Question(
        id=name,
        question=question,
        answers=() if impossible else answers,
        documents=passages(found),
        meta={"dataset": "squad", "answerable": not impossible, **more},
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
