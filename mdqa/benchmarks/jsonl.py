"""Our own format: one question with its documents per record.

Example::

    {"id": "q1", "question": "Who wrote Emma?", "answers": ["Jane Austen"],
     "documents": [{"id": "d1", "title": "Emma", "text": "Emma is a novel by Jane Austen.", "gold": true}],
     "meta": {"source": "..."}}

``id``, ``answers``, ``title``, ``gold`` and ``meta`` may be absent; a document may be a plain text. Further fields of
the record go into ``meta``, further fields of documents into ``meta["document_fields"]`` by document id.
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
    rest,
    text_field,
)
from mdqa.errors import InputError
from mdqa.records import Document, Question

_FIELDS = ("id", "question", "answers", "documents", "meta")
_DOCUMENT_FIELDS = ("id", "title", "text", "gold")


def recognises(record: Record) -> bool:
    """Whether the record has a question with documents of this format."""
    return "question" in record and "documents" in record and "gold_answers" not in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record."""
    question = text_field(record, "question", place)
    meta = dict(object_at(record["meta"], place, "meta")) if record.get("meta") is not None else {}
    fields: dict[str, Any] = {}
    documents = []
    for index, value in enumerate(list_field(record, "documents", place)):
        document, more = _document(value, index, f"{place}, document {index + 1}", at(place, f"documents[{index}]"))
        documents.append(document)
        if more:
            fields[document.id] = more
    extra = rest(record, _FIELDS) | ({"document_fields": fields} if fields else {})
    yield Question(
        id=id_field(record, "id", place, derived_id("q", question, *(d.text for d in documents))),
        question=question,
        answers=answers_in(record.get("answers"), place, "answers"),
        documents=tuple(documents),
        meta={**extra, **meta},
    )


def _document(value: Any, index: int, place: str, field: str) -> tuple[Document, dict[str, Any]]:
    default = f"d{index + 1}"
    if isinstance(value, str):
        return Document(id=default, text=value), {}
    if not isinstance(value, dict):
        raise InputError("must be an object with a text, or a text", place=field)
    return Document(
        id=id_field(value, "id", place, default),
        title=text_field(value, "title", place, default=""),
        text=text_field(value, "text", place),
        gold=bool_field(value, "gold", place),
    ), rest(value, _DOCUMENT_FIELDS)
