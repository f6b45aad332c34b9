"""A text before the question: of the model's folder, of a person, or ours for Qwen3-Embedding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdqa.records import Document
from mdqa.retrieval.dense import (
    PACKAGED_MODEL,
    QWEN3_INSTRUCTION,
    DenseRanker,
    SentenceEncoder,
    cosine_scores,
    default_instruction,
)
from tests.tiny import tiny_sentence_encoder

DOCUMENTS = tuple(Document(id=text, text=text) for text in ("bread", "a river", "moss on stones"))
QUESTION = "which river"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(folder)


def by_hand(encoder: SentenceEncoder, question: str, before: str = "") -> list[float]:
    vectors = encoder.encode([question, *(before + document.text for document in DOCUMENTS)])
    return [float(score) for score in vectors[1:] @ vectors[0]]


def test_the_instruction_stands_before_the_question_only(encoder: SentenceEncoder) -> None:
    scores = DenseRanker(encoder, instruction="find: ").rank(QUESTION, DOCUMENTS)
    assert scores == pytest.approx(by_hand(encoder, "find: " + QUESTION), abs=1e-5)
    assert scores != pytest.approx(by_hand(encoder, QUESTION), abs=1e-3)
    assert cosine_scores(encoder, QUESTION, DOCUMENTS) == pytest.approx(by_hand(encoder, QUESTION), abs=1e-5)
    assert cosine_scores(encoder, QUESTION, ()) == []


def test_what_the_folder_names_is_used_unless_something_is_given(folder: Path) -> None:
    config = folder / "config_sentence_transformers.json"
    before = config.read_text(encoding="utf-8")
    settings: dict[str, Any] = json.loads(before) | {"prompts": {"query": "q: ", "document": "d: "}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    try:
        prompted = SentenceEncoder(folder)
    finally:
        config.write_text(before, encoding="utf-8")
    expected = {None: "q: " + QUESTION, "": QUESTION, "find: ": "find: " + QUESTION}
    for instruction, question in expected.items():
        scores = cosine_scores(prompted, QUESTION, DOCUMENTS, instruction)
        assert scores == pytest.approx(by_hand(prompted, question, "d: "), abs=1e-5)


def test_an_encoder_without_a_way_for_questions_gets_the_text_in_front() -> None:
    seen: list[str] = []

    class Plain:
        name = "plain"

        def encode(self, texts: list[str]) -> np.ndarray:
            seen.extend(texts)
            return np.eye(len(texts), 8, dtype=np.float32)

    cosine_scores(Plain(), QUESTION, DOCUMENTS, "find: ")
    assert seen == ["find: " + QUESTION, *(document.text for document in DOCUMENTS)]


def test_qwen3_embedding_gets_an_instruction_by_its_name() -> None:
    for name in ("Qwen/Qwen3-Embedding-0.6B", "/models/qwen3-embedding-4b"):
        assert default_instruction(name) == QWEN3_INSTRUCTION
    assert QWEN3_INSTRUCTION.startswith("Instruct: ")
    assert QWEN3_INSTRUCTION.endswith("\nQuery:")
    assert default_instruction(PACKAGED_MODEL) is None
    assert default_instruction("BAAI/bge-large-en-v1.5") is None
