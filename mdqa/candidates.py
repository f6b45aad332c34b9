"""The answers of a run that a person can decide between: two voices that differ, or the one answer there is.

Candidates stand in a canonical order that a run always has (``first``, ``second``); the order in which somebody sees
them is drawn elsewhere. Labels speak of the canonical order, so that they mean the same for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mdqa.methods.duquad.parsing import normalised
from mdqa.records import Opinion, RunResult

AGENTS = ("local_agent", "global_agent")
"""Roles of the voices whose disagreement DuQUAD's judge decides, in canonical order."""

TREATMENT = "treatment"
"""Role of the opinions that say what each of MADARA's treatments answers."""


@dataclass(frozen=True)
class Candidate:
    """An answer to decide about. ``key`` names it within its run: a role, a treatment's key, or ``answer``."""

    key: str
    role: str
    title: str
    answer: str


def candidates_of(run: RunResult) -> tuple[Candidate, ...]:
    """The run's candidates in canonical order: two answers that differ, else the only one there is, else none.

    DuQUAD: what the Local and the Global Agent say. MADARA: what the treatment says that was carried out, and the
    first treatment's answer that differs from it. Others, and where all say the same: the answer of the run. Answers
    are the same that differ in case, punctuation and articles only; no answer differs from every answer.
    """
    spoken = {opinion.role: opinion for opinion in run.opinions if opinion.role in AGENTS}
    if len(spoken) == len(AGENTS) and (pair := _pair([spoken[role] for role in AGENTS])):
        return tuple(Candidate(one.role, one.role, one.title, one.answer.strip()) for one in pair)
    treatments = [opinion for opinion in run.opinions if opinion.role == TREATMENT]
    if pair := _pair(sorted(treatments, key=lambda one: not one.chosen)):
        return tuple(Candidate(one.group, one.role, one.title, one.answer.strip()) for one in pair)
    if run.answer.strip():
        return (Candidate("answer", "answer", "Answer of the run", run.answer.strip()),)
    return ()


def label_of(answer: str, candidates: Sequence[Candidate]) -> str:
    """The label that says what an answer says (a judge's, say): ``first``, ``second`` or ``neither``.

    Without an answer it is ``neither``, too.
    """
    for label, candidate in zip(("first", "second"), candidates, strict=False):
        if answer.strip() and normalised(candidate.answer) == normalised(answer):
            return label
    return "neither"


def _pair(opinions: Iterable[Opinion]) -> tuple[Opinion, Opinion] | None:
    """The first opinion and the next one whose answer differs; None where all say the same or nothing."""
    first: Opinion | None = None
    for opinion in opinions:
        if first is None:
            first = opinion
        elif normalised(opinion.answer) != normalised(first.answer):
            return first, opinion
    return None
