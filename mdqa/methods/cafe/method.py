"""CAFE: retrieval heads filter the documents, put the best last, and steer attention to the likely evidence.

Peng et al., EMNLP 2025, section 4. Stage 1 (coarse filtering): the question's attention in a few retrieval heads
chooses documents (eq. 1 to 6). Stage 2 (fine steering): other heads choose candidates among those left, and their
tokens get a bias in the attention of the question's rows while the answer is written (eq. 7 to 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field

from mdqa.attention.heads import head_shares
from mdqa.backends.base import Capability, GenerationRequest, Part, SteeredRows, Steering
from mdqa.methods.answers import short_answer
from mdqa.methods.base import Method, MethodConfig, Tools, documents_in_order
from mdqa.methods.cafe.attending import DocumentAttention, attend_documents, prompt
from mdqa.methods.cafe.profile import Scoring, read_heads, read_scoring
from mdqa.methods.cafe.selection import Selection, head_name, select
from mdqa.methods.cafe.sentences import select_sentences, sentence_shares, sentences_of
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.records import DocumentScore, Head, Question


class CAFEConfig(MethodConfig):
    """CAFE's options; defaults are the paper's (section 5.1) where it gives them."""

    k1: int = Field(4, ge=1, le=64, description="Retrieval heads used for coarse filtering (K1)")
    m1: int = Field(4, ge=1, le=100, description="Documents each coarse head chooses (M1)")
    k2: int = Field(2, ge=1, le=64, description="Retrieval heads used for fine steering (K2; the paper tries 1 to 4)")
    m2: int = Field(2, ge=1, le=100, description="Documents each fine head chooses (M2)")
    delta: float = Field(
        math.log(13),
        ge=0,
        le=20,
        description="Bias added to attention logits of candidate documents (log 13; the paper also uses log 10)",
    )
    bias_before_scale: bool = Field(
        False, description="Divide the bias by the square root of the head size too, as equation 8 is printed"
    )
    steered_rows: SteeredRows = Field("question", description="Prompt rows that are steered (eq. 9: question)")
    attending_rows: Literal["profile", "question", "question_to_end", "last"] = Field(
        "profile", description="Prompt rows whose attention scores the documents (profile: as its heads were found)"
    )
    doc_pool: Literal["profile", "sum", "mean"] = Field(
        "profile", description="How attention to a document's tokens is pooled; a sum favours long documents"
    )
    calibration: Literal["profile", "none", "content_free"] = Field(
        "profile",
        description="Subtract the attention that a question without content gives (content_free; the paper: none)",
    )
    granularity: Literal["document", "sentence"] = Field(
        "document",
        description="What fine steering chooses and steers to (sentence: the paper's ablation, M2 sentences)",
    )
    coarse_filtering: bool = Field(True, description="Stage 1: filter the documents (off: the paper's w/o CGF)")
    fine_steering: bool = Field(True, description="Stage 2: steer attention (off: the paper's w/o FGS)")
    order: Literal["best_last", "random", "original"] = Field(
        "best_last", description="Order after filtering (random: the paper's w/o re-ranking, seeded)"
    )
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest answer in tokens")


class CAFE(Method):
    """The two-stage method on one model; needs its attention and a profile with two sets of retrieval heads."""

    name = "cafe"
    title = "CAFE"
    summary = "Retrieval heads filter and re-order the documents, then attention is steered to the likely evidence."
    Config: ClassVar[type[MethodConfig]] = CAFEConfig
    uses_profile = True
    requires_profile = True
    profile_of_inspected = True
    controls = ("delta", "m1", "k1", "m2", "k2")

    config: CAFEConfig

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        assert tools.profile is not None
        backend = tools.inspectable
        self._coarse, self._fine = read_heads(
            tools.profile, self.profiled(backend.model), backend.layers, backend.heads
        )
        self._made_with = read_scoring(tools.profile)
        self._scoring = _chosen(self.config, self._made_with)

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """Attention always; steering unless it is switched off."""
        assert isinstance(config, CAFEConfig)
        return ("generate", "attention", "steering") if config.fine_steering else ("generate", "attention")

    def answer(self, item: Question, run: Recorder) -> str:
        """Filter, re-order, steer, answer."""
        if self._scoring != self._made_with:
            run.notice(f"The profile's heads were found with {self._made_with}; this run scores with {self._scoring}.")
        kept = self._filter(item, run) if self.config.coarse_filtering else item.document_ids
        steering, prefix = self._steering(item, kept, run) if self.config.fine_steering else (None, None)
        with run.stage("answer", "Answer", kept) as stage:
            request = GenerationRequest(prompt(item, kept), self.config.max_new_tokens, seed=run.seed)
            [reply] = run.generate("answer", [request], stream=True, prefix=prefix, steering=steering)
            chosen = set(steering.documents) if steering is not None and self.config.delta else set()
            towards = (
                "steered towards" if self.config.granularity == "document" else "steered towards its key sentences"
            )
            stage.score("steered", {d: float(d in chosen) for d in kept})
            stage.keep(kept, {d: towards if d in chosen else "read without steering" for d in kept})
        return short_answer(reply.text)

    def _filter(self, item: Question, run: Recorder) -> tuple[str, ...]:
        """Stage 1 (eq. 1 to 6). The pass stops after the deepest layer that holds a chosen head."""
        heads = self._coarse.top(self.config.k1)
        if len(item.documents) <= self.config.m1:
            run.notice(f"{len(item.documents)} documents are no more than M1 = {self.config.m1}: nothing is filtered.")
        with run.stage("coarse_filtering", "Coarse filtering", item.document_ids) as stage:
            attention = self._attend(
                item, item.document_ids, heads, run, "coarse filtering", until_layer=max(layer for layer, _ in heads)
            )
            shares = head_shares(attention.mass, heads)
            selection = select(item.document_ids, shares, heads, self.config.m1, order=self.config.order, seed=run.seed)
            _record(stage, heads, shares, selection)
            stage.keep(selection.kept, selection.reasons)
        return selection.kept

    def _steering(self, item: Question, kept: tuple[str, ...], run: Recorder) -> tuple[Steering, Any]:
        """Stage 2's choice (eq. 7) and its keys and values: only rows from the question on are computed again."""
        heads = self._fine.top(self.config.k2)
        with run.stage("fine_steering", "Fine steering", kept) as stage:
            attention = self._attend(item, kept, heads, run, "fine steering", keep_prefix=True)
            choose = self._sentences if self.config.granularity == "sentence" else self._candidates
            documents, parts = choose(item, attention, heads, stage)
        steering = Steering(
            documents, self.config.delta, self.config.steered_rows, self.config.bias_before_scale, parts
        )
        return steering, attention.attention.prefix

    def _candidates(
        self, item: Question, attention: DocumentAttention, heads: Sequence[Head], stage: StageDraft
    ) -> tuple[tuple[str, ...], tuple[Part, ...]]:
        """The candidate documents."""
        shares = head_shares(attention.mass, heads)
        selection = select(stage.documents, shares, heads, self.config.m2, verb=("candidate", "not a candidate"))
        _record(stage, heads, shares, selection)
        stage.keep(stage.documents, selection.reasons)
        stage.note = f"{len(selection.kept)} of {len(stage.documents)} documents are candidates; nothing is removed"
        return selection.kept, ()

    def _sentences(
        self, item: Question, attention: DocumentAttention, heads: Sequence[Head], stage: StageDraft
    ) -> tuple[tuple[str, ...], tuple[Part, ...]]:
        """The documents that hold a candidate sentence, and where the candidate sentences stand in them."""
        assert attention.heat is not None
        sentences = sentences_of(attention.heat, documents_in_order(item, stage.documents))
        shares = sentence_shares(attention.heat, stage.documents, sentences, heads, pool=self._scoring.pool)
        selection = select_sentences(stage.documents, sentences, shares, heads, self.config.m2)
        for head, row in zip(heads, selection.best, strict=True):
            stage.score(
                f"best sentence, head {head_name(head)}", dict(zip(stage.documents, map(float, row), strict=True))
            )
        stage.score("best sentence, all heads", selection.relevance)
        stage.key_sentences.update(selection.texts)
        stage.keep(stage.documents, selection.reasons)
        stage.note = (
            f"{len(selection.chosen)} of {len(sentences)} sentences are candidates, in {len(selection.documents)} of "
            f"{len(stage.documents)} documents; nothing is removed"
        )
        return selection.documents, tuple(Part(s.document_id, s.start, s.end) for s in selection.chosen)

    def _attend(
        self, item: Question, ids: Sequence[str], heads: Sequence[Head], run: Recorder, role: str, **options: Any
    ) -> DocumentAttention:
        return attend_documents(
            partial(run.attend, role),
            item,
            ids,
            title=role.capitalize(),
            pool=self._scoring.pool,
            calibration=self._scoring.calibration,
            rows=self._scoring.rows,
            retrieval_heads=heads,
            **options,
        )


def _chosen(config: CAFEConfig, profile: Scoring) -> Scoring:
    """The profile's way of scoring, except where the options say otherwise."""
    return Scoring(
        profile.rows if config.attending_rows == "profile" else config.attending_rows,
        profile.pool if config.doc_pool == "profile" else config.doc_pool,
        profile.calibration if config.calibration == "profile" else config.calibration,
    )


def _record(stage: StageDraft, heads: Sequence[Head], shares: Any, selection: Selection) -> None:
    """Write beta of every head and their sum gamma into the ledger."""
    for head, row in zip(heads, shares, strict=True):
        stage.score(
            f"head {head_name(head)}",
            {d: DocumentScore(value=float(b)) for d, b in zip(stage.documents, row, strict=True)},
        )
    stage.score("gamma", selection.relevance)
