"""Options of retrieve and read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mdqa.methods.base import MethodConfig
from mdqa.retrieval.cross_encoder import EXAMPLES
from mdqa.retrieval.dense import PACKAGED_MODEL
from mdqa.retrieval.fusion import RRF_K
from mdqa.retrieval.listwise import WINDOW

RankerName = Literal["bm25", "dense", "rrf", "cross_encoder", "rrf_rerank", "listwise", "found_in_the_middle", "openai"]


class RetrieveReadConfig(MethodConfig):
    """Options of retrieve and read."""

    ranker: RankerName = Field(
        "bm25",
        description="Word overlap (BM25), sentence embeddings (dense), both fused by reciprocal rank (rrf) and then "
        "ordered by a cross-encoder (rrf_rerank), a cross-encoder alone, the model asked for an order of all documents "
        "(listwise), the model's attention less what a dummy gets in the same place (found_in_the_middle), or the "
        "embeddings of a server (openai). Vanilla RAG in the CAFE paper's sense is dense with top k 5.",
    )
    encoder: str = Field(
        PACKAGED_MODEL,
        min_length=1,
        max_length=1000,
        description="Sentence encoder of dense, rrf and rrf_rerank. The packaged one needs no network; on the command "
        "line it may be a folder or Hugging Face id of a sentence-transformers model (the CAFE paper's: "
        "BAAI/bge-large-en-v1.5; DuQUAD's names a Qwen3-Embedding without its size, say Qwen/Qwen3-Embedding-0.6B).",
    )
    instruction: str | None = Field(
        None,
        max_length=2000,
        description="Text put before the question, never before a document, when it is embedded. Not set: what the "
        "encoder's folder names, for Qwen3-Embedding an instruction of ours; empty: nothing.",
    )
    cross_encoder: str = Field(
        "",
        max_length=1000,
        description="Cross-encoder of the rankers cross_encoder and rrf_rerank, on the command line only: a folder or "
        f"Hugging Face id, for example {EXAMPLES[0]} or {EXAMPLES[1]}. None comes with the program.",
    )
    embeddings_url: str = Field(
        "",
        max_length=1000,
        description="Server of the ranker openai, on the command line only: where an API like OpenAI's begins, for "
        "example http://127.0.0.1:8000/v1. The documents are sent there; a key comes from MDQA_API_KEY.",
    )
    embeddings_model: str = Field("", max_length=1000, description="The embedding model's name on that server.")
    top_k: int | None = Field(
        None, ge=1, le=10_000, description="Keep only the best k documents; empty keeps all, in the new order."
    )
    order: Literal["best_first", "best_last"] = Field(
        "best_first",
        description="Where the best document stands in the prompt; the last place is next to the question.",
    )
    rrf_k: float = Field(RRF_K, gt=0, le=10_000, description="Constant of reciprocal rank fusion; 60 is customary.")
    listwise_window: int = Field(
        WINDOW,
        ge=2,
        le=200,
        description="Documents that the model orders at once (listwise); with more, the window slides from the end of "
        "the list to its beginning by half of its length.",
    )
    listwise_max_tokens: int = Field(
        256, ge=16, le=4096, description="Longest reply with an order, in tokens (listwise); a number takes about 4."
    )
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest reply in tokens.")
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 is greedy decoding; higher is more varied.")

    @property
    def reply_tokens(self) -> int:
        """The longest reply; that with an order counts only where one is asked for."""
        return super().reply_tokens if self.ranker == "listwise" else self.max_new_tokens
