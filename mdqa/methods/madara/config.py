"""Options of MADARA."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from mdqa.methods.base import MethodConfig
from mdqa.methods.madara.agents import AGENTS
from mdqa.methods.madara.parsing import ConflictScale
from mdqa.methods.madara.router import Thresholds
from mdqa.methods.madara.treatments import Ties

Treatment = Literal["auto", "nf", "three_agent", "cot", "sda", "atf", "pde"]
Votes = Literal["full", "uniform", "random", "calibrated"]


class MADARAConfig(MethodConfig):
    """Options of MADARA; the paper's values unless the description says otherwise."""

    treatment: Treatment = Field(
        "auto",
        description="What is done with the documents: auto (the router decides from the profile), nf (all documents "
        "to the generator), three_agent, cot, sda, atf or pde",
    )
    task: Literal["auto", "factoid", "fever", "multi-hop"] = Field(
        "auto",
        description="Generator prompt: factoid answer, FEVER label, or auto (by the question's data set). multi-hop "
        "answers as factoid and sends strongly coupled pairs with low No-Filter accuracy to scoring, not to PDE (ours)",
    )
    k: int = Field(5, ge=1, le=200, description="Documents that the generator may see after selection")
    relevance_weight: float = Field(0.4, ge=0, le=1, description="Weight of the Relevance Agent")
    consistency_weight: float = Field(0.3, ge=0, le=1, description="Weight of the Consistency Agent")
    conflict_weight: float = Field(0.3, ge=0, le=1, description="Weight of the Conflict Agent")
    sda_relevance_weight: float = Field(1 / 3, ge=0, le=1, description="Weight of the Relevance Agent in SDA")
    sda_consistency_weight: float = Field(1 / 3, ge=0, le=1, description="Weight of the Consistency Agent in SDA")
    sda_conflict_weight: float = Field(1 / 3, ge=0, le=1, description="Weight of the Conflict Agent in SDA")
    ties: Ties = Field(
        "mid", description="SDA's ranks of equal scores: mid (mean rank, our reading) or ordinal (by position)"
    )
    sda_cot: bool = Field(False, description="SDA over the scores of the CoT agents (the paper's SDA+CoT)")
    kappa: float = Field(0.5, ge=0, le=5, description="ATF keeps scores from mean - kappa standard deviations on")
    keep_min: int = Field(2, ge=1, le=200, description="ATF keeps at least so many documents")
    pde_votes: Votes = Field(
        "full",
        description="PDE: votes weighted by score (full), assessed selection with equal votes (uniform), random "
        "documents with equal votes and no assessment (random), or weighted by the probability that the document is "
        "evidence, which the profile fits to marked documents (calibrated; not in the paper)",
    )
    pde_ranking: Literal["agents", "similarity", "likelihood"] = Field(
        "agents",
        description="Who ranks PDE's documents: the agents, sentence embeddings, or how likely the model finds the "
        "question after the document (the last two are ours; they need no agent)",
    )
    drop_abstentions: bool = Field(
        False, description="PDE leaves out answers such as 'unknown' where there are others (not in the paper)"
    )
    may_abstain: bool = Field(
        False, description="The generator may reply 'unknown' (not in the paper); of use with drop_abstentions"
    )
    order: Literal["best_first", "best_last", "original"] = Field(
        "best_first", description="Order in which kept documents are read together (the paper: best first)"
    )
    per_query: Literal["off", "conflict"] = Field(
        "off",
        description="conflict: a question whose documents the Conflict Agent finds in conflict is read document by "
        "document (PDE), whatever the router chose for the model (ours)",
    )
    compare: Literal["none", "shared", "all"] = Field(
        "none",
        description="Also carry out the treatments that were not chosen: those that share one assessment, or all, with "
        "the agents' reasoning too; every document is then read alone as well",
    )
    router: Literal["rsc", "entropy"] = Field(
        "rsc",
        description="Router: by No-Filter accuracy and the probe's correlations (rsc), or the paper's baseline by the "
        "entropy of the grades, which knows CoT and SDA only (entropy)",
    )
    tau_nf: float = Field(0.30, ge=0, le=1, description="Router: PDE if No-Filter accuracy is below")
    rho1_threshold: float = Field(0.5, ge=-1, le=1, description="Router: CoT if rho_1 is below, else ATF")
    entropy_threshold: float = Field(
        0.70,
        ge=0,
        le=1,
        description="Entropy router: SDA from this share of the largest entropy on, else CoT (our reading)",
    )
    conflict_per_doc: bool = Field(
        False, description="Ask the Conflict Agent once per document, as the released code does, not once per query"
    )
    conflict_scale: ConflictScale = Field(
        "centred", description="Adjustment to score: centred 2.5 + 1.25 adj, or shifted 3 + adj (both our reading)"
    )
    claim_characters: int = Field(
        200, ge=20, le=4000, description="Characters of each document that the Consistency and Conflict Agents compare"
    )
    temperature: float = Field(0.6, ge=0, le=2, description="Sampling temperature of all calls; 0 is greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus sampling; the paper does not state it")
    agent_max_tokens: int = Field(
        128, ge=16, le=4096, description="Longest agent reply in tokens; the paper allows 512, replies are shorter"
    )
    conflict_max_tokens: int = Field(
        256, ge=16, le=4096, description="Longest reply of the Conflict Agent in tokens: it names many documents"
    )
    cot_max_tokens: int = Field(
        256, ge=32, le=4096, description="Longest reply of a CoT agent in tokens; the paper allows 512"
    )
    generator_max_tokens: int = Field(64, ge=1, le=4096, description="Longest answer in tokens")

    @model_validator(mode="after")
    def _some_weight(self) -> MADARAConfig:
        for name, weights in (("weights", self.weights), ("sda weights", self.sda_weights)):
            if sum(weights.values()) <= 0:
                raise ValueError(f"at least one of the {name} must be above 0")
        return self

    @model_validator(mode="after")
    def _votes_fit_the_ranking(self) -> MADARAConfig:
        if self.pde_votes == "calibrated" and self.pde_ranking == "agents":
            raise ValueError("pde_votes calibrated needs pde_ranking similarity or likelihood, which a profile fits")
        if self.pde_votes == "full" and self.pde_ranking == "likelihood":
            raise ValueError("log-likelihoods are no votes; with pde_ranking likelihood choose uniform or calibrated")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """Agent -> weight of the weighted mean."""
        values = (self.relevance_weight, self.consistency_weight, self.conflict_weight)
        return dict(zip(AGENTS, values, strict=True))

    @property
    def sda_weights(self) -> dict[str, float]:
        """Agent -> weight in SDA."""
        values = (self.sda_relevance_weight, self.sda_consistency_weight, self.sda_conflict_weight)
        return dict(zip(AGENTS, values, strict=True))

    @property
    def thresholds(self) -> Thresholds:
        """The router's thresholds."""
        return Thresholds(self.tau_nf, self.rho1_threshold, self.entropy_threshold)
