"""CAFE over a backend that remembers passes: the same results, and only what an option changes is computed."""

from __future__ import annotations

import numpy as np
import pytest

from mdqa.backends.remembering import RememberingBackend
from mdqa.methods.base import Tools
from mdqa.methods.cafe.calibration import calibrate
from mdqa.methods.cafe.method import CAFEConfig
from mdqa.records import Cost
from mdqa.run import Outcome, begin, run_one
from mdqa.trace import ModelCall
from tests.methods.cafe.helpers import place_question
from tests.tiny import tiny_backend


def cafe(tools: Tools, **options: object) -> tuple[Outcome, list[Cost]]:
    """A run and the costs of its attention passes, stage after stage."""
    events: list = []
    outcome = run_one(begin("cafe", CAFEConfig(**options), place_question(), tools), tools, sink=events.append)
    assert outcome.result.error is None, outcome.result.error
    return outcome, [e.cost for e in events if isinstance(e, ModelCall) and e.purpose == "attention"]


@pytest.fixture(scope="module")
def profiled():
    inner = tiny_backend()
    questions = [place_question(7, i, f"q{i}") for i in range(3)]
    return inner, calibrate(questions, Tools(inner), name="tiny", k1=2, m1=2)


@pytest.mark.parametrize("calibration", ["none", "content_free"])
def test_another_option_computes_only_what_it_changes(profiled, calibration):
    inner, profile = profiled
    tools, plain = Tools(RememberingBackend(inner), profile=profile), Tools(inner, profile=profile)
    base = {"k1": 3, "m1": 2, "k2": 2, "m2": 1, "max_new_tokens": 6, "calibration": calibration}
    costs = {}
    for changes in ({}, {"delta": 9.0}, {"m2": 2}, {"k1": 2}, {"k2": 1}, {"m1": 3}, {"k2": 3}):
        ours, costs[str(changes)] = cafe(tools, **(base | changes))
        own, _ = cafe(plain, **(base | changes))
        assert ours.result.answer == own.result.answer
        assert [stage.kept for stage in ours.result.stages] == [stage.kept for stage in own.result.stages]
        assert [stage.reasons for stage in ours.result.stages] == [stage.reasons for stage in own.result.stages]
        for found, expected in zip(ours.maps, own.maps, strict=True):
            np.testing.assert_allclose(found.mass, expected.mass, atol=1e-5)
            assert (found.stage, found.title, found.retrieval_heads) == (
                *(expected.stage, expected.title),
                expected.retrieval_heads,
            )
    computed = {name: [cost.prefill_tokens_computed for cost in own] for name, own in costs.items()}
    stage = 1 if calibration == "none" else 2  # passes of a stage
    assert all(tokens > 0 for tokens in computed["{}"])
    for name in ("{'delta': 9.0}", "{'m2': 2}", "{'k2': 1}"):
        assert computed[name] == [0] * (2 * stage)
    for name in ("{'m1': 3}", "{'k1': 2}", "{'k2': 3}"):
        assert computed[name][:stage] == [0] * stage
    assert computed["{'m1': 3}"][stage] > 0
    fine = costs["{'k2': 3}"][stage]
    assert 0 < fine.prefill_tokens_computed < 0.5 * fine.prompt_tokens  # the documents' keys and values are reused
