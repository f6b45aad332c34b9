"""FEVER and FEVER-Symmetric: is a claim supported or refuted by its evidence.

Published at fever.ai and github.com/TalSchuster/FeverSymmetric.

Example (JSON lines, FEVER-Symmetric)::

    {"id": 1033750000002, "label": "SUPPORTS", "claim": "...", "evidence_sentence": "..."}

The claim is the question and the label the answer. Evidence is read from ``evidence_sentence``, ``context``,
``documents`` or ``ctxs``, or from [page, sentence number, sentence] triples in ``evidence``; all of it is marked gold
unless a document says otherwise. FEVER's own files name Wikipedia pages and leave out their text: they are refused
with a message that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from mdqa.benchmarks.fields import (
    Item,
    Record,
    answers_in,
    at,
    bool_field,
    derived_id,
    id_field,
    passages,
    rest,
    text_field,
)
from mdqa.errors import InputError
from mdqa.records import Question

_EVIDENCE = ("evidence_sentence", "evidence_sentences", "context", "documents", "ctxs", "evidence")
_LABELS = MappingProxyType({"SUPPORTED": "SUPPORTS", "REFUTED": "REFUTES"})

Passage = tuple[str, str, bool | None]


def recognises(record: Record) -> bool:
    """Whether the record has a claim."""
    return "claim" in record and "question" not in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The claim of one record as a question."""
    claim = text_field(record, "claim", place)
    label = " ".join(answers_in(record.get("label", record.get("gold_label")), place, "label")).upper()
    yield Question(
        id=id_field(record, "id", place, derived_id("fever", claim)),
        question=claim,
        answers=(_LABELS.get(label, label),) if label else (),
        documents=passages(_evidence(record, place)),
        meta={"dataset": "fever", **rest(record, ("id", "claim", "label", "gold_label", *_EVIDENCE))},
    )


def _evidence(record: Record, place: str) -> list[Passage]:
    for name in _EVIDENCE:
        value = record.get(name)
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not items:
            continue
        found = [_passage(item, at(place, f"{name}[{index}]")) for index, item in enumerate(items)]
        return [passage for passage in found if passage]
    raise InputError(
        "has no evidence; a claim needs evidence_sentence, documents or evidence with texts",
        place=at(place, "evidence"),
    )


def _passage(value: Any, place: str) -> Passage:
    if isinstance(value, str):
        return "", value, True
    if isinstance(value, dict):
        gold = bool_field(value, "gold", place)
        return text_field(value, "title", place, default=""), text_field(value, "text", place), gold is not False
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[2], str):
        return value[0].replace("_", " "), value[2], True
    raise InputError(
        "names Wikipedia sentences without their text; FEVER's own files need the texts filled in from its wiki-pages, "
        "as [page, sentence number, sentence] triples or in the field documents",
        place=place,
    )
