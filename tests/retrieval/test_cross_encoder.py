"""The cross-encoder against the transformers model that it wraps, and fusion followed by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import transformers

from mdqa.errors import ModelError
from mdqa.records import Document
from mdqa.retrieval.base import best_first
from mdqa.retrieval.bm25 import BM25Ranker
from mdqa.retrieval.cross_encoder import CrossEncoder, CrossEncoderRanker
from mdqa.retrieval.fusion import FusionThenReranking, reciprocal_rank_fusion, reranked
from tests.tiny import tiny_cross_encoder

QUESTION = "Which river?"
TEXTS = ["Rye bread.", "The Ostra.", "Moss grows on old stones.", "word " * 40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("cross") / "tiny")


@pytest.fixture(scope="module")
def scorer(folder: Path) -> CrossEncoder:
    return CrossEncoder(folder, name="tiny")


def test_scores_are_the_models_raw_output(scorer: CrossEncoder, folder: Path) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    expected = []
    for text in TEXTS:  # one at a time, where the ranker makes batches with padding
        pair = tokenizer(QUESTION, text, truncation=True, max_length=32, return_tensors="pt")
        with torch.inference_mode():
            expected.append(float(model(**pair).logits[0, 0]))
    assert scorer.score(QUESTION, TEXTS) == pytest.approx(expected, abs=1e-4)
    assert max(expected) - min(expected) > 0.01
    assert min(expected) < 0 or max(expected) > 1, "no sigmoid"


def test_it_says_which_pairs_it_cuts(scorer: CrossEncoder) -> None:
    assert scorer.max_tokens == 32
    assert scorer.truncated(QUESTION, TEXTS) == [False, False, False, True]
    assert (scorer.score(QUESTION, []), scorer.truncated(QUESTION, [])) == ([], [])


def test_the_ranker_reads_titles_and_moves_with_the_documents(scorer: CrossEncoder) -> None:
    ranker = CrossEncoderRanker(scorer)
    documents = tuple(Document(id=text, title="A title", text=text) for text in TEXTS[:3])
    scores = ranker.rank(QUESTION, documents)
    assert scores == pytest.approx(scorer.score(QUESTION, [f"A title\n{text}" for text in TEXTS[:3]]), abs=1e-5)
    assert ranker.rank(QUESTION, documents[::-1]) == pytest.approx(scores[::-1], abs=1e-5)


def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gives 3 numbers per pair"):
        CrossEncoder(tiny_cross_encoder(tmp_path / "three", labels=3))


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="the cross-encoder 'no/such-model' cannot be loaded"):
        CrossEncoder("no/such-model")


def test_a_score_that_is_no_number_is_said(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "broken")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.bias.fill_(float("nan"))
    model.save_pretrained(folder)
    with pytest.raises(ModelError, match="nan for text 1 of 2"):
        CrossEncoder(folder).score(QUESTION, TEXTS[:2])


class Fixed:
    """A ranker with given scores."""

    name = "fixed"

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        return list(self.scores)


def test_reranking_decides_and_its_ties_keep_the_fused_order() -> None:
    documents = tuple(Document(id=i, text=i) for i in "abcd")
    ranker = FusionThenReranking(Fixed(1, 2, 3, 4), Fixed(1, 2, 3, 4), reranker=Fixed(5, 0, 0, 9))
    scores = ranker.rank("q", documents)
    assert best_first(scores) == [3, 0, 2, 1]
    assert scores == [1 / 2, 1 / 4, 1 / 3, 1.0]
    fused = reciprocal_rank_fusion([[1, 2, 3, 4]] * 2)
    assert reranked(fused, [0.0] * 4) == best_first(fused) == [3, 2, 1, 0]
    assert reranked([1.0] * 3, [1.0] * 3) == [0, 1, 2], "equal in both: input order"
    assert FusionThenReranking(BM25Ranker(), reranker=BM25Ranker()).rank("q", ()) == []
