"""CAFE: retrieval heads filter the documents, put the best last, and steer attention to the likely evidence.

Peng et al., EMNLP 2025, section 4. Stage 1 (coarse filtering): the question's attention in a few retrieval heads
chooses documents (eq. 1 to 6). Stage 2 (fine steering): other heads choose candidates among those left, and their
tokens get a bias in the attention of the question's rows while the answer is written (eq. 7 to 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from mdqa.attention.heads import head_shares
from mdqa.backends.base import AttendingRows, Capability, GenerationRequest, SteeredRows, Steering
from mdqa.methods.answers import short_answer
from mdqa.methods.base import Method, MethodConfig, Tools, documents_in_order
from mdqa.methods.cafe.profile import read_heads
from mdqa.methods.cafe.selection import Selection, head_name, select
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.prompting import Prompt, document_segments, load_template, question_segment
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
    attending_rows: AttendingRows = Field("question", description="Prompt rows whose attention scores the documents")
    doc_pool: Literal["sum", "mean"] = Field(
        "sum", description="How attention to a document's tokens is pooled; a sum favours long documents"
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

    config: CAFEConfig

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        assert tools.profile is not None
        backend = tools.inspectable
        self._coarse, self._fine = read_heads(tools.profile, backend.model, backend.layers, backend.heads)
        self._template = load_template("mdqa.methods.cafe", "answer")

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """Attention always; steering unless it is switched off."""
        assert isinstance(config, CAFEConfig)
        return ("generate", "attention", "steering") if config.fine_steering else ("generate", "attention")

    def answer(self, item: Question, run: Recorder) -> str:
        """Filter, re-order, steer, answer."""
        kept = self._filter(item, run) if self.config.coarse_filtering else item.document_ids
        prompt = self._prompt(item, kept)
        candidates, prefix = self._candidates(item, kept, prompt, run) if self.config.fine_steering else ((), None)
        steering = Steering(candidates, self.config.delta, self.config.steered_rows, self.config.bias_before_scale)
        with run.stage("answer", "Answer", kept) as stage:
            request = GenerationRequest(prompt, self.config.max_new_tokens, seed=run.seed)
            [reply] = run.generate(
                "answer", [request], stream=True, prefix=prefix, steering=steering if candidates else None
            )
            chosen = set(candidates) if self.config.delta else set()
            stage.score("steered", {d: float(d in chosen) for d in kept})
            stage.keep(kept, {d: "steered towards" if d in chosen else "read without steering" for d in kept})
        return short_answer(reply.text)

    def _filter(self, item: Question, run: Recorder) -> tuple[str, ...]:
        """Stage 1 (eq. 1 to 6). The pass stops after the deepest layer that holds a chosen head."""
        heads = self._coarse.top(self.config.k1)
        if len(item.documents) <= self.config.m1:
            run.notice(f"{len(item.documents)} documents are no more than M1 = {self.config.m1}: nothing is filtered.")
        with run.stage("coarse_filtering", "Coarse filtering", item.document_ids) as stage:
            attention = run.attend(
                "coarse filtering",
                self._prompt(item, item.document_ids),
                title="Coarse filtering",
                rows=self.config.attending_rows,
                pool=self.config.doc_pool,
                until_layer=max(layer for layer, _ in heads),
                retrieval_heads=heads,
            )
            shares = head_shares(attention.map.mass, heads)
            selection = select(item.document_ids, shares, heads, self.config.m1, order=self.config.order, seed=run.seed)
            _record(stage, heads, shares, selection)
            stage.keep(selection.kept, selection.reasons)
        return selection.kept

    def _candidates(
        self, item: Question, kept: tuple[str, ...], prompt: Prompt, run: Recorder
    ) -> tuple[tuple[str, ...], Any]:
        """Stage 2's choice (eq. 7) and its keys and values: only rows from the question on are computed again."""
        heads = self._fine.top(self.config.k2)
        with run.stage("fine_steering", "Fine steering", kept) as stage:
            attention = run.attend(
                "fine steering",
                prompt,
                title="Fine steering",
                rows=self.config.attending_rows,
                pool=self.config.doc_pool,
                retrieval_heads=heads,
                keep_prefix=True,
            )
            shares = head_shares(attention.map.mass, heads)
            selection = select(kept, shares, heads, self.config.m2, verb=("candidate", "not a candidate"))
            _record(stage, heads, shares, selection)
            stage.keep(kept, selection.reasons)
            stage.note = f"{len(selection.kept)} of {len(kept)} documents are candidates; nothing is removed"
        return selection.kept, attention.prefix

    def _prompt(self, item: Question, ids: Sequence[str]) -> Prompt:
        """Documents in this order, numbered from 1, the question last."""
        documents = document_segments(documents_in_order(item, ids))
        return self._template.fill(documents=documents, question=question_segment(item.question))


def _record(stage: StageDraft, heads: Sequence[Head], shares: Any, selection: Selection) -> None:
    """Write beta of every head and their sum gamma into the ledger."""
    for head, row in zip(heads, shares, strict=True):
        stage.score(
            f"head {head_name(head)}",
            {d: DocumentScore(value=float(b)) for d, b in zip(stage.documents, row, strict=True)},
        )
    stage.score("gamma", selection.relevance)
