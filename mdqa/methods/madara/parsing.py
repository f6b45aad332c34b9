"""Reading what MADARA's agents reply, and the JSON schemas their replies should follow. Pure.

Strict about what counts: a score is a JSON number within 0 to 5, never a digit found somewhere in the text. Lenient
about the end only: a reply that breaks off or goes astray still gives the members that were complete before that
(each closed by a comma), because a small model's score is often followed by a sentence that never ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mdqa.methods.asking import Unreadable, json_object, json_value, number_field

ConflictScale = Literal["centred", "shifted"]

NEUTRAL_CONFLICT = 2.5

_KEY = re.compile(r"\s*(?:doc(?:ument)?)?\s*\[?\s*(\d{1,6})\s*\]?\s*", re.IGNORECASE)
_MEMBER_END = re.compile(r",")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_TEXT = {"type": "string", "maxLength": 120}
_SCORE = {"type": "integer", "minimum": 0, "maximum": 5}
_CONFIDENCE = {"type": "integer", "minimum": 1, "maximum": 5}
_STEPS = {"type": "array", "items": _TEXT, "minItems": 5, "maxItems": 5}


@dataclass(frozen=True)
class Grade:
    """What the Relevance or Consistency Agent says of a document.

    ``confidence`` (1 to 5) is asked for in the CoT variants and used nowhere, as in the released code; None where it
    is missing or unreadable.
    """

    score: float
    reasoning: str = ""
    evidence: str = ""
    steps: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def chain(self) -> tuple[str, ...]:
        """The reasoning as sentences: the steps (else the reasoning), joined and split again (probe, step 2)."""
        whole = "\n".join(self.steps) if self.steps else self.reasoning
        return split_sentences(whole)


@dataclass(frozen=True)
class Findings:
    """What the Conflict Agent says: adjustments by document number (from 1), within -2 to 2, and why."""

    has_conflict: bool
    adjustments: Mapping[int, float]
    pairs: tuple[tuple[int, int, str], ...] = ()
    majority: str = ""
    reasoning: str = ""
    clipped: int = 0

    def score(self, number: int, scale: ConflictScale) -> float:
        """The adjustment of document ``number`` on the 0 to 5 scale of the other agents (no adjustment: 0).

        ``centred``: 2.5 + 1.25 adj. ``shifted``: 3 + adj within 0 to 5. The paper does not say how; both are ours.
        """
        adjustment = self.adjustments.get(number, 0.0)
        if scale == "centred":
            return NEUTRAL_CONFLICT + 1.25 * adjustment
        return min(max(3.0 + adjustment, 0.0), 5.0)


def split_sentences(text: str) -> tuple[str, ...]:
    """The text's sentences (cut after ``.``, ``!``, ``?`` and at line ends), without empty ones."""
    return tuple(sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip())


def schema(role: str, *, cot: bool = False, documents: int = 0) -> dict[str, Any]:
    """JSON schema of a role's reply; ``documents`` is how many the Conflict Agent may adjust."""
    body: dict[str, Any] = dict(_BODIES[role])
    if role == "conflict":
        numbers = {str(number): {"type": "integer", "minimum": -2, "maximum": 2} for number in range(1, documents + 1)}
        body["doc_adjustments"] = {"type": "object", "properties": numbers, "additionalProperties": False}
        body["conflicting_pairs"] = _pairs_schema(documents)
    if cot:
        body = {"reasoning_steps": _STEPS, **{k: v for k, v in body.items() if k != "reasoning"}}
        body["confidence"] = _CONFIDENCE
    return {"type": "object", "properties": body, "required": list(body), "additionalProperties": False}


def _pairs_schema(documents: int) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1, "maximum": max(documents, 1)}
    pair = {"doc_a": number, "doc_b": number, "description": _TEXT}
    item = {"type": "object", "properties": pair, "required": list(pair), "additionalProperties": False}
    return {"type": "array", "items": item, "maxItems": 3}


_BODIES: Mapping[str, Mapping[str, Any]] = {
    "relevance": {"score": _SCORE, "evidence": _TEXT, "reasoning": _TEXT},
    "consistency": {"score": _SCORE, "internal_consistency": _TEXT, "cross_consistency": _TEXT, "reasoning": _TEXT},
    "conflict": {"has_conflict": {"type": "boolean"}, "doc_adjustments": {}, "majority_position": _TEXT},
    "conflict_document": {
        "has_conflict": {"type": "boolean"},
        "adjustment": {"type": "integer", "minimum": -2, "maximum": 2},
        "reasoning": _TEXT,
    },
    "forced": {"score": _SCORE, "confidence": _CONFIDENCE},
}


def parse_grade(reply: str) -> Grade:
    """The reply of a scoring agent (base, CoT or forced re-scoring); Unreadable says why there is no score."""
    data = members(reply)
    steps = data.get("reasoning_steps")
    return Grade(
        score=number_field(data, "score", 0, 5),
        reasoning=_text(data.get("reasoning")),
        evidence=_text(data.get("evidence")),
        steps=tuple(_text(step) for step in steps if _text(step)) if isinstance(steps, list) else (),
        confidence=_confidence(data.get("confidence")),
    )


def parse_conflict(reply: str, documents: int) -> Findings:
    """The reply of the Conflict Agent about documents 1 to ``documents``.

    Numbers that name no document are dropped and adjustments beyond -2 to 2 are clipped (``clipped`` counts them).
    Where a conflict is claimed, ``doc_adjustments`` has to be there. Unreadable otherwise.
    """
    data = members(reply)
    has_conflict = _flag(data)
    given = data.get("doc_adjustments", None if has_conflict else {})
    if not isinstance(given, dict):
        raise Unreadable("parse_error", f"doc_adjustments is {given!r}, not an object")
    raw = {_number(key): number_field(given, key, -math.inf, math.inf) for key in given}
    known = {number: value for number, value in raw.items() if number is not None and 1 <= number <= documents}
    if not all(math.isfinite(value) for value in known.values()):
        raise Unreadable("out_of_range", f"doc_adjustments holds a number that is not finite: {given!r}")
    return Findings(
        has_conflict=has_conflict,
        adjustments={number: min(max(value, -2.0), 2.0) for number, value in known.items()},
        pairs=_pairs(data.get("conflicting_pairs"), documents),
        majority=_text(data.get("majority_position")),
        reasoning=_chain(data),
        clipped=sum(abs(value) > 2 for value in known.values()),
    )


def parse_conflict_document(reply: str) -> Findings:
    """The Conflict Agent's reply about a single document (``conflict_per_doc``), as findings for number 1."""
    data = members(reply)
    has_conflict = _flag(data)
    value = number_field(data, "adjustment", -2, 2)
    return Findings(has_conflict=has_conflict, adjustments={1: value}, reasoning=_chain(data))


def members(reply: str) -> Mapping[str, Any]:
    """The members of the first JSON object in a reply, as far as they are complete; Unreadable if there are none."""
    try:
        return json_object(reply)
    except Unreadable as problem:
        for start in [match.start() for match in re.finditer(r"\{", reply)][:8]:
            if data := _complete_members(reply[start:]):
                return data
        raise problem


def _complete_members(text: str) -> dict[str, Any]:
    """Members of an object that may break off: whole, or up to the last comma at which it can be closed."""
    ends = [match.start() for match in _MEMBER_END.finditer(text)][:64]
    for candidate in (text, *(text[:end] + "}" for end in reversed(ends))):
        try:
            data = json_value(candidate)
        except (ValueError, RecursionError):
            continue
        return data if isinstance(data, dict) else {}
    return {}


def _flag(data: Mapping[str, Any]) -> bool:
    value = data.get("has_conflict")
    if not isinstance(value, bool):
        raise Unreadable("parse_error", f"has_conflict is {value!r}, not true or false")
    return value


def _number(key: str) -> int | None:
    match = _KEY.fullmatch(key)
    return int(match[1]) if match else None


def _pairs(value: Any, documents: int) -> tuple[tuple[int, int, str], ...]:
    found: list[tuple[int, int, str]] = []
    for item in value if isinstance(value, list) else ():
        pair = [item.get("doc_a"), item.get("doc_b")] if isinstance(item, dict) else []
        numbers = [n for n in pair if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= documents]
        if len(set(numbers)) == 2:
            found.append((numbers[0], numbers[1], _text(item.get("description"))))
    return tuple(found)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _chain(data: Mapping[str, Any]) -> str:
    steps = data.get("reasoning_steps")
    lines: Sequence[Any] = steps if isinstance(steps, list) else [data.get("reasoning")]
    return "\n".join(text for text in map(_text, lines) if text)


def _confidence(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 1 <= value <= 5 else None
