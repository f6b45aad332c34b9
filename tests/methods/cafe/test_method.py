"""CAFE end to end: on a tiny real model (attention and steering for real) and, slow, on the built-in model."""

from __future__ import annotations

import pytest

from mdqa.attention.contrast import contrasted
from mdqa.attention.heads import head_shares
from mdqa.backends.hf import TransformersBackend
from mdqa.benchmarks.examples import examples
from mdqa.calibration import find_profile
from mdqa.errors import InputError, ProfileError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.calibration import calibrate
from mdqa.methods.cafe.method import CAFE, CAFEConfig
from mdqa.methods.cafe.selection import head_name
from mdqa.methods.direct.method import DirectConfig
from mdqa.records import Document, Question
from mdqa.run import begin, run_one
from mdqa.trace import ModelCall
from tests.methods.cafe.helpers import place_question as question
from tests.tiny import tiny_backend


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return tiny_backend("llama")


@pytest.fixture(scope="module")
def tools(backend) -> Tools:
    questions = [question(7, i, f"q{i}") for i in range(3)]
    return Tools(backend, profile=calibrate(questions, Tools(backend), name="tiny", k1=2, m1=2))


def run(tools: Tools, item: Question, **options):
    events = []
    outcome = run_one(begin("cafe", CAFEConfig(**options), item, tools), tools, sink=events.append)
    assert outcome.result.error is None, outcome.result.error
    return outcome, events


def test_both_stages_are_in_the_ledger(tools):
    outcome, events = run(tools, question(), k1=2, m1=2)
    coarse, fine, answer = outcome.result.stages
    assert (coarse.name, fine.name, answer.name) == ("coarse_filtering", "fine_steering", "answer")
    assert 2 <= len(coarse.kept) <= 4
    gamma = [coarse.scores["gamma"][d].value for d in coarse.kept]
    assert gamma == sorted(gamma)  # the best stands last, next to the question
    assert fine.documents == coarse.kept == fine.kept == answer.documents
    steered = [d for d, s in answer.scores["steered"].items() if s.value == 1]
    assert 1 <= len(steered) <= 4
    assert len(outcome.maps) == 2
    calls = [e for e in events if isinstance(e, ModelCall)]
    assert [c.purpose for c in calls] == ["attention", "attention", "generate"]
    assert calls[2].cost.cached_tokens > 0.5 * calls[2].cost.prompt_tokens  # documents are not computed again


def test_documents_are_numbered_anew_after_filtering(tools):
    outcome, events = run(tools, question(), k1=2, m1=2)
    last = [e for e in events if isinstance(e, ModelCall)][-1]
    kept = outcome.result.stages[0].kept
    for number, document_id in enumerate(kept, 1):
        assert f"Document [{number}] (Title: Title {document_id[1:]})" in last.prompt
    assert f"Document [{len(kept) + 1}]" not in last.prompt


def test_coarse_pass_stops_after_the_deepest_head(tools, backend):
    outcome, events = run(tools, question(), k1=1, m1=2)
    call = next(e for e in events if isinstance(e, ModelCall))
    layers = outcome.maps[0].mass.shape[0]
    assert layers == outcome.maps[0].retrieval_heads[0][0] + 1
    assert call.cost.prefill_tokens_computed == round(call.cost.prompt_tokens * layers / backend.layers)


def test_scoring_follows_the_profile_unless_options_say_otherwise(backend):
    questions = [question(7, i, f"q{i}") for i in range(3)]
    profile = calibrate(questions, Tools(backend), name="free", k1=2, m1=2, doc_pool="mean", calibration="content_free")
    free = Tools(backend, profile=profile)
    outcome, events = run(free, question(), k1=2, m1=2)
    assert not outcome.result.notices
    titles = [m.title for m in outcome.maps]
    assert titles == [t + s for t in ("Coarse filtering", "Fine steering") for s in ("", ": content-free question")]
    calls = [e for e in events if isinstance(e, ModelCall)]
    for short in (calls[1], calls[3]):  # the documents' keys and values are shared with the question's pass
        assert short.cost.cached_tokens > 0.8 * short.cost.prompt_tokens
    asked, habit = outcome.maps[0], outcome.maps[1]
    heads = asked.retrieval_heads
    shares = head_shares(contrasted(asked.mass, habit.mass), heads)
    for head, row in zip(heads, shares, strict=True):
        recorded = outcome.result.stages[0].scores[f"head {head_name(head)}"]
        assert [recorded[d].value for d in asked.documents] == pytest.approx(row.tolist(), abs=1e-6)
    plain, _ = run(free, question(), k1=2, m1=2, calibration="none", doc_pool="sum")
    assert len(plain.maps) == 2
    assert "content_free" in plain.result.notices[0]
    assert "calibration none" in plain.result.notices[0]


def test_ablations(tools):
    assert [s.name for s in run(tools, question(), coarse_filtering=False)[0].result.stages] == [
        "fine_steering",
        "answer",
    ]
    outcome, _ = run(tools, question(), fine_steering=False)
    assert [s.name for s in outcome.result.stages] == ["coarse_filtering", "answer"]
    assert all(s.value == 0 for s in outcome.result.stages[-1].scores["steered"].values())
    plain, _ = run(tools, question(), fine_steering=False, coarse_filtering=False)
    zero, _ = run(tools, question(), delta=0.0, coarse_filtering=False)
    assert zero.result.answer == plain.result.answer  # steering by nothing is no steering
    assert all(s.value == 0 for s in zero.result.stages[-1].scores["steered"].values())


def test_without_both_stages_it_is_direct_answering(tools):
    """In the same words: what is measured between the two is the method, not its prompt."""
    outcome, events = run(tools, question(), coarse_filtering=False, fine_steering=False)
    others = []
    bare = Tools(tools.backend)
    direct = run_one(begin("direct", DirectConfig(), question(), bare), bare, sink=others.append)
    assert [e.prompt for e in events if isinstance(e, ModelCall)] == [
        e.prompt for e in others if isinstance(e, ModelCall)
    ]
    assert outcome.result.answer == direct.result.answer


def test_sentences_are_chosen_and_steered_without_a_further_pass(tools):
    item = question()
    longer = tuple(d.model_copy(update={"text": f"{d.text} Its hills are old."}) for d in item.documents)
    item = item.with_documents(longer)
    outcome, events = run(tools, item, k1=2, m1=2, m2=1, granularity="sentence")
    coarse, fine, answer = outcome.result.stages
    assert fine.documents == coarse.kept == fine.kept == answer.documents
    assert [e.purpose for e in events if isinstance(e, ModelCall)] == ["attention", "attention", "generate"]
    chosen = fine.key_sentences
    assert 1 <= sum(map(len, chosen.values())) <= 2  # top M2 of two heads, united
    for document in fine.documents:
        texts = chosen.get(document, ())
        assert all(text in item.document(document).text for text in texts)
        expected = f"candidate: {len(texts)} sentence" if texts else "not a candidate: best sentence"
        assert fine.reasons[document].startswith(expected)
        assert answer.scores["steered"][document].value == float(bool(texts))
        assert ("key sentences" in answer.reasons[document]) == bool(texts)
    best = [[s.value for s in scores.values()] for name, scores in fine.scores.items() if ", head " in name]
    assert all(0 < sum(row) <= 1 + 1e-6 for row in best)  # shares of all sentences, of which only the best are kept
    every, _ = run(tools, item, k1=2, m1=2, m2=99, granularity="sentence", delta=6.0)
    assert {d: len(s) for d, s in every.result.stages[1].key_sentences.items()} == dict.fromkeys(coarse.kept, 2)


def test_steering_sentences_by_nothing_is_no_steering(tools):
    options = {"k1": 2, "m1": 2, "m2": 99, "steered_rows": "question_to_end_and_generated"}
    zero = run(tools, question(), granularity="sentence", delta=0.0, **options)[0].result
    plain = run(tools, question(), fine_steering=False, **options)[0].result
    assert zero.answer == plain.answer
    assert all(s.value == 0 for s in zero.stages[-1].scores["steered"].values())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_documents_are_not_filtered(tools, count):
    outcome, _ = run(tools, question(count, 0), m1=4)
    assert set(outcome.result.stages[0].kept) == {f"d{i}" for i in range(count)}
    assert any("nothing is filtered" in notice for notice in outcome.result.notices)


def test_identical_documents(tools):
    documents = tuple(Document(id=f"d{i}", text="The same words.") for i in range(6))
    outcome, _ = run(tools, Question(id="q", question="Which?", documents=documents))
    assert outcome.result.status == "ok"


def test_profile_of_another_model_or_shape_is_refused_before_any_work(tools, backend):
    other = tools.profile.model_copy(update={"model": "somebody/else"})
    with pytest.raises(ProfileError, match="somebody/else"):
        CAFE(CAFEConfig(), Tools(backend, profile=other))
    values = {**tools.profile.values, "fine": {"n": 1, "scores": [[0.1]]}}
    with pytest.raises(ProfileError, match="4 layers of 6 heads"):
        CAFE(CAFEConfig(), Tools(backend, profile=tools.profile.model_copy(update={"values": values})))
    with pytest.raises(ProfileError, match="calibrate --method cafe"):
        CAFE(CAFEConfig(), Tools(backend))


def test_calibration_names_a_question_that_is_too_long_before_any_work(backend):
    long = question(7, 2, "long").with_documents((Document(id="x", text="word " * 5000, gold=True),))
    steps = []
    with pytest.raises(InputError, match=r"question 'long': the prompt has .* leave this question out"):
        calibrate([question(), long], Tools(backend), name="x", progress=lambda *step: steps.append(step))
    assert steps == []


def test_calibration_finds_a_head_that_looks_at_the_evidence(tools, backend):
    profile = tools.profile
    coarse = profile.values["coarse"]["scores"]
    assert len(coarse) == backend.layers
    assert max(max(row) for row in coarse) > 1 / 7  # the best head is above an even share
    assert profile.values["fine"]["n"] <= profile.values["coarse"]["n"] == 3


@pytest.mark.slow
def test_builtin_model(builtin_backend):
    tools = Tools(builtin_backend, profile=find_profile("cafe", builtin_backend.model))
    assert tools.profile is not None, "the profile of the built-in model ships with the package"
    item = max((e.question for e in examples()), key=lambda q: len(q.documents))
    outcome = run_one(begin("cafe", CAFEConfig(), item, tools), tools)
    assert outcome.result.error is None
    assert outcome.result.answer
    assert outcome.maps[0].mass.shape[1:] == (9, len(item.documents))
    assert 4 <= len(outcome.result.stages[0].kept) <= 16
