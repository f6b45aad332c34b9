"""Picking some of a document's sentences."""

from __future__ import annotations

import numpy as np

from mdqa.methods.duquad.sentences import nearest, pick


def test_nearest_in_row_order_with_ties_to_the_earlier() -> None:
    vectors = np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.8], [1.0, 0.0]])
    assert nearest(np.array([1.0, 0.0]), vectors, 2) == (1, 3)
    assert nearest(np.array([1.0, 0.0]), vectors, 1) == (1,)
    assert nearest(np.array([1.0, 0.0]), vectors, 9) == (0, 1, 2, 3)


def test_pick_keeps_document_order_and_takes_each_once() -> None:
    assert pick(("a", "b", "c"), [2, 0, 2]) == ("a", "c")
