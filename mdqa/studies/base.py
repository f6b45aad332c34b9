"""What the studies share: variants of a question, what came of them, and how much attention each document got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mdqa.records import Cost, Question, RunResult, RunStatus
from mdqa.scoring.answers import HEADLINE, says_an_answer
from mdqa.scoring.losses import own_opinions

State = RunStatus | Literal["missing"]
"""How a member stands; ``missing`` before its run has begun, or when that run was deleted."""

JUDGE = "judge"
"""The role of an opinion that decides between others."""


@dataclass(frozen=True)
class Variant:
    """One member of a study: ``method`` on ``question``. ``key`` tells it from the others of its study."""

    key: str
    method: str
    question: Question = field(repr=False)


@dataclass(frozen=True)
class Mass:
    """Attention mass per document in one pass of a run: the mean over ``heads`` retrieval heads, or 0 for all heads."""

    title: str
    heads: int
    documents: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """What came of a member. ``sub_em`` and ``f1`` are None without accepted answers, and unless the state is ok.

    ``route`` is the treatment that was taken, ``judge`` the side that the judge took (empty where there is none).
    """

    state: State
    run: str = ""
    answer: str = ""
    correct: bool | None = None
    sub_em: float | None = None
    f1: float | None = None
    route: str = ""
    judge: str = ""
    cost: Cost = field(default_factory=Cost)
    error: str = ""


@dataclass(frozen=True)
class Tally:
    """How many members there are and how they stand; ``stopped`` are cancelled and interrupted ones."""

    total: int
    ok: int
    failed: int
    stopped: int
    running: int
    missing: int


def outcome(run: RunResult | None) -> Outcome:
    """A run as the studies compare it; None is one that has not begun."""
    if run is None:
        return Outcome("missing")
    error = run.error.message if run.error is not None else ""
    if run.status != "ok":
        return Outcome(run.status, run.id, run.answer, cost=run.cost, error=error)
    answers = run.question.answers
    return Outcome(
        state="ok",
        run=run.id,
        answer=run.answer,
        correct=says_an_answer(run.answer, answers),
        sub_em=HEADLINE["sub_em"](run.answer, answers) if answers else None,
        f1=HEADLINE["f1"](run.answer, answers) if answers else None,
        route=run.routing.title if run.routing is not None else "",
        judge=judges_side(run),
        cost=run.cost,
    )


def judges_side(run: RunResult) -> str:
    """The group of opinions that the judge agrees with, ``neither`` for none of them; empty without a judge."""
    judges = [opinion for opinion in own_opinions(run) if opinion.role == JUDGE]
    return (judges[-1].group or "neither") if judges else ""


def tally(states: Iterable[State]) -> Tally:
    """Members by state; every one is counted."""
    found = Counter(states)
    return Tally(
        total=found.total(),
        ok=found["ok"],
        failed=found["failed"],
        stopped=found["cancelled"] + found["interrupted"],
        running=found["running"],
        missing=found["missing"],
    )


def spent(costs: Iterable[Cost]) -> Cost:
    """The costs together."""
    return sum(costs, Cost())


def attention_mass(run: RunResult) -> Mass | None:
    """The mass on each document in the pass that looked at most documents (the first of them); None without any.

    Where the pass worked with retrieval heads, theirs: the mean over all heads is mostly that of heads which look at
    the beginning of the prompt.
    """
    passes = [summary for summary in run.attention_summary if summary.document_mass]
    if not passes:
        return None
    widest = max(passes, key=lambda summary: len(summary.document_mass))
    title = next((stage.title for stage in run.stages if stage.name == widest.stage), widest.stage)
    rows = list(widest.head_mass.values())
    if not rows:
        return Mass(title, 0, dict(widest.document_mass))
    means = {name: _mean([row[name] for row in rows if name in row]) for name in widest.document_mass}
    return Mass(title, len(rows), {name: mean for name, mean in means.items() if mean is not None})


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
