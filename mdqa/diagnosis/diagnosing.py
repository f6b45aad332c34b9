"""Diagnosing runs: every wrong answer gets one verdict, and the verdicts are counted.

The first of :data:`~mdqa.diagnosis.checks.CHECKS` that finds something gives the verdict; every other verdict that
applies too stands in ``also``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mdqa.diagnosis.cases import VERDICTS, Case, Finding, Need
from mdqa.diagnosis.checks import CHECKS, LAST
from mdqa.records import RunResult
from mdqa.trace import ModelCall


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on one wrong answer; ``also``: the other verdicts that apply."""

    id: str
    run: str
    method: str
    answer: str
    finding: Finding
    also: tuple[str, ...]

    def to_line(self) -> dict[str, Any]:
        """The line of ``python -m mdqa diagnose``."""
        found = self.finding
        return {
            "id": self.id,
            "run": self.run,
            "method": self.method,
            "verdict": found.verdict,
            "stage": found.stage,
            "doc_ids": list(found.documents),
            "answer": self.answer,
            "detail": dict(found.detail),
            "also": list(self.also),
        }


@dataclass(frozen=True)
class Diagnoses:
    """The wrong answers of some runs, and how many runs were right or cannot be wrong (no accepted answers)."""

    items: tuple[Diagnosis, ...]
    right: int
    without_answers: int

    @property
    def counts(self) -> dict[str, int]:
        """How often each verdict was given, in the order of :data:`VERDICTS`; they add up to the wrong answers."""
        counted = Counter(item.finding.verdict for item in self.items)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def also(self) -> dict[str, int]:
        """How often each verdict applies, given or not."""
        counted = Counter(name for item in self.items for name in (item.finding.verdict, *item.also))
        return {verdict: counted[verdict] for verdict in VERDICTS}


def diagnose_all(
    results: Iterable[RunResult],
    *,
    metric: str = "sub_em",
    need: Need = "all",
    labels: Mapping[str, bool] = MappingProxyType({}),
    replies: Callable[[str], Sequence[ModelCall]] = lambda run: (),
) -> Diagnoses:
    """Diagnose every wrong answer among the results.

    Args:
        results: runs in any state; one that failed has no answer and is wrong.
        metric: a name of :data:`~mdqa.diagnosis.cases.RIGHT`.
        need: which of the evidence an answer needs.
        labels: by run id, whether a person found the answer right.
        replies: from a run id to its model calls, where their texts are kept.
    """
    items: list[Diagnosis] = []
    right = without = 0
    for result in results:
        case = Case(result, metric, need, replies(result.id), labels.get(result.id))
        if result.status == "ok" and (case.says(result.answer) or (case.accepted and not result.question.answers)):
            right += 1
        elif not result.question.answers and case.accepted is None:
            without += 1
        else:
            items.append(diagnose(case))
    return Diagnoses(tuple(items), right, without)


def diagnose(case: Case) -> Diagnosis:
    """The verdict on an answer that is wrong, and what else applies."""
    findings = [finding for check in CHECKS for finding in check(case)]
    first = findings[0]
    others = dict.fromkeys(f.verdict for f in findings[1:] if f.verdict not in (first.verdict, *LAST))
    result = case.result
    return Diagnosis(result.question.id, result.id, result.method, result.answer, first, tuple(others))
