"""MAIN-RAG with the built-in model: a complete run, in which Yes and No cost one pass."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from mdqa.methods.main_rag.method import judge_prompt

from .helpers import QUESTION, run_main_rag


@pytest.mark.slow
def test_yes_and_no_are_read_off_the_same_logits(builtin_backend: Any) -> None:
    item = QUESTION.with_documents(QUESTION.documents[:2])
    run = run_main_rag(item, backend=builtin_backend, max_new_tokens=12)
    assert run.result.error is None
    answers = [opinion.answer for opinion in run.result.opinions if opinion.role == "predictor"]
    assert all(answers)
    calls = run.calls("judge")
    assert [call.documents for call in calls] == [("a",), ("a",), ("b",), ("b",)]
    assert all(yes.cost.prefill_tokens_computed > 0 for yes in calls[::2])
    assert all(no.cost.prefill_tokens_computed == 0 for no in calls[1::2]), "Yes and No are single tokens"
    for document, answer in zip(item.documents, answers, strict=True):
        layouts = [
            builtin_backend.encoder.encode(judge_prompt(item.question, document, answer, "factoid").with_reply(reply))
            for reply in ("Yes", "No")
        ]
        with torch.inference_mode():
            last = builtin_backend.pretrained(torch.tensor([layouts[0].ids[:-1]])).logits[0, -1].double()
        yes, no = (float(last[layout.ids[-1]]) for layout in layouts)
        assert run.log_odds[document.id] == pytest.approx(yes - no, abs=1e-2)
    odds = [value for value in run.log_odds.values() if value is not None]
    assert run.stage("judging").thresholds["log_odds"] == pytest.approx(sum(odds) / 2)
    assert math.isclose(max(odds), run.log_odds[run.stage("judging").kept[0]] or math.nan)
