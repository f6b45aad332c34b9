"""MADARA on the built-in model in earnest: every document has a score or a status, and the answer comes from it."""

from __future__ import annotations

import pytest

from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.records import Document, Question, RunResult
from mdqa.run import begin, run_one

QUESTION = Question(
    id="bridge",
    question="When was the Sydney Harbour Bridge opened?",
    answers=("1932",),
    documents=(
        Document(id="opera", title="Sydney Opera House", text="The Sydney Opera House was opened in 1973."),
        Document(id="bridge", title="Sydney Harbour Bridge", text="The Sydney Harbour Bridge was opened in 1932."),
        Document(id="steel", title="Steel", text="Steel is an alloy of iron and carbon."),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("treatment", ["three_agent", "pde"])
def test_treatment(builtin_backend, treatment):
    tools = Tools(builtin_backend)
    options = MADARAConfig(treatment=treatment, k=2, temperature=0.0, agent_max_tokens=96, generator_max_tokens=24)
    result = run_one(begin("madara", options, QUESTION, tools), tools).result
    assert result.status == "ok", result.error
    assert result.answer
    assessment, selection = result.stages[:2]
    for signal in ("relevance", "consistency", "conflict", "aggregate"):
        assert set(assessment.scores[signal]) == {"opera", "bridge", "steel"}
    scored = [s.value for s in assessment.scores["relevance"].values() if s.value is not None]
    assert len(scored) >= 2 and all(0 <= value <= 5 for value in scored)
    assert len(selection.kept) == 2
    assert result.stages[2].name == ("extraction" if treatment == "pde" else "generation")
    assert result.cost.prefill_tokens_computed < result.cost.prompt_tokens  # shared beginnings are computed once
    assert RunResult.model_validate_json(result.model_dump_json()) == result
