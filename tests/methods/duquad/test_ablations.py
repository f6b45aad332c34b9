"""Ablations beside the whole method: each outcome is that of a run of its own."""

from __future__ import annotations

from functools import cache

import pytest

from mdqa.backends.hf import TransformersBackend
from mdqa.errors import ConfigError
from mdqa.methods.duquad.ablations import ABLATIONS
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.records import ASIDE, Opinion
from tests.tiny import tiny_backend

from .helpers import Run, agent, judge, run_duquad, score

AGENTS = {"local": agent("the Mur", 1, 2, reasoning="by the Mur"), "global": agent("Danube", 2, 4, reasoning="by it")}
SCORES = {"d1": score(0.2, 1), "d2": score(0.9, 3, 1), "d4": score(0.3, 2), "d3": score(0.1, 1)}


def outcomes(run: Run) -> dict[str, Opinion]:
    return {opinion.group: opinion for opinion in run.result.opinions if opinion.role == "ablation"}


def replies(*judges: str, local: str = AGENTS["local"], wide: str = AGENTS["global"]) -> dict[str, list[str]]:
    return {"agent": [local, wide], "score": [SCORES["d1"], SCORES["d2"], SCORES["d4"]], "judge": list(judges)}


def test_one_run_tells_the_outcomes_of_all() -> None:
    run = run_duquad(replies(*map(judge, ("whole", "one", "two", "three"))), compare_ablations=True)
    assert run.result.status == "ok", run.result.error
    found = outcomes(run)
    assert {key: opinion.answer for key, opinion in found.items()} == {
        "duquad": "whole",
        "without_local": "one",
        "without_global": "two",
        "without_pruning": "three",
    }
    assert run.result.answer == "whole"
    assert [key for key, opinion in found.items() if opinion.chosen] == ["duquad"]
    assert found["duquad"].documents == ("d2",)  # 0.9 reaches 0.4, and 0.2 and 0.3 do not
    assert found["without_local"].documents == ("d2",)
    assert found["without_pruning"].documents == ("d1", "d2", "d4")
    prompts = {key: run.calls("judge")[place].prompt for place, key in enumerate(("duquad", *ABLATIONS))}
    assert "by the Mur" not in prompts["without_local"]
    assert "by it" not in prompts["without_global"]
    assert "The river Danube is long. It flows through ten countries." in prompts["without_pruning"]
    assert len(run.calls("score")) == 3  # none again for the ablations


def test_the_stage_stands_beside_the_way() -> None:
    run = run_duquad(replies(*map(judge, "abcd")), compare_ablations=True)
    stage = run.stage("ablations")
    assert stage.branch == ASIDE
    assert run.values("ablations", "without_pruning") == {"d1": 1.0, "d2": 1.0, "d3": 0.0, "d4": 1.0}


def test_what_only_an_ablation_needs_is_asked_for_it() -> None:
    """The Global Agent cites nothing: without the Local Agent the best by SFS is the candidate, scored if it must."""
    script = replies(*map(judge, "abcd"), local=agent("Bread", 3), wide=agent("nothing"))
    script["score"] = [SCORES["d3"], score(0.7, 1)]
    run = run_duquad(script, compare_ablations=True, weight_ppl=0, weight_cont=0)
    assert run.result.status == "ok", run.result.error
    best = max(run.values("structural_fusion", "SFS").items(), key=lambda pair: pair[1] or 0.0)[0]
    assert best == "d2"
    assert run.stage("candidates").kept == ("d3",)
    assert outcomes(run)["without_local"].documents == ("d2",)
    assert [call.documents for call in run.calls("score")] == [("d3",), ("d2",)]


def test_an_unreadable_judge_of_an_ablation_is_no_fallback_of_the_run() -> None:
    script = replies(judge("whole"), "{broken", judge("two"), judge("three"), "still broken")
    run = run_duquad(script, compare_ablations=True)
    assert run.result.fallbacks == 0
    found = outcomes(run)["without_local"]
    assert (found.answer, found.status) == ("still broken", "parse_error")
    assert "could not be read" in found.reasoning


def test_key_sentences_that_only_an_ablation_needs_are_no_fallback_of_the_run() -> None:
    script = replies(*map(judge, "abcd"), local=agent("Bread", 3), wide=agent("nothing"))
    script["score"] = [score(0.9, 1), score(0.7)]
    run = run_duquad(script, compare_ablations=True, weight_ppl=0, weight_cont=0)
    assert any("named no key sentence of d2" in notice for notice in run.result.notices)
    assert run.result.fallbacks == 0


@cache
def backend() -> TransformersBackend:
    return tiny_backend("llama")


SHORT = {"agent_max_tokens": 16, "score_max_tokens": 8, "judge_max_tokens": 16}


@pytest.mark.parametrize("key", ABLATIONS)
def test_each_outcome_is_that_of_its_own_run(key: str) -> None:
    together = outcomes(run_duquad(backend=backend(), compare_ablations=True, **SHORT))[key]
    alone = run_duquad(backend=backend(), **SHORT, **{key: True})
    assert together.answer == alone.result.answer
    assert together.documents == alone.stage("judge").documents


def test_an_ablation_cannot_be_compared_with_itself() -> None:
    with pytest.raises(ConfigError, match="leave the without_ options off"):
        DuQUADConfig.parse({"compare_ablations": True, "without_local": True})


@pytest.mark.parametrize(("ranker", "first"), [("bm25", "d2"), ("dense", "d2"), ("rrf", "d2")])
def test_another_ranker_picks_for_the_local_agent(ranker: str, first: str) -> None:
    run = run_duquad(replies(judge("x")), local_ranker=ranker, k=1)
    assert run.result.stages[0].name == "local_selection"
    assert run.stage("local_selection").kept == (first,)
    assert run.stage("local_selection").reasons[first] == f"kept: rank 1 of 4 by {ranker}"
    assert not run.calls("likelihood")
    assert not run.calls("attention")
