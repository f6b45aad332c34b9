"""What the scripted backend reads off a prompt: the document with most of the question's words, replies from it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdqa.backends.base import GenerationRequest, Steering
from mdqa.errors import ModelError
from mdqa.prompting import Prompt

WORD = re.compile(r"\w+")

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_HEADER = re.compile(r"Document \[(\d+)\]")
_LONGEST_EXTRACT = 12


@dataclass(frozen=True)
class Reading:
    """What the backend sees in a prompt: the question's words, and per document its text, number and overlap."""

    question: frozenset[str]
    has_question: bool
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[int, ...]
    overlaps: tuple[float, ...]
    rest: str

    @classmethod
    def of(cls, prompt: Prompt) -> Reading:
        """Read a prompt. Without marked documents its last turn stands in for them (``rest``)."""
        segments = [segment for turn in prompt.turns for segment in turn.segments]
        asked = " ".join(segment.text for segment in segments if segment.kind == "question")
        documents = [segment for segment in segments if segment.document_id is not None]
        rest = " ".join(s.text for s in prompt.turns[-1].segments if s.kind == "text") if prompt.turns else ""
        question = content_words(asked)
        headers = [_HEADER.match(document.text) for document in documents]
        return cls(
            question=question,
            has_question=bool(asked.strip()),
            ids=tuple(str(document.document_id) for document in documents),
            texts=tuple(document.text for document in documents),
            numbers=tuple(int(header[1]) if header else i for i, header in enumerate(headers, 1)),
            overlaps=tuple(overlap(question, document.text) for document in documents),
            rest=rest,
        )

    @property
    def best_overlap(self) -> float:
        """The highest overlap of a document, or that of the last turn where there is no document."""
        return max(self.overlaps) if self.overlaps else overlap(self.question, self.rest)

    def best_first(self, steering: Steering | None = None) -> list[int]:
        """Document indices by falling overlap, that of documents steered for the question times exp(delta)."""
        gain = math.exp(steering.delta) if steering else 1.0
        steered = set(steering.documents) if steering and not steering.row_documents else set()
        weights = [(o + 0.01) * (gain if i in steered else 1.0) for i, o in zip(self.ids, self.overlaps, strict=True)]
        return sorted(range(len(weights)), key=lambda index: -weights[index])

    def extract(self, steering: Steering | None = None) -> str:
        """The beginning of the sentence, of the best document, that shares most words with the question."""
        order = self.best_first(steering)
        source = _HEADER.sub("", self.texts[order[0]]) if order else self.rest
        sentences = [sentence for sentence in _SENTENCE.split(source) if sentence.strip()]
        if not sentences:
            return "nothing"
        # The first line of a document is its header; it answers only where there is nothing else.
        sentences = sentences[1:] if order and len(sentences) > 1 else sentences
        best = max(sentences, key=lambda sentence: overlap(self.question, sentence))
        return " ".join(best.split()[:_LONGEST_EXTRACT])


def content_words(text: str) -> frozenset[str]:
    """Lower-case words of more than three letters or with a digit; all words where there is none of these."""
    words = WORD.findall(text.lower())
    return frozenset(w for w in words if len(w) > 3 or any(c.isdigit() for c in w)) or frozenset(words)


def overlap(question: frozenset[str], text: str) -> float:
    """Share of the question's words that the text holds, 0 to 1."""
    return len(question & set(WORD.findall(text.lower()))) / len(question) if question else 0.0


def extractive_reply(request: GenerationRequest, steering: Steering | None = None) -> str:
    """A reply read off the prompt: JSON where the request has a schema, else a piece of the best document."""
    reading = Reading.of(request.prompt)
    if request.schema is None:
        return reading.extract(steering)
    text = json.dumps(fill_schema(request.schema, reading, reading.extract(steering)), ensure_ascii=False)
    begun = request.prompt.reply
    return text[len(begun) :] if text.startswith(begun) else text


def fill_schema(schema: Mapping[str, Any], reading: Reading, text: str, root: Mapping[str, Any] | None = None) -> Any:
    """A small value that satisfies a JSON schema: numbers scale with the overlap, strings are ``text``.

    Raises ModelError for what it cannot satisfy (``pattern``, an unknown ``$ref``, a schema without a type).
    """
    root = schema if root is None else root
    if "$ref" in schema:
        return fill_schema(_resolve(str(schema["$ref"]), root), reading, text, root)
    if "const" in schema:
        return schema["const"]
    if options := schema.get("enum"):
        return options[min(int(reading.best_overlap * len(options)), len(options) - 1)]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return fill_schema(schema[word][0], reading, text, root)
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = kind[0] if isinstance(kind, list) else kind
    match kind:
        case "object":
            return {key: fill_schema(part, reading, text, root) for key, part in schema.get("properties", {}).items()}
        case "array":
            return _fill_array(schema, reading, text, root)
        case "string" if "pattern" not in schema:
            padded = text.ljust(schema.get("minLength", 0), ".")
            return padded[: schema.get("maxLength", len(padded))]
        case "integer" | "number":
            return _fill_number(schema, reading.best_overlap, whole=kind == "integer")
        case "boolean":
            return reading.best_overlap >= 0.5
        case "null":
            return None
    raise ModelError(f"the scripted backend cannot follow this schema: {json.dumps(schema)}")


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    node: Any = root
    for part in reference.removeprefix("#/").split("/"):
        if not isinstance(node, Mapping) or part not in node:
            raise ModelError(f"the schema has no {reference}")
        node = node[part]
    return dict(node)


def _fill_array(schema: Mapping[str, Any], reading: Reading, text: str, root: Mapping[str, Any]) -> list[Any]:
    """Lists of whole numbers name the best two documents where there are several; other lists are short."""
    items = schema.get("items", {"type": "string"})
    low, high = schema.get("minItems", 0), schema.get("maxItems", max(2, schema.get("minItems", 0)))
    if items.get("type") == "integer" and len(reading.texts) > 1:
        least, most = items.get("minimum", -math.inf), items.get("maximum", math.inf)
        numbers = [reading.numbers[index] for index in reading.best_first()]
        fitting = [number for number in numbers if least <= number <= most]
        if len(fitting) >= low:
            return fitting[: max(low, min(high, 2))]
    wanted = max(low, min(high, 1))
    return [fill_schema(items, reading, text, root) for _ in range(wanted)]


def _fill_number(schema: Mapping[str, Any], share: float, *, whole: bool) -> float | int:
    step = schema.get("multipleOf", 1 if whole else 0)
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(low, 1)))
    value = low + share * (high - low)
    if step:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        first += "exclusiveMinimum" in schema and first * step <= schema["exclusiveMinimum"]
        last -= "exclusiveMaximum" in schema and last * step >= schema["exclusiveMaximum"]
        value = round(min(max(round(value / step), first), last) * step, 10)
    elif "exclusiveMinimum" in schema or "exclusiveMaximum" in schema:
        value = low + (0.05 + 0.9 * share) * (high - low)
    return int(value) if whole else float(value)
