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
Votes = Literal["full", "uniform", "random"]


class MADARAConfig(MethodConfig):
    """Options of MADARA; the paper's values unless the description says otherwise."""

    treatment: Treatment = Field(
        "auto",
        description="What is done with the documents: auto (the router decides from the profile), nf (all documents "
        "to the generator), three_agent, cot, sda, atf or pde",
    )
    task: Literal["auto", "factoid", "fever"] = Field(
        "auto", description="Generator prompt: factoid answer, FEVER label, or auto (by the question's data set)"
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
        description="PDE: votes weighted by score (full), assessed selection with equal votes (uniform), or random "
        "documents with equal votes and no assessment (random)",
    )
    drop_abstentions: bool = Field(
        False, description="PDE leaves out answers such as 'unknown' where there are others (not in the paper)"
    )
    tau_nf: float = Field(0.30, ge=0, le=1, description="Router: PDE if No-Filter accuracy is below")
    rho1_threshold: float = Field(0.5, ge=-1, le=1, description="Router: CoT if rho_1 is below, else ATF")
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
        return Thresholds(self.tau_nf, self.rho1_threshold)
