"""Retrieve and read: order the documents by a ranker, then answer as in direct answering.

The retrieval baselines of DuQUAD reorder and do not prune (``methods.md`` 3.2 and 4, from the token counts of the
paper's table 9), so by default every document is kept; ``top_k`` prunes. Which end the best document goes to is not
in the paper: best first is our reading, best last is CAFE's order.

Vanilla RAG of the CAFE paper (Appendix B) is ``ranker`` dense with ``encoder`` BAAI/bge-large-en-v1.5; how many
documents it keeps is not printed, and 5 is our reading. Questions are encoded as they are, without an instruction.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from mdqa.backends.base import GenerationRequest
from mdqa.methods.answers import answer_prompt, short_answer
from mdqa.methods.base import Encoder, Method, MethodConfig, Tools, documents_in_order
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.records import Document, Question
from mdqa.registry import RANKERS, load
from mdqa.retrieval.base import Ranker, best_first, full_text
from mdqa.retrieval.dense import PACKAGED_MODEL, SentenceEncoder
from mdqa.retrieval.fusion import RRF_K, reciprocal_rank_fusion

FUSED = ("bm25", "dense")
"""The rankers behind ``rrf``; the paper does not name its own."""


class RetrieveReadConfig(MethodConfig):
    """Options of retrieve and read."""

    ranker: Literal["bm25", "dense", "rrf"] = Field(
        "bm25",
        description="Word overlap (BM25), sentence embeddings (dense), or both fused by reciprocal rank (rrf). "
        "Vanilla RAG in the CAFE paper's sense is dense with top k 5.",
    )
    encoder: str = Field(
        PACKAGED_MODEL,
        min_length=1,
        max_length=1000,
        description="Sentence encoder of dense and rrf. The packaged one needs no network; on the command line it may "
        "be a folder or Hugging Face id of a sentence-transformers model (the paper's: BAAI/bge-large-en-v1.5).",
    )
    top_k: int | None = Field(
        None, ge=1, le=10_000, description="Keep only the best k documents; empty keeps all, in the new order."
    )
    order: Literal["best_first", "best_last"] = Field(
        "best_first",
        description="Where the best document stands in the prompt; the last place is next to the question.",
    )
    rrf_k: float = Field(RRF_K, gt=0, le=10_000, description="Constant of reciprocal rank fusion; 60 is customary.")
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest reply in tokens.")
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 is greedy decoding; higher is more varied.")


class RetrieveRead(Method):
    """Ranks the documents, reorders or cuts them, and asks once."""

    name: ClassVar[str] = "retrieve_read"
    title: ClassVar[str] = "Retrieve and read"
    summary: ClassVar[str] = "Documents ordered by BM25, sentence embeddings or both, then one greedy reply."
    Config: ClassVar[type[MethodConfig]] = RetrieveReadConfig
    config: RetrieveReadConfig

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        if self.config.encoder != PACKAGED_MODEL and "dense" in self._rankers:
            self._encoder()  # so that a wrong name is said at once, and not once per question

    @property
    def _rankers(self) -> tuple[str, ...]:
        """The rankers whose scores count."""
        return FUSED if self.config.ranker == "rrf" else (self.config.ranker,)

    def _encoder(self) -> Encoder:
        return self.tools.named_encoder(self.config.encoder)

    def answer(self, item: Question, run: Recorder) -> str:
        """The model's reply up to its first line break."""
        with run.stage("retrieval", "Retrieval", item.document_ids) as stage:
            scores = self._score(item, stage)
            self._keep(item, scores, stage)
            documents: tuple[Document, ...] = documents_in_order(item, stage.kept)
        request = GenerationRequest(
            answer_prompt(item.question, documents),
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            seed=run.seed,
        )
        with run.stage("answer", "Answer", stage.kept):
            (reply,) = run.generate("answer", [request], stream=True)
            answer = short_answer(reply.text)
            if not answer:
                run.notice("The model's reply is empty.", warning=True)
        return answer

    def _score(self, item: Question, stage: StageDraft) -> list[float]:
        """One signal per ranker and, for rrf, the fused one; the scores that decide, in input order."""
        names = self._rankers
        by_ranker = []
        for done, name in enumerate(names, 1):
            scores = self._ranker(name).rank(item.question, item.documents)
            stage.score(name, dict(zip(item.document_ids, scores, strict=True)))
            stage.progress(done, len(names))
            by_ranker.append(scores)
        if "dense" in names:
            stage.note = self._truncation_note(item)
        if self.config.ranker != "rrf":
            return by_ranker[0]
        fused = reciprocal_rank_fusion(by_ranker, self.config.rrf_k)
        stage.score("rrf", dict(zip(item.document_ids, fused, strict=True)))
        return fused

    def _keep(self, item: Question, scores: list[float], stage: StageDraft) -> None:
        ranking = [item.document_ids[index] for index in best_first(scores)]
        kept = ranking[: self.config.top_k]
        reasons = {
            document: f"rank {rank} of {len(ranking)} by {self.config.ranker}"
            + (f"; only the best {len(kept)} are kept" if rank > len(kept) else "")
            for rank, document in enumerate(ranking, 1)
        }
        stage.keep(kept if self.config.order == "best_first" else kept[::-1], reasons)

    def _ranker(self, name: str) -> Ranker:
        cls = load(RANKERS, name, "ranker")
        ranker: Ranker = cls(self._encoder()) if name == "dense" else cls()
        return ranker

    def _truncation_note(self, item: Question) -> str:
        encoder = self._encoder()
        if not isinstance(encoder, SentenceEncoder):
            return ""
        cut = sum(encoder.truncated([full_text(document) for document in item.documents]))
        if not cut:
            return ""
        return f"{encoder.name} reads {encoder.max_tokens} tokens; {cut} of {len(item.documents)} documents are longer."
