"""MuSiQue: twenty paragraphs, two to four hold the evidence; in the full set half cannot be answered.

Published at github.com/StonyBrookNLP/musique.

Example (JSON lines)::

    {"id": "2hop__...", "question": "...", "answer": "...", "answer_aliases": ["..."], "answerable": true,
     "paragraphs": [{"idx": 0, "title": "...", "paragraph_text": "...", "is_supporting": false}, ...],
     "question_decomposition": [{"id": 1, "question": "...", "answer": "...", "paragraph_support_idx": 3}, ...]}

An unanswerable question has no accepted answers; what it would be is kept in ``meta["unanswerable_reference"]``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mdqa.benchmarks.fields import (
    Item,
    Record,
    answers_in,
    bool_field,
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
    """Whether the record has numbered paragraphs."""
    return "question" in record and "paragraphs" in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record."""
    question = text_field(record, "question", place)
    found = []
    for index, value in enumerate(list_field(record, "paragraphs", place)):
        where = f"{place}, paragraph {index + 1}"
        paragraph = object_at(value, place, f"paragraphs[{index}]")
        found.append(
            (
                text_field(paragraph, "title", where, default=""),
                text_field(paragraph, "paragraph_text", where),
                bool_field(paragraph, "is_supporting", where),
            )
        )
    given = (
        *answers_in(record.get("answer"), place, "answer"),
        *answers_in(record.get("answer_aliases"), place, "answer_aliases"),
    )
    answers = tuple(dict.fromkeys(given))
    answerable = bool_field(record, "answerable", place) is not False
    meta = rest(record, ("id", "question", "answer", "answer_aliases", "paragraphs"))
    yield Question(
        id=id_field(record, "id", place, derived_id("musique", question)),
        question=question,
        answers=answers if answerable else (),
        documents=passages(found),
        meta={"dataset": "musique", **meta, **({} if answerable else {"unanswerable_reference": list(answers)})},
    )
