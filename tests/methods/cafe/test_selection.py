"""CAFE's selection against hand-computed cases (paper eq. 4 to 7)."""

from __future__ import annotations

import numpy as np
import pytest

from mdqa.attention.heads import document_shares, evidence_share, head_shares, order_best_last, top_heads, union_of_top
from mdqa.methods.cafe.selection import select

HEADS = ((3, 1), (5, 0))
SHARES = np.array([[0.5, 0.1, 0.3, 0.1], [0.1, 0.2, 0.1, 0.6]])
IDS = ("a", "b", "c", "d")


def test_shares_sum_to_one_and_an_idle_head_prefers_nothing():
    shares = document_shares(np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(shares, [[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]])


def test_evidence_share_is_the_sum_of_beta_over_the_evidence():
    mass = np.array([[[1.0, 1.0, 2.0]], [[0.0, 3.0, 1.0]]])
    np.testing.assert_allclose(evidence_share(mass, [0, 2]), [[0.75], [0.25]])


def test_top_heads_go_over_all_layers_and_ties_to_the_earlier():
    assert top_heads(np.array([[0.1, 0.4], [0.4, 0.3]]), 3) == ((0, 1), (1, 0), (1, 1))


def test_head_shares_take_the_named_heads():
    mass = np.arange(12, dtype=float).reshape(2, 2, 3)
    np.testing.assert_allclose(head_shares(mass, [(1, 0)]), [[6 / 21, 7 / 21, 8 / 21]])


def test_union_and_best_last():
    # head 0 chooses a, c; head 1 chooses d, b; gamma = .6 .3 .4 .7
    assert union_of_top(SHARES, 2) == {0: (0,), 1: (1,), 2: (0,), 3: (1,)}
    selection = select(IDS, SHARES, HEADS, 2)
    assert selection.kept == ("b", "c", "a", "d")
    assert selection.relevance == pytest.approx({"a": 0.6, "b": 0.3, "c": 0.4, "d": 0.7})


def test_dropped_documents_say_why():
    selection = select(IDS, SHARES, HEADS, 1)
    assert selection.kept == ("a", "d")
    assert selection.reasons["a"] == "kept: in the top 1 of head 3-1"
    assert selection.reasons["b"] == "dropped: best rank 2 (head 5-0), 1 needed"


def test_ties_are_broken_by_position():
    flat = np.full((1, 4), 0.25)
    assert select(IDS, flat, HEADS[:1], 2).kept == ("a", "b")
    assert order_best_last({2: 0.5, 0: 0.5, 1: 0.4}) == (1, 0, 2)


def test_fewer_documents_than_m_filters_nothing():
    assert set(select(IDS, SHARES, HEADS, 9).kept) == set(IDS)


def test_without_reranking_the_order_is_seeded_and_keeps_the_same_documents():
    orders = {select(IDS, SHARES, HEADS, 2, order="random", seed=s).kept for s in range(20)}
    assert len(orders) > 1
    assert {frozenset(order) for order in orders} == {frozenset(IDS)}
    again = [select(IDS, SHARES, HEADS, 2, order="random", seed=3).kept for _ in range(2)]
    assert again[0] == again[1]
    assert select(IDS, SHARES, HEADS, 2, order="original").kept == IDS


def test_permuted_documents_are_chosen_alike():
    order = [2, 0, 3, 1]
    permuted = select([IDS[i] for i in order], SHARES[:, order], HEADS, 2)
    assert permuted.kept == select(IDS, SHARES, HEADS, 2).kept  # no ties in gamma here
