"""Answers that are required together and not aliases of each other (RAMDocs): all right ones, and no wrong one.

MADAM-RAG, which introduced RAMDocs, counts a reply as right if it has every answer that its documents support and none
of those that misinformation brings in. How two texts are compared is our choice: in SQuAD's normal form and word by
word, so that "3" is not in "1933".
"""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.scoring.answers import normalize


def set_recall(prediction: str, answers: Sequence[str]) -> float | None:
    """Share of the required answers that the prediction has; None without any."""
    return sum(has(prediction, answer) for answer in answers) / len(answers) if answers else None


def set_wrong(prediction: str, wrong: Sequence[str]) -> int:
    """How many of the wrong answers the prediction has."""
    return sum(has(prediction, answer) for answer in wrong)


def set_match(prediction: str, answers: Sequence[str], wrong: Sequence[str] = ()) -> float:
    """1.0 if the prediction has every required answer and none of the wrong ones; 0.0 without required answers."""
    return float(set_recall(prediction, answers) == 1.0 and not set_wrong(prediction, wrong))


def has(prediction: str, answer: str) -> bool:
    """Whether the answer's words stand in the prediction side by side; an answer without a word does not."""
    form = normalize(answer)
    return bool(form) and f" {form} " in f" {normalize(prediction)} "
