"""HotpotQA, distractor setting: ten paragraphs, two of them hold the evidence (hotpotqa.github.io).

Example (one JSON array)::

    {"_id": "5a7a...", "question": "...", "answer": "yes", "type": "comparison", "level": "hard",
     "supporting_facts": [["Title", 0], ...], "context": [["Title", ["Sentence one.", " Sentence two."]], ...]}

The columnar form of the Hugging Face hub (``context.title``, ``context.sentences``) is read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mdqa.benchmarks.fields import (
    Item,
    Record,
    answers_in,
    at,
    derived_id,
    id_field,
    list_field,
    passages,
    rest,
    text_field,
)
from mdqa.errors import InputError
from mdqa.records import Question


def recognises(record: Record) -> bool:
    """Whether the record has paragraphs as sentences and no 2WikiMultihopQA evidence triples."""
    return "question" in record and _has_paragraphs(record) and "evidences" not in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record."""
    yield paragraphs_question(record, place, "hotpotqa")


def paragraphs_question(record: Record, place: str, dataset: str) -> Question:
    """A question whose documents are [title, sentences] pairs; a paragraph is gold if a supporting fact names it.

    Without supporting facts (test files) gold is unknown.
    """
    question = text_field(record, "question", place)
    facts = _pairs(record.get("supporting_facts"), place, "supporting_facts", ("title", "sent_id"))
    supporting = {title for title, _ in facts}
    found = []
    for index, (title, sentences) in enumerate(_pairs(record.get("context"), place, "context", ("title", "sentences"))):
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise InputError("must be a list of sentences", place=at(place, f"context[{index}][1]"))
        text = "".join(sentences) if _spaced(sentences) else " ".join(sentences)
        found.append((title, text.strip(), title in supporting if facts else None))
    identifier = id_field(record, "_id", place, id_field(record, "id", place, derived_id(dataset, question)))
    return Question(
        id=identifier,
        question=question,
        answers=answers_in(record.get("answer"), place, "answer"),
        documents=passages(found),
        meta={"dataset": dataset, **rest(record, ("_id", "id", "question", "answer", "context"))},
    )


def _has_paragraphs(record: Record) -> bool:
    context = record.get("context")
    if isinstance(context, dict):
        return "title" in context and "sentences" in context
    return isinstance(context, list) and ("supporting_facts" in record or "_id" in record)


def _spaced(sentences: list[str]) -> bool:
    """Whether the sentences bring their own spaces, as HotpotQA's do."""
    return any(sentence[:1].isspace() for sentence in sentences[1:])


def _pairs(value: Any, place: str, name: str, columns: tuple[str, str]) -> list[tuple[str, Any]]:
    """(title, something) pairs from a list of pairs or from two columns."""
    if value is None and name == "supporting_facts":
        return []
    if isinstance(value, dict):
        left, right = (list_field(value, column, at(place, name)) for column in columns)
        if len(left) != len(right):
            raise InputError(f"{columns[0]} and {columns[1]} differ in length", place=at(place, name))
        value = [list(pair) for pair in zip(left, right, strict=True)]
    if not isinstance(value, list):
        raise InputError("must be a list of pairs", place=at(place, name))
    for index, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InputError("must be a pair that begins with a title", place=at(place, f"{name}[{index}]"))
    return [(pair[0], pair[1]) for pair in value]
