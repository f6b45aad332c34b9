"""What the model chose: the numbers that it names, or which documents the passages that it wrote come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdqa.methods.asking import Unreadable, json_object
from mdqa.methods.sentences import split_sentences
from mdqa.records import Document
from mdqa.retrieval.base import full_text
from mdqa.retrieval.bm25 import words

RUN = 3
"""Words in a row by which copied text is recognised."""

SHORTEST_SENTENCE = 4
"""Words a sentence must have before its words in a row tell that it was copied."""


@dataclass(frozen=True)
class Named:
    """The documents that a reply names, as numbers from 1, most relevant first; ``dropped`` says what was left out."""

    numbers: tuple[int, ...]
    dropped: tuple[str, ...] = ()


def numbers_schema(documents: int, count: int) -> Mapping[str, Any]:
    """JSON schema of a reply that names ``count`` of ``documents`` documents. It cannot forbid naming one twice."""
    return {
        "type": "object",
        "properties": {
            "documents": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": documents},
                "minItems": count,
                "maxItems": count,
            }
        },
        "required": ["documents"],
        "additionalProperties": False,
    }


def numbers_parser(documents: int, count: int) -> Callable[[str], Named]:
    """A parser for {documents: [numbers]} over documents numbered from 1.

    An entry that is no whole number makes the reply unreadable (parse_error). Numbers of no document, repetitions and
    what goes beyond ``count`` are left out and reported; if no number is left, the reply is out_of_range.
    """

    def parse(text: str) -> Named:
        entries = json_object(text).get("documents")
        if not isinstance(entries, list) or not entries:
            raise Unreadable("parse_error", f"documents is {json.dumps(entries)[:60]}, not a list of numbers")
        numbers: list[int] = []
        dropped: list[str] = []
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int):
                raise Unreadable("parse_error", f"documents holds {json.dumps(entry)[:60]}, not a whole number")
            if not 1 <= entry <= documents:
                dropped.append(f"{str(entry)[:20]} (there is no such document)")
            elif entry in numbers:
                dropped.append(f"{entry} (named before)")
            elif len(numbers) == count:
                dropped.append(f"{entry} (more than the {count} asked for)")
            else:
                numbers.append(entry)
        if not numbers:
            raise Unreadable("out_of_range", f"no document from 1 to {documents} is named: {json.dumps(entries)[:60]}")
        return Named(tuple(numbers), tuple(dropped))

    return parse


def copied_shares(passages: str, documents: Sequence[Document]) -> list[float]:
    """Per document the share, 0 to 1, of the passages' runs of ``RUN`` words that stand in it (title and text).

    Case and punctuation do not count. Passages shorter than a run are one run of their own length.
    """
    runs = _runs(words(passages))
    length = len(next(iter(runs), ()))
    found = [len(runs & _runs(words(full_text(document)), length)) for document in documents]
    return [number / len(runs) if runs else 0.0 for number in found]


def copied_sentences(passages: str, document: Document) -> tuple[str, ...]:
    """The document's sentences of at least ``SHORTEST_SENTENCE`` words that stand in the passages word for word."""
    written = _joined(words(passages))
    sentences = [(sentence, words(sentence)) for sentence in split_sentences(document.text)]
    return tuple(text for text, inner in sentences if len(inner) >= SHORTEST_SENTENCE and _joined(inner) in written)


def _runs(tokens: Sequence[str], length: int = 0) -> frozenset[tuple[str, ...]]:
    length = length or min(RUN, len(tokens))
    return frozenset(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)) if length else frozenset()


def _joined(tokens: Sequence[str]) -> str:
    return f" {' '.join(tokens)} "
