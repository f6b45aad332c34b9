"""MADARA's treatments as what they are made of: who assesses, which scores count, what is kept, how it is read. Pure.

Every treatment of the paper and every variant of PDE is one row of these five choices, so that the method carries out
rows and compares them, and a new treatment is a new row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mdqa.methods.madara import treatments
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.router import TITLES
from mdqa.methods.madara.treatments import Scores
from mdqa.methods.ranking import TOLERANCE, ranking

Assessment = Literal["none", "base", "cot", "similarity", "likelihood"]
Signal = Literal["aggregate", "rank_aligned", "similarity", "likelihood"]
Selection = Literal["all", "best", "adaptive", "random"]
Votes = Literal["score", "uniform", "calibrated"]


@dataclass(frozen=True)
class Plan:
    """A treatment.

    Attributes:
        key: a name that no other plan has; ``treatment`` is the router's name for it and its variants.
        assessment: the three agents (base or reasoning first), a ranking without agents, or nobody.
        signal: the score that the selection goes by.
        alone: every kept document is read by itself and the readings vote (PDE); else they are read together.
        votes: what a reading's vote counts.
    """

    key: str
    treatment: str
    title: str
    assessment: Assessment = "base"
    signal: Signal = "aggregate"
    selection: Selection = "best"
    alone: bool = False
    votes: Votes = "score"

    @property
    def assessed(self) -> bool:
        """Whether documents have scores."""
        return self.assessment != "none"


def _plan(key: str, treatment: str = "", title: str = "", **more: object) -> Plan:
    treatment = treatment or key
    return Plan(key, treatment, title or TITLES[treatment], **more)  # type: ignore[arg-type]


PLANS: Mapping[str, Plan] = {
    plan.key: plan
    for plan in (
        _plan("nf", assessment="none", selection="all"),
        _plan("three_agent"),
        _plan("cot", assessment="cot"),
        _plan("sda", signal="rank_aligned"),
        _plan("sda_cot", "sda", "SDA over the scores after reasoning", assessment="cot", signal="rank_aligned"),
        _plan("atf", selection="adaptive"),
        _plan("pde", alone=True),
        _plan("pde_uniform", "pde", "PDE, equal votes", alone=True, votes="uniform"),
        _plan(
            "pde_random", "pde", "PDE, random documents", assessment="none", selection="random", alone=True,
            votes="uniform",
        ),
    )
}  # fmt: skip
"""The treatments of the paper, in the order of its tables."""


def compared(compare: str) -> tuple[Plan, ...]:
    """The treatments that are carried out with this value of the option ``compare``."""
    if compare == "none":
        return ()
    return tuple(plan for plan in PLANS.values() if compare == "all" or plan.assessment != "cot")


def plan_for(treatment: str, config: MADARAConfig) -> Plan:
    """The plan that carries out the router's (or the user's) treatment with these options."""
    if treatment == "sda" and config.sda_cot:
        return PLANS["sda_cot"]
    if treatment != "pde":
        return PLANS[treatment]
    if config.pde_votes == "random":
        return PLANS["pde_random"]
    plan = PLANS["pde_uniform" if config.pde_votes == "uniform" else "pde"]
    key, title = plan.key, plan.title
    if config.pde_votes == "calibrated":
        key, title = "pde_calibrated", "PDE, votes by calibrated relevance"
        plan = replace(plan, votes="calibrated")
    if config.pde_ranking == "agents":
        return replace(plan, key=key, title=title)
    return replace(
        plan,
        key=f"{key}_{config.pde_ranking}",
        title=f"{title}, documents ranked by {config.pde_ranking}",
        assessment=config.pde_ranking,
        signal=config.pde_ranking,
    )


@dataclass(frozen=True)
class Chosen:
    """What a plan keeps: ids best first, why each document was kept or not, and ATF's threshold (None elsewhere)."""

    kept: tuple[str, ...]
    reasons: Mapping[str, str]
    threshold: float | None = None


def choose(plan: Plan, documents: tuple[str, ...], scores: Scores | None, config: MADARAConfig, seed: str) -> Chosen:
    """The plan's selection from the documents, given as ids in their order.

    ``scores`` are the plan's signal (None where nothing is assessed); ``seed`` is for PDE-Random.
    """
    if plan.selection == "all":
        return Chosen(documents, dict.fromkeys(documents, "No-Filter keeps every document"))
    if plan.selection == "random":
        drawn = treatments.random_documents(documents, config.k, seed)
        return Chosen(tuple(drawn), {d: "drawn" if d in drawn else "not drawn" for d in documents})
    assert scores is not None
    order, threshold = ranking(scores), None
    kept = order[: config.k]
    if plan.selection == "adaptive":
        kept, threshold = treatments.adaptive_filter(scores, kappa=config.kappa, keep_min=config.keep_min, k=config.k)
    return Chosen(tuple(kept), _reasons(order, kept, scores, threshold), threshold)


def _reasons(order: list[str], kept: list[str], scores: Scores, threshold: float | None) -> dict[str, str]:
    """Per document its rank and why it was kept or dropped."""
    reasons = {}
    for rank, document in enumerate(order, 1):
        value = scores[document].value
        what = f"rank {rank}" if value is not None else f"rank {rank}: no score, behind all scored documents"
        if value is not None and threshold is not None:
            above = value >= threshold - TOLERANCE
            what += f", {'reaches' if above else 'below'} the threshold {threshold:.3f}"
            what += ", kept to have the smallest number" if document in kept and not above else ""
            what += f", beyond the best {len(kept)}" if document not in kept and above else ""
        elif document not in kept:
            what += f", beyond the best {len(kept)}"
        reasons[document] = what
    return reasons


def vote_weights(plan: Plan, kept: tuple[str, ...], scores: Scores | None) -> dict[str, float | None]:
    """What each kept document's vote counts: 1, or its score (None where the document has none)."""
    if plan.votes == "uniform" or scores is None:
        return dict.fromkeys(kept, 1.0)
    return {document: scores[document].value for document in kept}


def reading_order(kept: tuple[str, ...], documents: tuple[str, ...], config: MADARAConfig) -> tuple[str, ...]:
    """The kept documents in the order in which they are read together (``order``)."""
    if config.order == "best_last":
        return kept[::-1]
    return kept if config.order == "best_first" else tuple(document for document in documents if document in set(kept))
