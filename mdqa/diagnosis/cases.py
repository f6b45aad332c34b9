"""A wrong answer and what is known about it, the verdicts there are, and what counts as right.

Right is what a metric says; the accepted answers of a question are never seen by a method. A question without
accepted answers can be wrong only where a person said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from mdqa.records import Question, RunResult
from mdqa.scoring.answers import best_subspan_em, exact_match, normalize
from mdqa.scoring.losses import Loss, fate
from mdqa.scoring.sets import has, set_match
from mdqa.trace import ModelCall

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "metric_mismatch": "a person accepts the answer; only the metric does not",
        "unanswered": "the run failed, or its answer is empty or says that there is none",
        "overruled": "an agent, or another treatment of the same run, had the right answer and another one was given",
        "vote_split": "the reading of a document gave the right answer and another one won the vote",
        "wrong_extraction": "the right answer stands in what the model wrote, and another one was taken from it",
        "gold_not_in_input": "no document with evidence was among those given",
        "parse_failure": "a reply that decided could not be read",
        "dropped": "a stage removed evidence",
        "kept_not_cited": "an agent read the evidence and did not cite it",
        "kept_not_attended": "the evidence reached the model and got less attention than the mean document",
        "read_but_wrong": "everything reached the model, and it still erred",
        "evidence_unknown": "no document is marked as evidence, so nothing can be said about where it went",
    }
)
"""Every verdict in one sentence."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "metric_mismatch": "Right for people, wrong for the metric",
        "unanswered": "No answer",
        "overruled": "Right answer overruled",
        "vote_split": "Right answer outvoted",
        "wrong_extraction": "Wrong answer taken from a right reply",
        "gold_not_in_input": "Evidence not in the input",
        "parse_failure": "Reply could not be read",
        "dropped": "Evidence dropped",
        "kept_not_cited": "Evidence kept, not cited",
        "kept_not_attended": "Evidence kept, not attended",
        "read_but_wrong": "Everything read, still wrong",
        "evidence_unknown": "Wrong, evidence unknown",
    }
)
"""Every verdict in a few words."""

UNREADABLE = frozenset({"parse_error", "out_of_range", "truncated", "timeout"})
"""Statuses of a reply that could not be read. ``unavailable`` is none: there nothing was asked."""

CLOSED = frozenset({"yes", "no", "noanswer", "true", "false", "supports", "refutes", "supported", "refuted"})
"""Answers too common in any text for a mention of them to mean anything."""

Need = Literal["all", "any"]
"""Which documents marked as evidence an answer needs: all of them (multi-hop), or any (several tell it)."""

Right = Callable[[str, Question], bool]


def _required(answer: str, item: Question) -> bool:
    return bool(set_match(answer, item.answers, item.meta.get("wrong_answers", ())))


RIGHT: Mapping[str, Right] = MappingProxyType(
    {
        "em": lambda answer, item: bool(exact_match(answer, item.answers)),
        "sub_em": lambda answer, item: bool(best_subspan_em(answer, item.answers)),
        "set": _required,
    }
)
"""What counts as right: exact match, SubEM, or RAMDocs' all accepted answers and none of the wrong ones."""


@dataclass(frozen=True)
class Case:
    """One wrong answer and what is known about it.

    ``replies`` are the run's model calls with their raw text where they are at hand (result lines have none).
    ``accepted``: whether a person said that the answer is right; None where nobody said.
    """

    result: RunResult
    metric: str = "sub_em"
    need: Need = "all"
    replies: Sequence[ModelCall] = ()
    accepted: bool | None = None

    def says(self, answer: str) -> bool:
        """Whether an answer is right; never without accepted answers."""
        return (
            bool(self.result.question.answers)
            and bool(answer.strip())
            and RIGHT[self.metric](answer, self.result.question)
        )

    def mentions(self, text: str) -> tuple[str, ...]:
        """The accepted answers that a text mentions; where all are required, none unless it mentions all."""
        answers = self.result.question.answers
        found = tuple(answer for answer in answers if mentioned(text, answer))
        return found if self.metric != "set" or len(found) == len(answers) else ()

    def losses(self) -> tuple[Loss, ...]:
        """The evidence that did not reach the answer; none while as much as is needed did."""
        found = [fate(self.result, document) for document in self.result.question.gold_ids]
        lost = tuple(loss for loss in found if loss.fate != "reached")
        return () if self.need == "any" and len(lost) < len(found) else lost


@dataclass(frozen=True)
class Finding:
    """A verdict that applies, the stage where it happened (its name), the documents it is about and the details."""

    verdict: str
    stage: str = ""
    documents: tuple[str, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


def mentioned(text: str, answer: str) -> bool:
    """Whether an answer's words stand in a text side by side, both in SQuAD's normal form.

    Answers like yes and no (:data:`CLOSED`) never do.
    """
    return normalize(answer) not in CLOSED and has(text, answer)
