"""The treatments that were not chosen: the same answers as in runs of their own, for fewer calls."""

from __future__ import annotations

import pytest

from mdqa.methods.madara.plans import PLANS
from mdqa.records import Opinion

from .helpers import CONFLICT, REPLIES, Run, by_document, document_of, make_profile, run_madara

VARIANTS = {
    "nf": {"treatment": "nf"},
    "three_agent": {"treatment": "three_agent"},
    "cot": {"treatment": "cot"},
    "sda": {"treatment": "sda"},
    "sda_cot": {"treatment": "sda", "sda_cot": True},
    "atf": {"treatment": "atf"},
    "pde": {"treatment": "pde"},
    "pde_uniform": {"treatment": "pde", "pde_votes": "uniform"},
    "pde_random": {"treatment": "pde", "pde_votes": "random"},
}
COT_GRADES = {"a": 1, "b": 5, "c": 2, "d": 4}


def replies() -> dict:
    """Other grades after reasoning than before it, so that an exchanged assessment shows."""
    cot, base = by_document(COT_GRADES), REPLIES["relevance"]
    return {**REPLIES, "relevance": lambda r: (cot if r.prompt.template.endswith("_cot") else base)(r)}


def outcomes(run: Run) -> dict[str, Opinion]:
    found = [o for o in run.result.opinions if o.role == "treatment"]
    assert len({o.group for o in found}) == len(found)
    return {o.group: o for o in found}


@pytest.mark.parametrize("own", list(VARIANTS))
def test_every_treatment_answers_as_in_a_run_of_its_own(own):
    compared = run_madara(replies(), compare="all", k=2, seed=3, **VARIANTS[own])
    found = outcomes(compared)
    assert set(found) == set(VARIANTS) == set(PLANS)
    assert [key for key, opinion in found.items() if opinion.chosen] == [own]
    for key, options in VARIANTS.items():
        alone = run_madara(replies(), k=2, seed=3, **options)
        assert found[key].answer == alone.result.answer, key
        name = "input" if key == "nf" else "selection"
        assert found[key].documents == alone.stage(name).kept, key
    assert compared.result.answer == found[own].answer


def test_what_is_shared_is_done_once():
    run = run_madara(replies(), treatment="pde", compare="shared", k=2)
    assert set(outcomes(run)) == set(VARIANTS) - {"cot", "sda_cot"}
    assert run.stages == ["assessment", "selection", "extraction", "comparison"]
    assert len(run.calls("relevance")) == 4 and len(run.calls("conflict")) == 1
    lists = [call.documents for call in run.calls("generator")]
    assert len(lists) == len(set(lists)), "equal lists of documents are read once"
    everything = run_madara(replies(), treatment="pde", compare="all", k=2)
    assert [s for s in everything.stages if s.startswith("assessment")] == ["assessment", "assessment_cot"]
    assert len(everything.calls("relevance")) == 8
    assert len([o for o in everything.result.opinions if o.role == "conflict"]) == 1, "the run's own"


def test_each_document_is_read_alone():
    run = run_madara(replies(), treatment="nf", compare="shared")
    readings = [o for o in run.result.opinions if o.role == "reading"]
    assert [(o.documents, o.answer) for o in readings] == [
        (("a",), "1932"), (("b",), "steel"), (("c",), "1930"), (("d",), "1932."),
    ]  # fmt: skip
    assert run.stages == ["input", "generation", "assessment_base", "comparison"]


def test_nothing_is_compared_unless_asked_for():
    assert not outcomes(run_madara(replies(), treatment="pde"))


def test_an_empty_answer_is_a_status():
    silent = {**REPLIES, "generator": lambda r: "" if len(r.prompt.document_ids) > 1 else "1932"}
    found = outcomes(run_madara(silent, treatment="pde", compare="shared"))
    assert (found["nf"].answer, found["nf"].status) == ("", "parse_error")
    assert found["pde"].status == "ok"


def test_a_question_in_conflict_is_isolated():
    strong = make_profile(nf=0.9)  # the model's own treatment is ATF
    quiet = {**REPLIES, "conflict": '{"has_conflict": false}'}
    calm = run_madara(quiet, profile=strong, per_query="conflict")
    assert calm.result.routing.treatment == "atf" and "extraction" not in calm.stages
    assert len(calm.calls("conflict")) == 1, "the assessment uses the findings that are there"
    torn = run_madara({**REPLIES, "conflict": CONFLICT}, profile=strong, per_query="conflict")
    assert torn.result.routing.treatment == "pde" and torn.stages[0] == "conflict"
    assert "conflict" in torn.result.routing.reason and "Adaptive Threshold" in torn.result.routing.note
    assert torn.result.routing.measures["EM_NF"] == 0.9
    assert torn.result.answer == run_madara(REPLIES, treatment="pde").result.answer
    assert len(torn.calls("conflict")) == 1
    off = run_madara({**REPLIES, "conflict": CONFLICT}, profile=strong)
    assert off.result.routing.treatment == "atf"


def test_order_in_which_documents_are_read_together():
    orders = {
        o: run_madara(REPLIES, treatment="three_agent", k=3, order=o) for o in ("best_first", "best_last", "original")
    }
    assert {o: run.calls("generator")[0].documents for o, run in orders.items()} == {
        "best_first": ("a", "d", "b"),
        "best_last": ("b", "d", "a"),
        "original": ("a", "b", "d"),
    }  # fmt: skip


def test_abstaining_is_offered_in_the_prompt_and_dropped_from_the_vote():
    answers = {"a": "unknown", "b": "unknown", "c": "1930", "d": "unknown"}
    script = {**REPLIES, "generator": lambda r: answers[document_of(r)]}
    run = run_madara(script, treatment="pde", may_abstain=True, drop_abstentions=True)
    assert run.result.answer == "1930"
    assert all("reply: unknown" in call.prompt for call in run.calls("extractor"))
    assert run_madara(script, treatment="pde").result.answer == "unknown"
    assert not any("unknown" in call.prompt for call in run_madara(script, treatment="pde").calls("extractor"))
