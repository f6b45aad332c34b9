"""Saying that there is no answer: which replies do, and how well that fits the questions that have none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mdqa.scoring.answers import normalize

_WHOLE = frozenset(
    {
        "",
        "unknown",
        "none",
        "na",
        "noanswer",
        "no answer",
        "not known",
        "unanswerable",
        "cannot answer",
        "not answerable",
        "not enough information",
        "insufficient information",
        "i dont know",
        "dont know",
        "not mentioned",
        "not stated",
        "not given",
        "not specified",
        "not provided",
    }
)
_PHRASE = re.compile(
    r"\b(?:i do not know|i dont know"
    r"|(?:cannot|can not|could not|couldnt|cant) be (?:answered|determined|found)"
    r"|(?:is|are|was|were) not (?:mentioned|stated|given|specified|provided|answerable)"
    r"|(?:do|does|did) not (?:say|mention|state|specify|provide|contain)|(?:doesnt|dont|didnt) (?:say|mention|state)"
    r"|(?:no|not enough|insufficient) information)\b"
)


def abstains(prediction: str) -> bool:
    """Whether a reply says that there is no answer: it is empty, one of the usual words, or says so in its first line.

    A list of English phrases, so a lower bound: another way to say it is taken for an answer.
    """
    lines = prediction.strip().splitlines()
    text = normalize(lines[0]) if lines else ""
    return text in _WHOLE or bool(_PHRASE.search(text))


@dataclass(frozen=True)
class Abstention:
    """How well abstaining fits. All in [0, 1], None where undefined.

    ``precision``: share of the abstaining replies whose question has no answer. ``recall``: share of the questions
    without an answer on which the reply abstains. ``f1``: their harmonic mean. ``false_rate``: share of the questions
    that have an answer on which the reply abstains. ``accuracy``: share of all replies that abstain exactly where they
    should.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    false_rate: float | None
    accuracy: float | None
    n: int


def abstention(predictions: Sequence[str], answerable: Sequence[bool]) -> Abstention:
    """The measures over some replies and whether their questions have an answer; ValueError for different lengths."""
    pairs = [(abstains(text), can) for text, can in zip(predictions, answerable, strict=True)]
    said = [can for abstained, can in pairs if abstained]
    without = [abstained for abstained, can in pairs if not can]
    others = [abstained for abstained, can in pairs if can]
    precision = said.count(False) / len(said) if said else None
    recall = sum(without) / len(without) if without else None
    f1 = None
    if precision is not None and recall is not None:
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Abstention(
        precision,
        recall,
        f1,
        sum(others) / len(others) if others else None,
        sum(abstained != can for abstained, can in pairs) / len(pairs) if pairs else None,
        len(pairs),
    )
