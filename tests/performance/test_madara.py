"""MADARA's assessment in batches and one call at a time, on a tiny model: what is compared, not how fast it is."""

from __future__ import annotations

from functools import cache

import pytest

from mdqa.backends.base import GenerationRequest
from mdqa.backends.hf import TransformersBackend
from mdqa.backends.scripted import ScriptedBackend
from mdqa.benchmarks.examples import examples
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.performance import madara
from mdqa.performance.cases import Case, answering_prompt
from mdqa.performance.figures import Figure
from mdqa.performance.measuring import Measured, Sample, meter_for
from mdqa.performance.plan import Plan
from mdqa.records import Cost, Document, Question
from tests.tiny import tiny_backend

SHORT = {"agent_max_tokens": 16, "conflict_max_tokens": 16, "generator_max_tokens": 1, "temperature": 0}


@cache
def backend() -> TransformersBackend:
    return tiny_backend("llama")


def question(documents: int, words: int = 8) -> Question:
    """An example's question over so many documents of so many words."""
    item = examples()[0].question
    text = " ".join(document.text for document in item.documents)
    made = [
        Document(id=f"d{number}", title=f"T{number}", text=" ".join(f"{number} {text * 40}".split()[:words]))
        for number in range(documents)
    ]
    return item.with_documents(tuple(made))


def plan(item: Question, **options: object) -> Plan:
    return Plan(Tools(backend()), (Case("one", (item,), 1),), meter_for("cpu"), options={**SHORT, **options})


@cache
def figures() -> dict[str, Figure]:
    return {figure.name: figure for figure in madara.bench(plan(question(2)))}


def test_both_ways_are_timed_and_their_memory_is_read() -> None:
    found = figures()
    for quantity in ("time", "processor_time", "peak_memory", "added_memory"):
        assert found[f"batched.{quantity}"].value is not None
        assert found[f"one_at_a_time.{quantity}"].against == "batched"
    part, whole = found["assessment.one_at_a_time.time"], found["one_at_a_time.time"]
    assert part.value is not None
    assert whole.value is not None
    assert 0 < part.value < whole.value
    assert part.goal is None  # two documents; the goal is about ten


def test_batches_compute_less_than_is_sent_and_say_the_same() -> None:
    found = figures()
    computed, calls = found["assessment.prompt_tokens_computed"], found["assessment.calls"]
    assert computed.ratio is not None
    assert 0 < computed.ratio < 0.9
    assert computed.baseline == computed.tokens
    assert calls.ratio == 1.0
    assert calls.value is not None
    assert calls.value >= 5  # two documents: relevance and consistency of each, and the conflict
    equal = found["assessment.equal_replies"]
    assert (equal.value, equal.ratio) == (calls.value, 1.0)
    assert found["assessment.completion_tokens"].ratio == 1.0


def test_ten_documents_are_held_to_the_goals() -> None:
    def sample(seconds: float, computed: int, replies: dict[str, str]) -> Sample:
        cost = Cost(llm_calls=21, prompt_tokens=1000, prefill_tokens_computed=computed, completion_tokens=9)
        return Sample(seconds + 1, seconds, None, None, madara.Assessment(seconds, 2 * seconds, cost, replies))

    said, also = {"a": "x", "b": "y"}, {"a": "x", "b": "z"}
    ways = {"batched": [sample(10, 390, said)], "one_at_a_time": [sample(35, 1000, also)]}
    ten, nine = (Case("one", (question(count),), 1) for count in (10, 9))
    found = {figure.name: figure.to_row() for figure in madara.figures(Measured(ways), ten, "not here")}
    time, computed = found["assessment.one_at_a_time.time"], found["assessment.prompt_tokens_computed"]
    assert (time["value"], time["ratio"], time["goal"], time["met"]) == (35, 3.5, ">= 3", True)
    assert (computed["value"], computed["ratio"], computed["goal"], computed["met"]) == (390, 0.39, "<= 0.6", True)
    assert found["assessment.equal_replies"]["ratio"] == 0.5
    assert found["batched.peak_memory"]["note"] == "skipped: not here"
    assert all(figure.goal is None for figure in madara.figures(Measured(ways), nine, ""))


def test_one_at_a_time_shares_nothing() -> None:
    item = question(2)
    config = MADARAConfig.parse({**madara.OPTIONS, **SHORT})
    single = madara.assess(item, config, plan(item), madara.OneAtATime(backend()))
    assert single.cost.cached_tokens == 0
    assert single.cost.prefill_tokens_computed == single.cost.prompt_tokens == figures()["batched.time"].tokens
    assert len(single.replies) == single.cost.llm_calls
    assert single.seconds > 0
    assert single.processor_seconds > 0


def test_one_at_a_time_streams_and_counts_with_the_request_it_is_at() -> None:
    inner = ScriptedBackend(lambda request: f"reply {request.seed}")
    requests = [GenerationRequest(answering_prompt(question(2)), seed=seed) for seed in range(3)]
    done: list[int] = []
    said: dict[int, str] = {}
    replies = madara.OneAtATime(inner).generate(
        requests,
        cancel=CancelToken(),
        on_done=done.append,
        on_text=lambda i, text: said.update({i: said.get(i, "") + text}),
    )
    assert [reply.text for reply in replies] == ["reply 0", "reply 1", "reply 2"]
    assert done == [0, 1, 2]
    assert said == {0: "reply 0", 1: "reply 1", 2: "reply 2"}


def test_what_does_not_fit_into_the_window_is_said() -> None:
    [figure] = list(madara.bench(plan(question(2, words=6000))))
    assert (figure.name, figure.value) == ("batched.time", None)
    assert "window of 4,096" in figure.note


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"treatment": "nf"}, "treatment nf"),
        ({"treatment": "pde", "pde_votes": "random"}, "treatment pde"),
        ({"agent_max_tokens": 1}, "agent_max_tokens"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_options_without_an_assessment_are_refused_at_once(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        madara.bench(plan(question(2), **options))
