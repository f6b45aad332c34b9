"""Lost in the Middle: Natural Questions with 1, 10, 20 or 30 passages.

Published at github.com/nelson-liu/lost-in-the-middle, folder qa_data.

Example (gzip JSON lines; one passage has ``isgold`` true)::

    {"question": "...", "answers": ["..."], "ctxs": [{"id": "71445", "title": "...", "text": "...", "score": "1.05",
     "hasanswer": true, "isgold": true, "original_retrieval_index": 0}, ...],
     "nq_annotated_gold": {"title": "...", "chunked_long_answer": "...", ...}}

A record without ``ctxs`` gets the annotated passage as its only document.
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
from mdqa.records import Document, Question


def recognises(record: Record) -> bool:
    """Whether the record has retrieved passages or an annotated one."""
    return "question" in record and ("ctxs" in record or "nq_annotated_gold" in record)


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record. Passages keep their order; ids are d1, d2, ... since gold passages have none."""
    question = text_field(record, "question", place)
    answers = answers_in(record.get("answers"), place, "answers")
    if "ctxs" in record:
        documents, indices = _passages(record, place)
    else:
        gold = object_at(record["nq_annotated_gold"], place, "nq_annotated_gold")
        documents = passages([(text_field(gold, "title", place, default=""), _annotated(gold, place), True)])
        indices = {}
    meta = rest(record, ("id", "question", "answers", "ctxs"))
    positions = [index for index, document in enumerate(documents) if document.gold]
    yield Question(
        id=id_field(record, "id", place, derived_id("nq", question, *answers)),
        question=question,
        answers=answers,
        documents=documents,
        meta={"dataset": "lost_in_the_middle", **meta, "gold_position": positions, **indices},
    )


def _passages(record: Record, place: str) -> tuple[tuple[Document, ...], dict[str, object]]:
    found, sources = [], {}
    for index, value in enumerate(list_field(record, "ctxs", place)):
        where = f"{place}, passage {index + 1}"
        passage = object_at(value, place, f"ctxs[{index}]")
        found.append(
            (
                text_field(passage, "title", where, default=""),
                text_field(passage, "text", where),
                bool_field(passage, "isgold", where),
            )
        )
        sources[f"d{index + 1}"] = rest(passage, ("title", "text", "isgold"))
    return passages(found), {"document_fields": sources}


def _annotated(gold: Record, place: str) -> str:
    return text_field(gold, "chunked_long_answer", place, default="") or text_field(gold, "long_answer", place)
