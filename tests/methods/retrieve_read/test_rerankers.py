"""The rankers that need a model of their own: cross-encoders, encoders with an instruction, embeddings servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.commands.options import make_tools
from mdqa.errors import ConfigError, ModelError
from mdqa.methods.base import Encoder, Tools
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.method import RetrieveRead
from mdqa.records import Document, Question, RunResult
from mdqa.retrieval.base import best_first, full_text
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.retrieval.cross_encoder import CrossEncoder
from mdqa.retrieval.dense import QWEN3_INSTRUCTION, cosine_scores
from mdqa.retrieval.fusion import reciprocal_rank_fusion
from mdqa.run import begin, run_one
from tests.tiny import tiny_cross_encoder

ITEM = Question(
    id="q",
    question="Which river?",
    documents=(
        Document(id="a", text="The Mur, a river."),
        Document(id="b", title="Vienna", text="The Danube."),
        Document(id="c", text="Bread is baked."),
        Document(id="d", text="word " * 40),
    ),
)


class LetterEncoder:
    """Unit vectors of letter counts; remembers what it read."""

    name = "letters"

    def __init__(self) -> None:
        self.read: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.read += texts
        counts = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


class EvenPairs:
    """A cross-encoder that finds everything equal."""

    name = "even"
    max_tokens = 512

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        return [0.5] * len(texts)

    def truncated(self, question: str, texts: Sequence[str]) -> list[bool]:
        return [False] * len(texts)


def run(tools: Tools, **options: Any) -> RunResult:
    result = run_one(begin("retrieve_read", RetrieveReadConfig.parse(options), ITEM, tools), tools).result
    assert result.error is None, result.error
    return result


def values(result: RunResult, signal: str) -> list[float | None]:
    return [result.stages[0].scores[signal][document].value for document in "abcd"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("cross") / "tiny")


def test_a_named_cross_encoder_orders_all_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on the command line: the options as text, the tools that the commands make, a real model."""
    tools = make_tools(ScriptedBackend(["Danube"] * 2))
    results = [run(tools, ranker="cross_encoder", cross_encoder=str(folder)) for _ in range(2)]
    expected = CrossEncoder(folder).score(ITEM.question, [full_text(document) for document in ITEM.documents])
    for result in results:
        assert values(result, "cross_encoder") == pytest.approx(expected, abs=1e-5)
        assert result.stages[0].kept == tuple("abcd"[index] for index in best_first(expected))
        assert result.config["cross_encoder"] == str(folder)
    assert results[0].stages[0].note == (f"{folder} reads 32 tokens; 1 of 4 documents with the question are longer.")
    assert capsys.readouterr().err.count("loading the cross-encoder") == 1, "once for all questions"


def test_fusion_then_reranking_shows_every_step(folder: Path) -> None:
    tools = Tools(ScriptedBackend(["Danube"]), LetterEncoder, load_cross_encoder=CrossEncoder)
    result = run(tools, ranker="rrf_rerank", cross_encoder=str(folder))
    assert list(result.stages[0].scores) == ["bm25", "dense", "rrf", "cross_encoder"]
    parts = [bm25_scores(ITEM.question, ITEM.documents), cosine_scores(LetterEncoder(), ITEM.question, ITEM.documents)]
    assert values(result, "rrf") == pytest.approx(reciprocal_rank_fusion(parts))
    scores = CrossEncoder(folder).score(ITEM.question, [full_text(document) for document in ITEM.documents])
    assert result.stages[0].kept == tuple("abcd"[index] for index in best_first(scores))
    assert result.stages[0].reasons["a"].endswith("by rrf_rerank")


def test_where_the_cross_encoder_cannot_tell_the_fused_order_stays() -> None:
    tools = Tools(ScriptedBackend(["Danube"]), LetterEncoder, load_cross_encoder=lambda _: EvenPairs())
    result = run(tools, ranker="rrf_rerank", cross_encoder="even")
    fused = [value or 0.0 for value in values(result, "rrf")]
    assert result.stages[0].kept == tuple("abcd"[index] for index in best_first(fused))


@pytest.mark.parametrize("ranker", ["cross_encoder", "rrf_rerank"])
def test_a_cross_encoder_must_be_named(ranker: str, tmp_path: Path) -> None:
    tools = make_tools(ScriptedBackend())
    with pytest.raises(ConfigError, match=r"none comes with the program.*--set cross_encoder=.*Nothing is downloaded"):
        RetrieveRead(RetrieveReadConfig.parse({"ranker": ranker}), tools)
    with pytest.raises(ModelError, match="nothing' cannot be loaded"):
        RetrieveRead(RetrieveReadConfig.parse({"ranker": ranker, "cross_encoder": str(tmp_path / "nothing")}), tools)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranker": "cross_encoder", "cross_encoder": "someone/model"}, "'someone/model' cannot be chosen here"),
        (
            {"ranker": "openai", "embeddings_url": "http://169.254.169.254/v1", "embeddings_model": "m"},
            "an embeddings server cannot be chosen here",
        ),
        ({"ranker": "openai"}, "needs the address of a server"),
        ({"ranker": "openai", "embeddings_url": "http://127.0.0.1:1/v1"}, "needs the address of a server and a model"),
    ],
)
def test_on_a_page_nothing_can_be_named(options: dict[str, str], said: str) -> None:
    """A page gives tools that load nothing by name and open no address; the reason stands in the result."""
    tools = Tools(ScriptedBackend(), LetterEncoder)
    result = run_one(begin("retrieve_read", RetrieveReadConfig.parse(options), ITEM, tools), tools).result
    assert result.error is not None
    assert result.error.type == "ConfigError"
    assert said in result.error.message


def test_the_server_and_its_model_reach_the_ranker() -> None:
    opened: list[tuple[str, str]] = []
    encoder = LetterEncoder()

    def open_embeddings(url: str, model: str) -> Encoder:
        opened.append((url, model))
        return encoder

    tools = Tools(ScriptedBackend(["Danube"] * 2), open_embeddings=open_embeddings)
    options = {"ranker": "openai", "embeddings_url": "http://host/v1", "embeddings_model": "Qwen3-Embedding-4B"}
    result, _ = (run(tools, **options) for _ in range(2))
    assert opened == [("http://host/v1", "Qwen3-Embedding-4B")]
    expected = cosine_scores(LetterEncoder(), ITEM.question, ITEM.documents, QWEN3_INSTRUCTION)
    assert values(result, "openai") == pytest.approx(expected)


def test_the_key_comes_from_the_settings_and_stays_out_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDQA_API_KEY", "sk-a-secret")
    tools = make_tools(ScriptedBackend())
    options = {"ranker": "openai", "embeddings_url": "http://127.0.0.1:1/v1", "embeddings_model": "m"}
    result = run_one(begin("retrieve_read", RetrieveReadConfig.parse(options), ITEM, tools), tools).result
    assert result.error is not None
    assert "cannot be reached" in result.error.message
    assert "sk-a-secret" not in result.model_dump_json()
    with pytest.raises(ConfigError, match="must hold no name, password"):
        RetrieveRead(RetrieveReadConfig.parse({**options, "embeddings_url": "http://me:pw@127.0.0.1/v1"}), tools)


@pytest.mark.parametrize(
    ("options", "before"),
    [
        ({}, ""),
        ({"encoder": "Qwen/Qwen3-Embedding-0.6B"}, QWEN3_INSTRUCTION),
        ({"encoder": "Qwen/Qwen3-Embedding-0.6B", "instruction": ""}, ""),
        ({"encoder": "intfloat/e5-base", "instruction": "query:"}, "query: "),
        ({"instruction": "Find\n"}, "Find\n"),
    ],
)
def test_the_instruction_stands_before_the_question(options: dict[str, str], before: str) -> None:
    encoder = LetterEncoder()
    tools = Tools(ScriptedBackend(["Danube"]), lambda: encoder, load_encoder=lambda _: encoder)
    run(tools, ranker="dense", **options)
    assert encoder.read == [before + ITEM.question, *(full_text(document) for document in ITEM.documents)]
