"""The options of DuQUAD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from mdqa.methods.base import MethodConfig
from mdqa.methods.duquad.fusion import LocalOrder, LocalRanker, Normalisation
from mdqa.methods.duquad.signals import Contrast


class DuQUADConfig(MethodConfig):
    """Options of DuQUAD. Weights are the paper's (Table 6) and k is Figure 3's; the rest is our reading."""

    weight_sim: float = Field(0.5, ge=0, le=10, description="Weight of semantic relevance; 0 leaves it out")
    weight_ppl: float = Field(1.0, ge=0, le=10, description="Weight of structural inference; 0 leaves it out")
    weight_cont: float = Field(0.5, ge=0, le=10, description="Weight of attention contrast; 0 leaves it out")
    normalisation: Normalisation = Field("z_score", description="How the signals are brought to one scale")
    contrast: Contrast = Field(
        "token_masked",
        description="Attention contrast: without tokens far below their document's mean, with all, as a ratio "
        "(relative: cancels more of a model's preference for places), or the question's attention alone (plain)",
    )
    ppl_restriction: bool = Field(
        False, description="Structural inference of the question with a sentence added: that the document answers it"
    )
    allow_missing_signals: bool = Field(
        True, description="Go on with the other signals where the model or encoder cannot give one"
    )
    local_ranker: LocalRanker = Field(
        "sfs",
        description="What picks the Local Agent's documents: the Structural Fusion Score, or for comparison word "
        "overlap (bm25), sentence embeddings (dense) or both by reciprocal rank (rrf), as in Figure 4",
    )
    k: int = Field(6, ge=1, le=200, description="Documents that the Local Agent reads")
    local_order: LocalOrder = Field(
        "original", description="Order in which the Local Agent reads: as given, best first, or best last"
    )
    max_cited: int = Field(5, ge=1, le=50, description="Documents that one agent may cite")
    threshold: float = Field(0.4, ge=0, le=1, description="A candidate is kept if its DocScore reaches this")
    continuous_doc_score: bool = Field(
        False, description="DocScore from the model's probability of yes against no instead of a written number"
    )
    key_sentences: Literal["agent", "encoder"] = Field(
        "agent", description="Who picks the key sentences: the Score Agent, or the encoder by similarity"
    )
    max_key_sentences: int = Field(5, ge=1, le=50, description="Key sentences taken from the Score Agent per document")
    fallback_sentences: int = Field(
        3, ge=1, le=50, description="Sentences that the encoder picks per document where the Score Agent names none"
    )
    without_local: bool = Field(False, description="Ablation: leave out the Local Agent")
    without_global: bool = Field(False, description="Ablation: leave out the Global Agent")
    without_pruning: bool = Field(
        False, description="Ablation: no DocScore; the judge reads all candidates with their full text"
    )
    compare_ablations: bool = Field(
        False,
        description="Also carry out the three ablations in the same run, from the same agents' replies; their calls "
        "are part of the run's cost",
    )
    agent_max_tokens: int = Field(256, ge=16, le=2048, description="Longest reply of an agent, in tokens")
    score_max_tokens: int = Field(64, ge=8, le=512, description="Longest reply of the Score Agent, in tokens")
    judge_max_tokens: int = Field(256, ge=16, le=2048, description="Longest reply of the judge, in tokens")
    temperature: float = Field(0.0, ge=0, le=2, description="0 always takes the most likely token")
    top_p: float = Field(1.0, gt=0, le=1, description="Share of probability from which tokens are drawn")

    @property
    def weights(self) -> Mapping[str, float]:
        """The weights by signal, only those that count; none where another ranker picks the documents."""
        if self.local_ranker != "sfs":
            return {}
        weights = {"sim": self.weight_sim, "ppl": self.weight_ppl, "cont": self.weight_cont}
        return {name: weight for name, weight in weights.items() if weight > 0}

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        if self.local_ranker == "sfs" and not self.weights:
            raise ValueError("weight_sim, weight_ppl and weight_cont are all 0; give one of them a weight")
        if self.without_local and self.without_global:
            raise ValueError("without_local and without_global together leave no agent; choose one of them")
        if self.compare_ablations and (self.without_local or self.without_global or self.without_pruning):
            raise ValueError("compare_ablations carries out the ablations itself; leave the without_ options off")
        return self
