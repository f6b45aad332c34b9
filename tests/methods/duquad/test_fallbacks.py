"""DuQUAD with replies that cannot be read, cite nothing or say nothing: what the run does then, and says of it."""

from __future__ import annotations

import json

from mdqa.backends.scripted import ScriptedBackend

from .helpers import QUESTION, USUAL, agent, document, run_duquad, score


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
    assert run.stages[-1] == "judge"


def test_a_document_too_long_for_the_score_agent_is_said() -> None:
    backend = ScriptedBackend(window=2240)
    text = "Stop! " * 900  # 900 words, and 900 more once its sentences are numbered
    item = QUESTION.with_documents((document(1, text),))
    run = run_duquad(item=item, backend=backend, score_max_tokens=512)
    assert run.result.status == "ok", run.result.error
    score_entry = run.stage("doc_score").scores["DocScore"]["d1"]
    assert (score_entry.status, "too long" in score_entry.detail) == ("unavailable", True)
    assert len(run.stage("doc_score").key_sentences["d1"]) == 3
