"""DuQUAD with the built-in model and the packaged encoder."""

from __future__ import annotations

import pytest

from mdqa.backends.base import Backend
from mdqa.methods.base import Tools
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.run import begin, run_one

from .helpers import QUESTION

STAGES = ["structural_fusion", "local_agent", "global_agent", "candidates", "doc_score", "judge"]


@pytest.mark.slow
def test_a_run_is_complete_and_says_what_each_stage_did(builtin_backend: Backend) -> None:
    tools = Tools(builtin_backend, make_encoder=MiniLMEncoder)
    config = DuQUADConfig(k=2, agent_max_tokens=96, judge_max_tokens=96)
    outcome = run_one(begin("duquad", config, QUESTION, tools), tools)
    result = outcome.result
    assert result.status == "ok", result.error
    assert [stage.name for stage in result.stages] == STAGES
    fusion = result.stages[0]
    for signal in ("sim", "ppl", "cont", "SFS"):
        assert all(score.status == "ok" for score in fusion.scores[signal].values()), signal
    assert len(fusion.kept) == 2
    likelihoods = {key: score.value or 0.0 for key, score in fusion.scores["ppl"].items()}
    assert max(likelihoods, key=lambda key: likelihoods[key]) in ("d2", "d4")  # the documents about the Danube
    similarities = {key: score.value or 0.0 for key, score in fusion.scores["sim"].items()}
    assert min(similarities, key=lambda key: similarities[key]) == "d3"  # bread
    assert all(set(stage.reasons) == set(stage.documents) for stage in result.stages)
    assert [opinion.role for opinion in result.opinions] == ["local_agent", "global_agent", "judge"]
    assert result.answer == result.opinions[-1].answer
    for sentences, document in ((s, QUESTION.document(i)) for i, s in result.stages[4].key_sentences.items()):
        assert sentences
        assert all(sentence in document.text for sentence in sentences)
    assert len(outcome.maps) == 1
