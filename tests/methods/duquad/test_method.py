"""DuQUAD from end to end with scripted replies: the ledger, the fallbacks and the ablations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest, Likelihood
from mdqa.backends.scripted import ScriptedBackend
from mdqa.backends.scripted_replies import extractive_reply
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.duquad.agents import agent_prompt
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.prompting import Prompt
from mdqa.records import Generation, Question, RunResult
from mdqa.run import begin

from .helpers import QUESTION, LimitedBackend, Run, agent, by_role, document, judge, run_duquad, score

USUAL = {
    "agent": [agent("the Mur", 1, 2), agent("Danube", 2, 4)],
    "score": [score(0.2, 1), score(0.9, 3, 1), score(0.4, 2)],
    "judge": [judge("The Danube")],
}


def names(run: Run) -> list[str]:
    return [stage.name for stage in run.result.stages]


def roles(run: Run) -> dict[str, str]:
    return {opinion.role: opinion.answer for opinion in run.result.opinions}


def test_the_whole_way() -> None:
    run = run_duquad(USUAL)
    assert run.result.status == "ok", run.result.error
    assert run.result.answer == "The Danube"
    assert names(run) == ["structural_fusion", "local_agent", "global_agent", "candidates", "doc_score", "judge"]
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


def test_structural_fusion_ledger() -> None:
    run = run_duquad(USUAL, k=2)
    stage = run.stage("structural_fusion")
    assert set(stage.scores) == {
        "sim", "ppl", "cont", "sim_normalised", "ppl_normalised", "cont_normalised", "SFS",
    }  # fmt: skip
    for document_id in QUESTION.document_ids:
        total = sum(
            weight * (run.values("structural_fusion", f"{name}_normalised")[document_id] or 0.0)
            for name, weight in (("sim", 0.5), ("ppl", 1.0), ("cont", 0.5))
        )
        assert run.values("structural_fusion", "SFS")[document_id] == pytest.approx(total)
    order = sorted(QUESTION.document_ids, key=lambda i: -(run.values("structural_fusion", "SFS")[i] or 0.0))
    assert set(stage.kept) == set(order[:2])
    assert stage.reasons[order[0]] == "kept: rank 1 of 4 by SFS"
    assert stage.reasons[order[2]] == "dropped: rank 3 of 4 by SFS, the Local Agent reads 2"
    assert run.stage("local_agent").documents == stage.kept


def test_likelihood_of_the_question_given_each_document() -> None:
    # Scripted: -0.5 for a word seen before the question, -4 for a new one; "question" itself is in the prompt's cue.
    # d2 holds river? no; which no; flows, through, Vienna yes: (3 x -0.5 + 2 x -4) / 5.
    ppl = run_duquad(USUAL).values("structural_fusion", "ppl")
    assert ppl["d2"] == pytest.approx(-1.9)
    assert ppl["d4"] == pytest.approx(-1.9)  # river, flows, through
    assert ppl["d3"] == pytest.approx(-4.0)


def test_local_agent_sees_global_numbers_in_the_chosen_order() -> None:
    for order in ("original", "descending", "ascending"):
        run = run_duquad(
            USUAL | {"agent": [agent("x", 4), agent("x", 4)], "score": [score(1.0)]}, k=3, local_order=order
        )
        [call] = run.calls("local_agent")
        assert call.documents == run.stage("structural_fusion").kept
        for document_id in call.documents:
            assert f"Document [{document_id[1:]}]" in call.prompt
    by_rank = run_duquad(USUAL, k=3, local_order="descending").stage("structural_fusion").kept
    assert run_duquad(USUAL, k=3, local_order="ascending").stage("structural_fusion").kept == by_rank[::-1]


def test_attention_passes_share_the_documents_with_each_other_and_with_the_global_agent() -> None:
    run = run_duquad(USUAL)
    [first], [second], [reply] = (run.calls(r) for r in ("attention", "content-free attention", "global_agent"))
    assert first.cost.cached_tokens == 0
    assert second.cost.prefill_tokens_computed < first.cost.prompt_tokens / 4
    assert reply.cost.cached_tokens == reply.cost.prompt_tokens - 1
    assert reply.prompt == first.prompt
    [attention_map] = run.outcome.maps
    assert attention_map.documents == QUESTION.document_ids
    assert attention_map.heat is None


def test_contrast_signal_is_what_two_direct_passes_give() -> None:
    run = run_duquad(USUAL, contrast="document")
    backend = ScriptedBackend()
    masses = [
        backend.attend(
            agent_prompt(QUESTION, QUESTION.documents, 5, q), stage="s", title="t", cancel=CancelToken()
        ).map.mass
        for q in (None, "N/A")
    ]
    expected = (masses[0] - masses[1]).sum(axis=(0, 1))
    assert list(run.values("structural_fusion", "cont").values()) == pytest.approx(expected.tolist(), abs=1e-5)


def permuted(order: list[int]) -> Question:
    return QUESTION.with_documents(tuple(QUESTION.documents[i] for i in order))


def test_permuting_the_documents_permutes_sim_and_ppl_exactly() -> None:
    original = run_duquad()
    for order in ([3, 2, 1, 0], [1, 3, 0, 2]):
        other = run_duquad(item=permuted(order))
        for signal in ("sim", "ppl"):
            assert other.values("structural_fusion", signal) == original.values("structural_fusion", signal)


def test_identical_documents_tie_and_keep_input_order() -> None:
    item = QUESTION.with_documents(tuple(document(i, "The Danube flows through Vienna.") for i in range(1, 9)))
    run = run_duquad(item=item, k=3, weight_cont=0.0)
    assert run.result.status == "ok"
    assert set(run.values("structural_fusion", "SFS").values()) == {0.0}
    assert run.stage("structural_fusion").kept == ("d1", "d2", "d3")


@pytest.mark.parametrize("text", ["The Danube flows through Vienna.", "x", "!!!", "多瑙河流经维也纳。"])
def test_one_document(text: str) -> None:
    item = QUESTION.with_documents((document(1, text),))
    run = run_duquad(item=item)
    assert run.result.status == "ok", run.result.error
    assert run.values("structural_fusion", "SFS") == {"d1": 0.0}
    assert run.stage("judge").documents == ("d1",)
    assert run.stage("doc_score").key_sentences == {"d1": (text,)}


def test_unreadable_agent_is_asked_twice_then_its_raw_text_counts() -> None:
    run = run_duquad({**USUAL, "agent": ["The river is the Danube", "Answer: Danube", agent("Danube", 2)],
                      "score": [score(1.0, 1)]})  # fmt: skip
    assert run.result.status == "ok"
    assert [(call.attempt, call.parse) for call in run.calls("local_agent")] == [(1, "parse_error"), (2, "parse_error")]
    opinion = run.result.opinions[0]
    assert (opinion.answer, opinion.status, opinion.documents) == ("Danube", "parse_error", ())
    assert {s.status for s in run.stage("local_agent").scores["cited"].values()} == {"parse_error"}
    assert run.stage("local_agent").kept == ()
    assert run.stage("candidates").kept == ("d2",)
    assert (run.result.fallbacks, run.result.parse_failures) == (1, 2)
    assert any("Local Agent's reply could not be read" in notice for notice in run.result.notices)


def test_a_retry_that_can_be_read_is_no_fallback() -> None:
    run = run_duquad({**USUAL, "agent": ["hm", agent("Danube", 2), agent("Danube", 2)], "score": [score(1.0, 1)]})
    assert (run.result.fallbacks, run.result.parse_failures) == (0, 1)
    assert run.stage("local_agent").kept == ("d2",)


def test_ids_out_of_range_and_repeated() -> None:
    run = run_duquad({**USUAL, "agent": [agent("x", 2, 2, 9, 0), agent("x", 2)], "score": [score(1.0, 1)]})
    assert run.stage("local_agent").kept == ("d2",)
    assert any("9, 0" in notice for notice in run.result.notices)
    assert run.result.fallbacks == 0


def test_the_local_agent_cannot_cite_what_it_did_not_read() -> None:
    probe = run_duquad(USUAL, k=1)
    [seen] = probe.stage("structural_fusion").kept
    unseen = next(i for i in QUESTION.document_ids if i != seen)
    run = run_duquad({**USUAL, "agent": [agent("x", int(unseen[1:])), agent("x", 2)], "score": [score(1.0, 1)]}, k=1)
    assert run.stage("local_agent").kept == ()
    assert any("not among the documents it read" in notice for notice in run.result.notices)


def test_no_citation_falls_back_to_the_best_by_sfs() -> None:
    run = run_duquad({**USUAL, "agent": [agent("x"), agent("x")], "score": [score(0.9, 1)]}, k=1)
    assert run.stage("candidates").kept == run.stage("structural_fusion").kept
    assert run.result.fallbacks == 1
    assert any("first by SFS" in notice for notice in run.result.notices)


def test_no_survivor_keeps_the_highest_score() -> None:
    run = run_duquad({**USUAL, "score": [score(0.1), score(0.3, 1), score(0.3, 1)]})
    stage = run.stage("doc_score")
    assert stage.kept == ("d2",)
    assert stage.reasons["d2"] == "kept: no DocScore reaches 0.40; the highest, 0.30, is kept"
    assert stage.reasons["d4"] == "dropped: DocScore 0.30 below 0.40"
    assert run.result.fallbacks == 1


def test_unreadable_score_is_a_status_and_not_a_zero() -> None:
    run = run_duquad({**USUAL, "score": ["good", score(0.9, 1), '{"score": 7}', "good", '{"score": 7}']})
    scores = run.stage("doc_score").scores["DocScore"]
    assert [(s.value, s.status) for s in scores.values()] == [
        (None, "parse_error"),
        (0.9, "ok"),
        (None, "out_of_range"),
    ]
    assert run.stage("doc_score").kept == ("d2",)
    assert run.stage("doc_score").reasons["d1"].startswith("dropped: no readable DocScore (parse_error")


def test_without_any_score_the_candidate_ranked_best_stays() -> None:
    run = run_duquad({**USUAL, "score": ["?"] * 6})
    sfs = run.values("structural_fusion", "SFS")
    best = max(("d1", "d2", "d4"), key=lambda i: sfs[i] or 0.0)
    assert run.stage("doc_score").kept == (best,)
    assert run.result.answer == "The Danube"
    assert run.result.fallbacks == 2  # pruning, and key sentences by the encoder


def test_truncated_score_says_so() -> None:
    run = run_duquad({**USUAL, "score": ['{"score": 0.' + " x" * 99] * 6}, score_max_tokens=8)
    assert {s.status for s in run.stage("doc_score").scores["DocScore"].values()} == {"truncated"}


def test_key_sentences_by_the_encoder_where_the_agent_names_none() -> None:
    replies = {**USUAL, "agent": [agent("x", 2), agent("x", 2)], "score": [score(1.0, 17)]}
    run = run_duquad(replies, fallback_sentences=1)
    assert run.stage("doc_score").key_sentences == {"d2": ("The Danube flows through Vienna.",)}
    assert any("named sentences 17 of d2" in notice for notice in run.result.notices)
    assert run.result.fallbacks == 1
    bare = run_duquad(replies, fallback_sentences=2, encoder=False, weight_sim=0.0)
    assert bare.stage("doc_score").key_sentences["d2"] == ("The Danube flows through Vienna.", "The city is old.")


def test_unreadable_judge_falls_back_to_its_text_and_then_to_an_agent() -> None:
    run = run_duquad({**USUAL, "judge": ["I say: Danube", "The Danube it is"]})
    assert (run.result.answer, run.result.opinions[-1].status) == ("The Danube it is", "parse_error")
    assert run.result.fallbacks == 1
    silent = run_duquad({**USUAL, "judge": ["", ""]})
    assert silent.result.answer == "Danube"
    assert any("Global Agent's answer stands" in notice for notice in silent.result.notices)


def test_half_characters_in_replies_neither_fail_the_run_nor_reach_its_line() -> None:
    half = agent("the \ud83d Danube", 2, reasoning="\udfff")  # written as an escape
    run = run_duquad({**USUAL, "agent": [half, half], "score": [score(0.9, 1)], "judge": ['{"answer": "D\\ud83d'] * 2})
    assert run.result.status == "ok", run.result.error
    assert [opinion.answer for opinion in run.result.opinions] == ["the \ufffd Danube"] * 2 + ["D\ufffd"]
    assert json.dumps(run.result.to_line(), ensure_ascii=False).encode()


def test_nobody_says_anything() -> None:
    run = run_duquad({"agent": [""] * 4, "score": [""] * 2, "judge": [""] * 2})
    assert (run.result.status, run.result.answer) == ("ok", "")
    assert names(run)[-1] == "judge"


def test_unanswerable() -> None:
    run = run_duquad(
        {"agent": [agent("unknown"), agent("unknown")], "score": [score(0.0)], "judge": [judge("unknown")]}
    )
    assert (run.result.status, run.result.answer) == ("ok", "unknown")
    assert run.result.opinions[-1].group == "both"


def test_without_local() -> None:
    run = run_duquad({**USUAL, "agent": [agent("Danube", 2)], "score": [score(0.9, 1)]}, without_local=True)
    assert names(run) == ["structural_fusion", "global_agent", "candidates", "doc_score", "judge"]
    assert roles(run) == {"global_agent": "Danube", "judge": "The Danube"}
    assert run.result.opinions[-1].group == "global"
    assert "Local Agent" not in run.calls("judge")[0].prompt


def test_without_global() -> None:
    run = run_duquad({**USUAL, "agent": [agent("Danube", 2)], "score": [score(0.9, 1)]}, without_global=True)
    assert names(run) == ["structural_fusion", "local_agent", "candidates", "doc_score", "judge"]
    assert run.result.opinions[-1].group == "local"


def test_without_pruning_the_judge_reads_the_candidates_whole() -> None:
    run = run_duquad({**USUAL, "score": []}, without_pruning=True)
    assert names(run) == ["structural_fusion", "local_agent", "global_agent", "candidates", "judge"]
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


def test_a_backend_that_only_generates() -> None:
    run = run_duquad(backend=LimitedBackend({"generate"}, extractive_reply))
    stage = run.stage("structural_fusion")
    assert run.result.status == "ok"
    for signal in ("ppl", "cont"):
        assert {s.status for s in stage.scores[signal].values()} == {"unavailable"}
        assert any(f"signal {signal}" in notice for notice in run.result.notices)
    sim = run.values("structural_fusion", "sim_normalised")
    assert run.values("structural_fusion", "SFS") == {i: pytest.approx(0.5 * (sim[i] or 0.0)) for i in sim}
    assert not run.outcome.maps


def test_without_any_signal_input_order_stands() -> None:
    run = run_duquad(backend=LimitedBackend({"generate"}, extractive_reply), encoder=False, k=2)
    assert run.result.status == "ok"
    assert run.stage("structural_fusion").kept == ("d1", "d2")
    assert run.stage("structural_fusion").reasons["d1"] == "kept: rank 1 of 4 in input order (no SFS)"
    assert any("input order" in notice for notice in run.result.notices)


def test_missing_signals_can_be_refused() -> None:
    run = run_duquad(backend=LimitedBackend({"generate", "likelihood"}), allow_missing_signals=False)
    assert run.result.status == "failed"
    assert run.result.error is not None
    assert "attention" in run.result.error.message
    no_encoder = run_duquad(USUAL, encoder=False, allow_missing_signals=False)
    assert no_encoder.result.error is not None
    assert "encoder" in no_encoder.result.error.message


def test_a_signal_of_weight_zero_is_not_measured() -> None:
    run = run_duquad(USUAL, weight_cont=0.0, weight_ppl=0.0)
    assert set(run.stage("structural_fusion").scores) == {"sim", "sim_normalised", "SFS"}
    assert not run.calls("attention")
    assert not run.calls("likelihood")


def test_a_document_too_long_for_the_score_agent_is_said() -> None:
    backend = ScriptedBackend(window=2240)
    text = "Stop! " * 900  # 900 words, and 900 more once its sentences are numbered
    item = QUESTION.with_documents((document(1, text),))
    run = run_duquad(item=item, backend=backend, score_max_tokens=512)
    assert run.result.status == "ok", run.result.error
    score_entry = run.stage("doc_score").scores["DocScore"]["d1"]
    assert (score_entry.status, "too long" in score_entry.detail) == ("unavailable", True)
    assert len(run.stage("doc_score").key_sentences["d1"]) == 3


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
