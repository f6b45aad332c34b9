"""The Judge's numbers: log-odds of Yes against No per document, and the adaptive judge bar. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, pstdev

from mdqa.methods.ranking import TOLERANCE, ranking
from mdqa.records import DocumentScore

NO_ANSWER = DocumentScore(status="unavailable", detail="the Predictor gave no answer, so there is nothing to judge")


@dataclass(frozen=True)
class Bar:
    """The bar of one question: ``value`` = mean - n * deviation, over the documents that have a score."""

    value: float
    mean: float
    deviation: float


def log_odds(yes: float, no: float) -> DocumentScore:
    """Log p(Yes) - log p(No), natural log; a status where the model gives one of them no probability at all."""
    if not math.isfinite(yes - no):
        return DocumentScore(status="unavailable", detail=f"the model gives Yes and No log p = {yes!r} and {no!r}")
    return DocumentScore(value=yes - no)


def judge_bar(scores: Mapping[str, DocumentScore], n: float) -> Bar | None:
    """The adaptive judge bar; None where no document has a score. The deviation is that of the population."""
    values = [score.value for score in scores.values() if score.value is not None]
    if not values:
        return None
    mean, deviation = fmean(values), pstdev(values)
    return Bar(mean - n * deviation, mean, deviation)


def select(scores: Mapping[str, DocumentScore], bar: Bar | None) -> list[str]:
    """The documents that go on, best first: those that reach the bar, at least the best one.

    Without any score nothing tells the documents apart, so all go on in their given order.
    """
    order = ranking(scores)
    if bar is None:
        return order
    reaching = [i for i in order if (value := scores[i].value) is not None and value >= bar.value - TOLERANCE]
    return reaching or order[:1]


def reasons(scores: Mapping[str, DocumentScore], bar: Bar | None, kept: list[str]) -> dict[str, str]:
    """Per document its rank and why it goes on or not."""
    order = ranking(scores)
    found = {}
    for rank, i in enumerate(order, 1):
        value = scores[i].value
        if bar is None:
            found[i] = f"kept, as no document has a score: {scores[i].detail}"
        elif value is None:
            found[i] = f"dropped: {scores[i].detail}"
        else:
            side = "reaches" if value >= bar.value - TOLERANCE else "is below"
            what = f"rank {rank} of {len(order)}: log-odds {value:+.3f} {side} the bar {bar.value:+.3f}"
            found[i] = f"{what}, kept as the best" if i in kept and side != "reaches" else what
    return found
