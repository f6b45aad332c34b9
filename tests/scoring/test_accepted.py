"""Scoring many predictions beside the metrics one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mdqa.scoring.answers import Accepted, best_subspan_em, exact_match, f1

TEXTS = st.text(" aet.heQ1-", max_size=20)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_every_score_is_that_of_its_metric(prediction: str, answers: list[str]) -> None:
    metrics = (best_subspan_em, f1, exact_match)
    assert Accepted(answers).score(prediction) == tuple(metric(prediction, answers) for metric in metrics)
