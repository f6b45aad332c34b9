"""Listwise reranking by the run's own model: it is shown the documents of a window and asked for all their numbers.

Permutation generation as in RankGPT (Sun et al., EMNLP 2023): the reply is an order of identifiers. What it leaves out
follows in the order that the documents had, what it repeats or invents is dropped. The wording is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mdqa.backends.base import GenerationRequest
from mdqa.methods.asking import Unreadable, ask, json_object
from mdqa.methods.recorder import Recorder
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.prompting import Prompt, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Status

ROLE = "listwise"

BEGUN = '{"ranking": ['
"""How the reply begins where the backend cannot be held to a JSON schema."""


@dataclass(frozen=True)
class Order:
    """Numbers from 1 as a reply gives them, the most relevant first, each once; ``dropped`` says what was left out."""

    numbers: tuple[int, ...]
    dropped: tuple[str, ...] = ()


@dataclass
class Permuter:
    """Asks for the order of one window after another and remembers which call each document's place comes from.

    ``calls``: the last call per document. ``unread``: status and reason of every window whose order could not be read.
    """

    run: Recorder
    config: RetrieveReadConfig
    calls: dict[str, int] = field(default_factory=dict)
    unread: list[tuple[Status, str]] = field(default_factory=list)
    asked: int = 0

    def __call__(self, question: str, documents: Sequence[Document]) -> list[int]:
        """Indices of these documents, the most relevant first; as they are if no order can be read from two replies."""
        structured = "structured" in self.run.tools.backend.capabilities
        prompt = listwise_prompt(question, documents)
        request = GenerationRequest(
            prompt if structured else prompt.with_reply(BEGUN),
            max_new_tokens=self.config.listwise_max_tokens,
            temperature=self.config.temperature,
            seed=self.run.seed,
            schema=order_schema(len(documents)) if structured else None,
        )
        (reply,) = ask(self.run, ROLE, [request], order_parser(len(documents)))
        self.asked += 1
        self.calls.update(dict.fromkeys((document.id for document in documents), reply.call))
        if reply.value is None:
            self.unread.append((reply.status, reply.detail))
            self.run.notice(
                f"The model's order of {len(documents)} documents could not be read ({reply.detail}); they keep the "
                "order they had.",
                warning=True,
                fallback=True,
            )
            return list(range(len(documents)))
        return self._completed(reply.value, len(documents))

    def score(self, place: float) -> float | DocumentScore:
        """A document's score: its reciprocal place, or why there is none if not one order could be read."""
        if self.asked and len(self.unread) == self.asked:
            status, detail = self.unread[0]
            return DocumentScore(status=status, detail=detail)
        return place

    def _completed(self, order: Order, count: int) -> list[int]:
        if order.dropped:
            self.run.notice(f"Left out of the model's order: {', '.join(order.dropped)}.")
        if len(order.numbers) < count:
            self.run.notice(
                f"The model put {len(order.numbers)} of {count} documents in order; the others follow in the order "
                "they had."
            )
        named = [number - 1 for number in order.numbers]
        return named + [index for index in range(count) if index not in named]


def listwise_prompt(question: str, documents: Sequence[Document]) -> Prompt:
    """All documents of a window under numbers from 1, and the request for their order."""
    return load_template("mdqa.methods.retrieve_read", "listwise").fill(
        documents=document_segments(documents), question=question_segment(question), count=str(len(documents))
    )


def order_schema(documents: int) -> Mapping[str, Any]:
    """JSON schema of a reply that names as many numbers as there are documents. It cannot forbid naming one twice."""
    return {
        "type": "object",
        "properties": {
            "ranking": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": documents},
                "minItems": documents,
                "maxItems": documents,
            }
        },
        "required": ["ranking"],
        "additionalProperties": False,
    }


def order_parser(documents: int) -> Callable[[str], Order]:
    """A parser for {ranking: [numbers]} over documents numbered from 1.

    Repetitions and whatever is no document's number are left out and reported. A reply that names no document is
    out_of_range, one without a list is a parse_error.
    """

    def parse(text: str) -> Order:
        entries = json_object(text).get("ranking")
        if not isinstance(entries, list) or not entries:
            raise Unreadable("parse_error", f"ranking is {json.dumps(entries)[:60]}, not a list of numbers")
        numbers: list[int] = []
        dropped: list[str] = []
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int) or not 1 <= entry <= documents:
                dropped.append(f"{json.dumps(entry)[:20]} (there is no such document)")
            elif entry in numbers:
                dropped.append(f"{entry} (named before)")
            else:
                numbers.append(entry)
        if not numbers:
            raise Unreadable("out_of_range", f"no document from 1 to {documents} is named: {json.dumps(entries)[:60]}")
        return Order(tuple(numbers), tuple(dropped))

    return parse
