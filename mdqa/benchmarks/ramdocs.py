"""RAMDocs: documents that conflict by ambiguity, misinformation and noise (github.com/HanNight/RAMDocs).

Example (JSON lines)::

    {"question": "...", "documents": [{"text": "...", "type": "correct", "answer": "..."}, ...],
     "disambig_entity": ["..."], "gold_answers": ["..."], "wrong_answers": ["..."]}

Documents of type ``correct`` are gold. The answers are not aliases: each belongs to another entity of the same name,
and the official score asks for all of them and for none of ``meta["wrong_answers"]``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mdqa.benchmarks.fields import (
    Item,
    Record,
    answers_in,
    derived_id,
    id_field,
    list_field,
    object_at,
    passages,
    rest,
    text_field,
)
from mdqa.records import Question


def recognises(record: Record) -> bool:
    """Whether the record has typed documents and gold answers."""
    return "question" in record and "documents" in record and "gold_answers" in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record."""
    question = text_field(record, "question", place)
    found, fields = [], {}
    for index, value in enumerate(list_field(record, "documents", place)):
        where = f"{place}, document {index + 1}"
        document = object_at(value, place, f"documents[{index}]")
        kind = text_field(document, "type", where, default="")
        gold = kind == "correct" if kind else None
        found.append((text_field(document, "title", where, default=""), text_field(document, "text", where), gold))
        fields[f"d{index + 1}"] = rest(document, ("title", "text"))
    documents = passages(found)
    yield Question(
        id=id_field(record, "id", place, derived_id("ramdocs", question, *(d.text for d in documents))),
        question=question,
        answers=answers_in(record.get("gold_answers"), place, "gold_answers"),
        documents=documents,
        meta={
            "dataset": "ramdocs",
            "answer_semantics": "all_required",
            **rest(record, ("id", "question", "documents", "gold_answers")),
            "document_fields": fields,
        },
    )
