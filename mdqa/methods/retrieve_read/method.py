"""Retrieve and read: order the documents by a ranker, then answer as in direct answering.

The retrieval baselines of DuQUAD (Table 1) reorder and do not prune (``methods.md`` 3.2 and 4, from the token counts of
the paper's table 9), so by default every document is kept; ``top_k`` prunes. Which end the best document goes to is not
in the paper: best first is our reading, best last is CAFE's order. SBERT is ``dense``; BM25, cross-encoder and listwise
rerankers, Qwen3-Embedding (``dense`` with that encoder), OpenAI-compatible embeddings, RRF, RRF with reranking, and
Found in the Middle are the other rankers. The paper names no version of any model behind them.

Vanilla RAG of the CAFE paper (Appendix B) is ``ranker`` dense with ``encoder`` BAAI/bge-large-en-v1.5; how many
documents it keeps is not printed, and 5 is our reading. Its questions are encoded without an instruction, since the
model's folder names none.
"""

from __future__ import annotations

from typing import ClassVar

from mdqa.backends.base import Capability, GenerationRequest
from mdqa.methods.answers import answer_prompt, short_answer
from mdqa.methods.base import Method, MethodConfig, Tools, documents_in_order
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.ranking import Ranking, prepare, rank_documents
from mdqa.records import Document, Question


class RetrieveRead(Method):
    """Ranks the documents, reorders or cuts them, and asks once."""

    name: ClassVar[str] = "retrieve_read"
    title: ClassVar[str] = "Retrieve and read"
    summary: ClassVar[str] = "Documents ordered by a ranker (BM25, embeddings, a reranker, attention), then one reply."
    Config: ClassVar[type[MethodConfig]] = RetrieveReadConfig
    config: RetrieveReadConfig

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        prepare(self.config, tools)

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """Found in the Middle looks at attention; every other ranker works with any backend."""
        assert isinstance(config, RetrieveReadConfig)
        return ("generate", "attention") if config.ranker == "found_in_the_middle" else ("generate",)

    def answer(self, item: Question, run: Recorder) -> str:
        """The model's reply up to its first line break."""
        with run.stage("retrieval", "Retrieval", item.document_ids) as stage:
            self._keep(item, rank_documents(self.config, item, run, stage), stage)
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

    def _keep(self, item: Question, ranking: Ranking, stage: StageDraft) -> None:
        ordered = [item.document_ids[index] for index in ranking.order]
        kept = ordered[: self.config.top_k]
        reasons = {
            document: f"rank {rank} of {len(ordered)} by {ranking.by}"
            + (f"; only the best {len(kept)} are kept" if rank > len(kept) else "")
            for rank, document in enumerate(ordered, 1)
        }
        stage.keep(kept if self.config.order == "best_first" else kept[::-1], reasons)
