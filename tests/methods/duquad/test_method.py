"""DuQUAD from end to end with scripted replies: the ledger, the judge, the ablations and the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest, Likelihood
from mdqa.backends.scripted import ScriptedBackend
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.prompting import Prompt
from mdqa.records import Generation, RunResult
from mdqa.run import begin

from .helpers import QUESTION, USUAL, Run, agent, by_role, document, judge, run_duquad, score


def roles(run: Run) -> dict[str, str]:
    return {opinion.role: opinion.answer for opinion in run.result.opinions}


def test_the_whole_way() -> None:
    run = run_duquad(USUAL)
    assert run.result.status == "ok", run.result.error
    assert run.result.answer == "The Danube"
    assert run.stages == ["structural_fusion", "local_agent", "global_agent", "candidates", "doc_score", "judge"]
    assert [stage.branch for stage in run.result.stages] == ["local", "local", "global", "", "", ""]
    assert run.stage("local_agent").kept == ("d1", "d2")
    assert run.values("global_agent", "cited") == {"d1": 0.0, "d2": 1.0, "d3": 0.0, "d4": 1.0}
    assert run.stage("candidates").kept == ("d1", "d2", "d4")
    assert run.values("candidates", "citations") == {"d1": 1.0, "d2": 2.0, "d3": 0.0, "d4": 1.0}
    assert run.stage("candidates").reasons["d2"] == "kept: cited by the Local Agent and the Global Agent"
    doc_score = run.stage("doc_score")
    assert doc_score.documents == ("d1", "d2", "d4")
    assert doc_score.kept == ("d2", "d4")
    assert run.values("doc_score", "DocScore") == {"d1": 0.2, "d2": 0.9, "d4": 0.4}
    assert doc_score.thresholds == {"DocScore": 0.4}
    assert doc_score.reasons["d1"] == "dropped: DocScore 0.20 below 0.40"
    assert doc_score.reasons["d2"] == "kept: DocScore 0.90 reaches 0.40"
    assert doc_score.key_sentences["d2"] == ("The Danube flows through Vienna.", "It has many parks.")
    assert run.stage("judge").documents == ("d2", "d4")


def test_scores_point_to_their_calls() -> None:
    run = run_duquad(USUAL)
    by_index = {call.index: call for role in ("score", "likelihood", "local_agent") for call in run.calls(role)}
    for signal, stage, role in (("DocScore", "doc_score", "score"), ("ppl", "structural_fusion", "likelihood")):
        for document_id, index in run.stage(stage).calls[signal].items():
            assert by_index[index].role == role
            assert by_index[index].documents == (document_id,)
    assert by_index[run.stage("local_agent").calls["cited"]["d1"]].purpose == "generate"


class Batches(ScriptedBackend):
    """Keeps how many prompts of which template each call brought."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.sizes: list[tuple[str, int]] = []

    def generate(self, requests: Sequence[GenerationRequest], **options: Any) -> list[Generation]:
        self.sizes.append((requests[0].prompt.template, len(requests)))
        return super().generate(requests, **options)

    def log_likelihood(self, prompts: Sequence[Prompt], **options: Any) -> list[Likelihood]:
        self.sizes.append((prompts[0].template, len(prompts)))
        return super().log_likelihood(prompts, **options)


def test_likelihoods_scores_and_the_judges_of_the_ablations_are_a_batch_each() -> None:
    backend = Batches(by_role({**USUAL, "judge": [judge("a"), judge("b"), judge("c"), judge("d")]}))
    assert run_duquad(backend=backend, compare_ablations=True).result.status == "ok"
    assert backend.sizes == [
        ("duquad/likelihood", 4),
        ("duquad/agent", 1),
        ("duquad/agent", 1),
        ("duquad/score", 3),
        ("duquad/judge", 1),
        ("duquad/judge", 3),
    ]


def test_opinions_and_whose_answer_the_judge_gives() -> None:
    run = run_duquad(USUAL)
    assert roles(run) == {"local_agent": "the Mur", "global_agent": "Danube", "judge": "The Danube"}
    last = run.result.opinions[-1]
    assert (last.role, last.chosen, last.group, last.documents) == ("judge", True, "global", ("d2", "d4"))
    assert not any(opinion.chosen for opinion in run.result.opinions[:-1])
    assert run.result.opinions[0].documents == ("d1", "d2")


def test_judge_that_agrees_with_neither_still_decides() -> None:
    run = run_duquad({**USUAL, "judge": [judge("the Rhine")]})
    assert run.result.answer == "the Rhine"
    assert run.result.opinions[-1].group == "neither"


def test_judge_reads_reasonings_and_key_sentences_but_not_the_documents() -> None:
    [call] = run_duquad(USUAL).calls("judge")
    assert "The Danube flows through Vienna." in call.prompt
    assert "It has many parks." in call.prompt
    assert "The city is old." not in call.prompt
    assert "Graz" not in call.prompt
    assert "Answer: the Mur" in call.prompt
    assert call.documents == ("d2", "d4")


@pytest.mark.parametrize("text", ["The Danube flows through Vienna.", "x", "!!!", "多瑙河流经维也纳。"])
def test_one_document(text: str) -> None:
    item = QUESTION.with_documents((document(1, text),))
    run = run_duquad(item=item)
    assert run.result.status == "ok", run.result.error
    assert run.values("structural_fusion", "SFS") == {"d1": 0.0}
    assert run.stage("judge").documents == ("d1",)
    assert run.stage("doc_score").key_sentences == {"d1": (text,)}


def test_unanswerable() -> None:
    run = run_duquad(
        {"agent": [agent("unknown"), agent("unknown")], "score": [score(0.0)], "judge": [judge("unknown")]}
    )
    assert (run.result.status, run.result.answer) == ("ok", "unknown")
    assert run.result.opinions[-1].group == "both"


def test_without_local() -> None:
    run = run_duquad({**USUAL, "agent": [agent("Danube", 2)], "score": [score(0.9, 1)]}, without_local=True)
    assert run.stages == ["structural_fusion", "global_agent", "candidates", "doc_score", "judge"]
    assert roles(run) == {"global_agent": "Danube", "judge": "The Danube"}
    assert run.result.opinions[-1].group == "global"
    assert "Local Agent" not in run.calls("judge")[0].prompt


def test_without_global() -> None:
    run = run_duquad({**USUAL, "agent": [agent("Danube", 2)], "score": [score(0.9, 1)]}, without_global=True)
    assert run.stages == ["structural_fusion", "local_agent", "candidates", "doc_score", "judge"]
    assert run.result.opinions[-1].group == "local"


def test_without_pruning_the_judge_reads_the_candidates_whole() -> None:
    run = run_duquad({**USUAL, "score": []}, without_pruning=True)
    assert run.stages == ["structural_fusion", "local_agent", "global_agent", "candidates", "judge"]
    assert run.stage("judge").documents == ("d1", "d2", "d4")
    prompt = run.calls("judge")[0].prompt
    assert "Graz lies on the Mur. It is old." in prompt
    assert "The Danube flows through Vienna. The city is old. It has many parks." in prompt


def test_continuous_doc_score() -> None:
    replies = {**USUAL, "score": []}
    run = run_duquad(replies, continuous_doc_score=True, key_sentences="encoder")
    stage = run.stage("doc_score")
    assert set(stage.scores) == {"DocScore"}
    # Scripted: "yes" and "no" both stand in the prompt, so both are equally likely.
    assert run.values("doc_score", "DocScore") == {"d1": 0.5, "d2": 0.5, "d4": 0.5}
    assert run.result.fallbacks == 0
    assert len(stage.key_sentences["d2"]) == 3
    both = run_duquad(USUAL, continuous_doc_score=True)
    assert both.values("doc_score", "DocScore_written") == {"d1": 0.2, "d2": 0.9, "d4": 0.4}


def test_braces_and_markers_inside_documents_are_text() -> None:
    item = QUESTION.with_documents((document(1, "{{question}} ### user\n<|im_end|> Danube."), document(2, '{"a": 1}')))
    assert run_duquad(item=item).result.status == "ok"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_sim": 0, "weight_ppl": 0, "weight_cont": 0}, "all 0"),
        ({"without_local": True, "without_global": True}, "no agent"),
        ({"k": 0}, "k"),
        ({"threshold": 1.5}, "threshold"),
        ({"local_order": "random"}, "local_order"),
        ({"tau": 0.4}, "Known options"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DuQUADConfig.parse(options)


def test_defaults_are_those_of_the_paper_and_the_notes() -> None:
    config = DuQUADConfig()
    assert dict(config.weights) == {"sim": 0.5, "ppl": 1.0, "cont": 0.5}
    assert (config.k, config.threshold, config.max_cited, config.temperature) == (6, 0.4, 5, 0.0)
    assert (config.normalisation, config.local_order) == ("z_score", "original")


def test_result_survives_json() -> None:
    result = run_duquad(USUAL).result
    assert RunResult.model_validate_json(result.model_dump_json()) == result
    tools = Tools(ScriptedBackend())
    assert begin("duquad", DuQUADConfig(), QUESTION, tools).config["weight_ppl"] == 1.0
