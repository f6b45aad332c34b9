"""Rankings without agents, and votes that count what their document is worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.relevance import Logistic, calibrated, fit, probability_from, question_likelihoods
from mdqa.methods.recorder import Recorder
from mdqa.records import Document, DocumentScore, Question
from mdqa.run import begin, run_one
from tests.tiny import tiny_backend

from .helpers import QUESTION, by_role, document_of, make_profile, run_madara


class Words:
    """A sentence encoder for tests: word counts, unit length."""

    name = "words"

    def encode(self, texts):
        words = sorted({w for t in texts for w in t.lower().split()} | {"bridge", "opened", "was", "the", "when"})
        counts = np.array([[t.lower().split().count(w) for w in words] for t in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_the_fit_is_the_maximum_of_the_penalised_likelihood():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400) * 30 + 7
    marks = rng.random(400) < 1 / (1 + np.exp(-(0.08 * x - 1.5)))
    found = fit(x, marks)
    assert found is not None and (found.documents, found.evidence) == (400, int(marks.sum()))

    def loss(slope: float, intercept: float) -> float:
        margin = slope * x + intercept
        return np.logaddexp(0, margin).sum() - (marks * margin).sum() + (slope * x.std()) ** 2 / 2

    best = loss(found.slope, found.intercept)
    for ds, di in ((1e-3, 0), (-1e-3, 0), (0, 1e-2), (0, -1e-2)):
        assert loss(found.slope + ds, found.intercept + di) > best
    assert found.slope == pytest.approx(0.08, abs=0.02)
    assert np.mean([found(v) for v in x]) == pytest.approx(marks.mean(), abs=1e-3)  # calibrated on the whole


def test_a_separable_or_constant_sample_stays_finite():
    found = fit([0.0, 0.0, 1.0, 1.0], [False, False, True, True])
    assert found is not None and 0.5 < found(1.0) < 1 and 0 < found(0.0) < 0.5
    flat = fit([2.0, 2.0, 2.0], [True, False, False])
    assert flat is not None and flat(2.0) == pytest.approx(1 / 3, abs=1e-4)
    assert fit([1.0, 2.0], [True, True]) is None and fit([], []) is None
    with pytest.raises(ValueError, match="2 scores and 1 marks"):
        fit([1.0, 2.0], [True])
    assert Logistic(1.0, 0.0, 1, 1)(-1e6) == 0.0 and Logistic(1.0, 0.0, 1, 1)(1e6) == 1.0


def test_scores_count_relative_to_their_question():
    logistic = Logistic(2.0, -1.0, 10, 2)
    scores = {"a": DocumentScore(value=5.0), "b": DocumentScore(value=3.0), "c": DocumentScore(status="unavailable")}
    found = logistic.probabilities(scores)
    assert found["a"].value == pytest.approx(1 / (1 + math.exp(-(2 * 1 - 1))))
    assert found["b"].value == pytest.approx(1 / (1 + math.exp(-(2 * -1 - 1))))
    assert found["c"].status == "unavailable"


def test_likelihoods_are_the_models_own():
    backend = tiny_backend("llama")
    run = Recorder(Tools(backend), sink=lambda event: None, cancel=CancelToken())
    scores, calls = question_likelihoods(QUESTION, run)
    assert list(scores) == list(QUESTION.document_ids) and sorted(calls.values()) == [0, 1, 2, 3]
    assert all(score.value is not None and score.value < 0 for score in scores.values())
    one = QUESTION.with_documents(QUESTION.documents[1:2])
    assert question_likelihoods(one, run)[0]["b"].value == pytest.approx(scores["b"].value, abs=1e-4)


def test_the_profile_gets_fits_of_what_can_be_measured():
    items = [
        Question(
            id=f"q{i}",
            question="When was the bridge opened?",
            documents=(
                Document(id="g", text=f"The bridge was opened in {1900 + i}", gold=True),
                Document(id="n", text=f"Bread costs {i} crowns", gold=False),
            ),
        )
        for i in range(4)
    ]
    tools = Tools(tiny_backend("llama"), make_encoder=Words)
    found = calibrated(items, Recorder(tools, sink=lambda event: None, cancel=CancelToken()))
    assert set(found) == {"similarity", "likelihood"}
    assert found["similarity"]["slope"] > 0 and found["similarity"]["questions"] == 4
    profile = make_profile(relevance=found)
    assert probability_from(profile, "similarity")(0.5) > 0.5 > probability_from(profile, "similarity")(-0.5)
    bare = Recorder(Tools(tools.backend), sink=lambda event: None, cancel=CancelToken())
    assert set(calibrated(items, bare)) == {"likelihood"}
    assert calibrated([QUESTION.with_documents(QUESTION.documents[1:])], bare) == {}


def test_calibrated_votes_by_hand():
    profile = make_profile(relevance={"similarity": {"slope": 10.0, "intercept": -2.0, "documents": 9, "evidence": 3}})
    backend = ScriptedBackend(by_role({"generator": lambda request: f"answer {document_of(request)}"}))
    tools = Tools(backend, make_encoder=Words, profile=profile)
    config = MADARAConfig.parse({"treatment": "pde", "pde_ranking": "similarity", "pde_votes": "calibrated", "k": 3})
    events = []
    result = run_one(begin("madara", config, QUESTION, tools), tools, sink=events.append).result
    assert result.error is None
    assert [stage.name for stage in result.stages] == ["assessment", "selection", "extraction"]
    similarity = {d: s.value for d, s in result.stages[0].scores["similarity"].items()}
    mean = sum(similarity.values()) / 4
    kept = result.stages[1].kept
    assert list(kept) == sorted(similarity, key=lambda d: -similarity[d])[:3]
    weights = {o.documents[0]: o.weight for o in result.opinions if o.role == "extractor"}
    assert weights == pytest.approx({d: 1 / (1 + math.exp(-(10 * (similarity[d] - mean) - 2))) for d in kept})
    assert result.cost.llm_calls == 3, "no agent is asked"


def test_what_does_not_fit_is_said_before_any_work():
    with pytest.raises(ConfigError, match="needs pde_ranking similarity or likelihood"):
        MADARAConfig.parse({"pde_votes": "calibrated"})
    with pytest.raises(ConfigError, match="log-likelihoods are no votes"):
        MADARAConfig.parse({"pde_ranking": "likelihood"})
    options = {"treatment": "pde", "pde_votes": "calibrated", "pde_ranking": "similarity"}
    for profile, why in (
        (make_profile(), "profile 'p' has no such fit; calibrate MADARA"),
        (None, "there is no profile"),
    ):
        run = run_madara(profile=profile, **options)
        assert run.result.error is not None and not run.calls()
        assert run.result.error.type == "ProfileError" and why in run.result.error.message
