"""2WikiMultihopQA: ten paragraphs, two to four hold the evidence (github.com/Alab-NII/2wikimultihop).

HotpotQA's format with ``evidences``, the (subject, relation, object) triples of the reasoning path, in addition.
"""

from __future__ import annotations

from collections.abc import Iterator

from mdqa.benchmarks.fields import Item, Record
from mdqa.benchmarks.hotpotqa import paragraphs_question


def recognises(record: Record) -> bool:
    """Whether the record has paragraphs and evidence triples."""
    return "question" in record and "context" in record and "evidences" in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record."""
    yield paragraphs_question(record, place, "2wikimultihopqa")
