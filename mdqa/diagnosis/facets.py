"""What a stored run is found by: its benchmark, why it is wrong, who disagreed in it, how near another outcome was.

Facets are worked out once, when a run ends, and kept beside it. :data:`VERSION` rises when their meaning changes, so
that those of older runs are worked out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mdqa.benchmarks.names import benchmark_of
from mdqa.candidates import AGENTS, TREATMENT
from mdqa.diagnosis.diagnosing import Diagnosis, diagnose_all
from mdqa.interventions import done_to
from mdqa.records import Opinion, Routing, RunResult
from mdqa.scoring.answers import normalize
from mdqa.scoring.losses import ballots, own_opinions
from mdqa.trace import ModelCall

VERSION = 1

DISAGREEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "agents": "the Local and the Global Agent give different answers",
        "judge": "the judge gives another answer than most of the agents that it heard",
        "treatments": "treatments of the same run come to different answers",
        "votes": "the readings of single documents vote for different answers",
    }
)
"""Every kind of disagreement in one sentence."""

ENDED = ("ok", "failed")
"""States of runs that came to their own end; a run that was stopped is no wrong answer."""

JUDGE = "judge"
"""Role of the voice that decides between agents."""

TREND = "rho_star"
"""A margin of a routing that decides nothing: how far the trend is from its own end of the scale."""


@dataclass(frozen=True)
class Facets:
    """The facets of a run.

    ``diagnosis``: the verdict on a wrong answer and ``stage`` where it happened, both empty for any other run.
    ``margin``: from 0 (on the edge) on, see :func:`margin_of`; None where nothing was decided by a measure.
    """

    benchmark: str = ""
    diagnosis: str = ""
    stage: str = ""
    disagreements: tuple[str, ...] = ()
    margin: float | None = None
    version: int = VERSION


def facets_of(result: RunResult, calls: Sequence[ModelCall] = (), *, accepted: bool | None = None) -> Facets:
    """The facets of a run as far as it got.

    Args:
        result: the run with its question.
        calls: its model calls, with which an answer is found that was written and not taken from the reply.
        accepted: whether people find the answer right; None where nobody said.
    """
    found = diagnosis_of(result, calls, accepted=accepted)
    name = benchmark_of(result.question)
    return Facets(
        benchmark=f"{name}@what-if" if name and done_to(result.question) else name,
        diagnosis=found.finding.verdict if found else "",
        stage=found.finding.stage if found else "",
        disagreements=disagreements_in(result),
        margin=margin_of(result),
    )


def diagnosis_of(
    result: RunResult, calls: Sequence[ModelCall] = (), *, accepted: bool | None = None
) -> Diagnosis | None:
    """The diagnosis of a run whose answer is wrong; None for a right one, an unknown one and an unfinished run."""
    if result.status not in ENDED:
        return None
    labels = {} if accepted is None else {result.id: accepted}
    items = diagnose_all([result], labels=labels, replies=lambda run: calls).items
    return items[0] if items else None


def disagreements_in(result: RunResult) -> tuple[str, ...]:
    """The kinds of :data:`DISAGREEMENTS` in a run, in their order. No answer differs from no answer."""
    own = own_opinions(result)
    agents = [opinion for opinion in own if opinion.role in AGENTS]
    treatments = [opinion for opinion in result.opinions if opinion.role == TREATMENT]
    found = {
        "agents": _differ(agents),
        "judge": _against_majority([opinion for opinion in own if opinion.role == JUDGE], agents),
        "treatments": _differ(treatments),
        "votes": _differ(ballots(result)),
    }
    return tuple(kind for kind in DISAGREEMENTS if found[kind])


def margin_of(result: RunResult) -> float | None:
    """How near the run was to another outcome: the smaller of the two margins below, as far as there are any.

    Routing: the smallest distance of a measure from the bar that would decide otherwise (both on scales of length 1
    or 2). Vote: the winner's share of all weights less that of the runner-up, 0 to 1.
    """
    known = [
        margin for margin in (_routing_margin(result.routing), _vote_margin(ballots(result))) if margin is not None
    ]
    return min(known, default=None)


def _answers(opinions: Sequence[Opinion]) -> list[str]:
    """Their answers but for case, punctuation and articles; those that have none are left out."""
    return [answer for opinion in opinions if (answer := normalize(opinion.answer) or opinion.answer.strip())]


def _differ(opinions: Sequence[Opinion]) -> bool:
    return len(set(_answers(opinions))) > 1


def _against_majority(judges: Sequence[Opinion], agents: Sequence[Opinion]) -> bool:
    said = _answers(agents)
    most = [answer for answer in set(said) if len(said) > 1 and 2 * said.count(answer) > len(said)]
    return bool(most) and any(answer not in most for answer in _answers(judges))


def _routing_margin(routing: Routing | None) -> float | None:
    """None where a person chose: then no measure decided."""
    if routing is None or "by hand" in routing.reason:
        return None
    margins = {name: abs(value) for name, value in routing.margins.items() if name != TREND}
    accuracy = routing.margins.get("EM_NF")
    if routing.treatment == "pde" and accuracy is not None and accuracy < 0 and "ulti-hop" not in routing.note:
        return abs(accuracy)  # the other measures were not asked
    gap = routing.margins.get("rho_gap")
    if routing.treatment == "sda" and gap is not None and gap <= 0:
        margins.pop("rho1", None)  # asked only where the correlations fall
    return min(margins.values(), default=None)


def _vote_margin(voting: Sequence[Opinion]) -> float | None:
    """By the weights of the votes; by their number where none has a weight."""
    weights: dict[str, float] = {}
    weighted = any(opinion.weight for opinion in voting)
    for opinion in voting:
        if answer := opinion.group or normalize(opinion.answer):
            weights[answer] = weights.get(answer, 0.0) + ((opinion.weight or 0.0) if weighted else 1.0)
    total = sum(weights.values())
    if len(voting) < 2 or total <= 0:
        return None
    first, second, *_ = [*sorted(weights.values(), reverse=True), 0.0]
    return (first - second) / total
