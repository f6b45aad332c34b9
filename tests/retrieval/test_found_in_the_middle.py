"""Calibrated attention: what counts, and what the dummy is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mdqa.backends.base import Attention
from mdqa.errors import ModelError
from mdqa.records import AttentionMap, Cost, Document
from mdqa.retrieval.bm25 import words
from mdqa.retrieval.found_in_the_middle import FoundInTheMiddle, Look, dummy_text, per_document

DOCUMENTS = (
    Document(id="a", title="Bread", text="Rye bread keeps for a week."),
    Document(id="b", text="word " * 30),
    Document(id="c", text="Moss."),
)


def attention(mass: Any, pool: str = "mean") -> Attention:
    mass = np.asarray(mass, dtype=np.float32)
    ids = tuple(str(i) for i in range(mass.shape[2]))
    return Attention(AttentionMap(stage="s", title="S", documents=ids, mass=mass, pool=pool), Cost())


def test_only_the_last_sixteen_layers_count() -> None:
    mass = np.zeros((20, 2, 3))
    mass[:4] = 100.0
    mass[4:, 0, 1] = 0.5
    assert per_document(attention(mass)) == pytest.approx([0, 0.25, 0])
    assert per_document(attention(mass[4:8])) == pytest.approx([0, 0.25, 0]), "all of fewer"
    with pytest.raises(ModelError, match="means over tokens"):
        per_document(attention(mass, "sum"))


def test_the_dummy_is_one_text_of_mean_length() -> None:
    mean = np.mean([len(words(document.text)) for document in DOCUMENTS])
    assert abs(len(words(dummy_text(DOCUMENTS))) - mean) <= 5
    assert len(words(dummy_text(DOCUMENTS[2:]))) == 10, "at least one sentence"


def test_a_bias_of_the_place_is_taken_out_exactly() -> None:
    """With attention that is relevance plus bias, as the paper assumes, the relevance alone ranks."""
    relevance = {document.id: value for document, value in zip(DOCUMENTS, (0.03, 0.01, 0.02), strict=True)}
    bias = [0.5, 0.0, 0.9]
    looks: list[Look] = []

    def attend(question: str, look: Look) -> Attention:
        looks.append(look)
        mass = [
            bias[place] + (0.004 if place == look.replaced else relevance[document.id])
            for place, document in enumerate(look.documents)
        ]
        return replace(attention([[mass]]), prefix="kept" if look.replaced is None else None)

    steps: list[tuple[int, int]] = []
    found = FoundInTheMiddle(attend)
    calibrated = found.calibrate("q", DOCUMENTS, lambda done, total: steps.append((done, total)))
    assert calibrated.scores == pytest.approx([0.026, 0.006, 0.016], abs=1e-6)
    assert calibrated.attention == pytest.approx([0.53, 0.01, 0.92])
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert [look.replaced for look in looks] == [None, 0, 1, 2]
    assert [look.prefix for look in looks] == [None, "kept", "kept", "kept"]
    for place, look in enumerate(looks[1:]):
        changed = [a != b for a, b in zip(look.documents, DOCUMENTS, strict=True)]
        assert changed == [i == place for i in range(3)], "the others stay in their places"
        assert (look.documents[place].title, look.documents[place].text) == ("", dummy_text(DOCUMENTS))
    assert found.rank("q", ()) == []
