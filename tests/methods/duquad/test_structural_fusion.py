"""DuQUAD's structural fusion in whole runs: the signals' ledger, shared passes, signals that are missing."""

from __future__ import annotations

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.backends.scripted_replies import extractive_reply
from mdqa.cancellation import CancelToken
from mdqa.methods.duquad.agents import agent_prompt
from mdqa.records import Question
from tests.methods.runs import LimitedBackend

from .helpers import QUESTION, USUAL, agent, document, run_duquad, score


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
