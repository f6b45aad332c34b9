"""DuQUAD beside direct answering, on a tiny model: what is compared, not how fast it is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.errors import CapabilityError, ConfigError
from mdqa.methods.base import Tools
from mdqa.performance import duquad
from mdqa.performance.cases import Case, prompt_tokens
from mdqa.performance.figures import Figure
from mdqa.performance.measuring import Measured, Sample, meter_for
from mdqa.performance.plan import Plan
from mdqa.performance.runs import Ran
from mdqa.records import Cost
from tests.methods.duquad.helpers import WordEncoder

from .test_madara import backend, question

SHORT = {"agent_max_tokens": 16, "score_max_tokens": 8, "judge_max_tokens": 16}


def plan(documents: int, **options: object) -> Plan:
    case = Case("one", (question(documents),), 1)
    tools = Tools(backend(), make_encoder=WordEncoder)
    return Plan(tools, (case,), meter_for("cpu"), options={**SHORT, **options})


@cache
def figures() -> dict[str, Figure]:
    return {figure.name: figure for figure in duquad.bench(plan(3))}


def test_calls_and_tokens_beside_direct_answering() -> None:
    found = figures()
    calls = found["duquad.calls"]
    assert calls.baseline == 1
    assert calls.value is not None
    assert calls.value >= 3 + 2 + 2 + 1 + 1  # likelihoods, attention passes, agents, one candidate or more, judge
    direct = found["duquad.prompt_tokens_sent"].baseline
    assert direct == prompt_tokens(backend(), question(3)) == found["duquad.calls"].tokens
    share = found["duquad.computed_of_sent"].ratio
    assert share is not None
    assert 0 < share < 0.8  # both passes of the contrast and the Global Agent share the documents
    stages = {name for name in found if name.endswith(".time") and name.count(".") == 2}
    assert {"duquad.structural_fusion.time", "duquad.judge.time"} <= stages


def test_twenty_documents_are_held_to_the_goal() -> None:
    def sample(tokens: int) -> Sample:
        return Sample(
            1.0, 1.0, None, None, Ran((), Cost(llm_calls=1, prompt_tokens=100, prefill_tokens_computed=tokens))
        )

    measured = Measured({"direct": [sample(100)], "duquad": [sample(310)]}, {})
    for documents, goal in ((20, "<= 3"), (10, None)):
        found = {f.name: f for f in duquad.figures(measured, Case("c", (question(documents),), 1), "")}
        row = found["duquad.prompt_tokens_computed"].to_row()
        assert row["ratio"] == pytest.approx(3.1)
        assert (row["goal"], row["met"]) == (goal, False if goal else None)


def test_what_cannot_be_measured_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        duquad.bench(plan(2, nonsense=1))
    scripted = Plan(Tools(ScriptedBackend(), lambda: _NoEncoder()), (), meter_for("cpu"))
    with pytest.raises(CapabilityError, match="has no weights"):
        duquad.bench(scripted)


class _NoEncoder:
    name = "none"

    def encode(self, texts: object) -> np.ndarray:
        raise AssertionError
