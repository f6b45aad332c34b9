"""Remembered replies and likelihoods: equal requests only, the model's own results, and never more than the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest, Likelihood, Steering
from mdqa.backends.remembering import RememberingBackend
from mdqa.backends.replies import ReplyMemory, likelihood_key, reply_key
from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import Cost, Document, Generation
from tests.tiny import tiny_backend

TEMPLATE = parse_template("t", "### user\n{{documents}}\n\nQuestion: {{question}}\nAnswer:")


def prompt(question: str = "Where is the town?", n: int = 3) -> Prompt:
    documents = [Document(id=f"d{i}", title=f"T{i}", text=f"Town {i} lies by the river.") for i in range(n)]
    return TEMPLATE.fill(documents=document_segments(documents), question=question_segment(question))


class Counting(ScriptedBackend):
    """A scripted backend that writes down which prompts it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Prompt] = []

    def generate(self, requests: Sequence[GenerationRequest], **options: Any) -> list[Generation]:
        self.asked += [request.prompt for request in requests]
        return super().generate(requests, **options)

    def log_likelihood(self, prompts: Sequence[Prompt], **options: Any) -> list[Likelihood]:
        self.asked += prompts
        return super().log_likelihood(prompts, **options)


def test_an_equal_request_is_written_once_and_its_cost_says_so() -> None:
    inner = Counting()
    backend, request = RememberingBackend(inner), GenerationRequest(prompt(), 8)
    [first] = backend.generate([request], cancel=CancelToken())
    said: list[tuple[int, str]] = []
    done: list[int] = []
    [again] = backend.generate(
        [request], cancel=CancelToken(), on_text=lambda i, text: said.append((i, text)), on_done=done.append
    )
    assert len(inner.asked) == 1
    assert again.model_copy(update={"cost": first.cost}) == first
    assert again.cost == Cost(
        llm_calls=1,
        prompt_tokens=first.cost.prompt_tokens,
        completion_tokens=first.cost.completion_tokens,
        cached_tokens=first.cost.prompt_tokens,
        remembered_calls=1,
    )
    assert first.cost.own_work and not again.cost.own_work and not (first.cost + again.cost).own_work
    assert (said, done) == ([(0, first.text)], [0])
    assert first.cost.prefill_tokens_computed == first.cost.prompt_tokens > first.cost.cached_tokens


OTHERS = {
    "prompt": {"prompt": prompt("Where is the river?")},
    "document-id": {"prompt": prompt(n=2)},
    "begun": {"prompt": prompt().with_reply("It")},
    "length": {"max_new_tokens": 7},
    "temperature": {"temperature": 0.7},
    "top-p": {"top_p": 0.9},
    "seed": {"seed": 1},
    "stop": {"stop": ("\n",)},
    "schema": {"schema": {"type": "object", "properties": {}}},
}


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_decides_a_reply_makes_it_another_request(name: str) -> None:
    request = GenerationRequest(prompt(), 8)
    assert reply_key(request, None) == reply_key(GenerationRequest(prompt(), 8), None)
    assert reply_key(request, None) != reply_key(replace(request, **OTHERS[name]), None)


def test_steering_and_target_make_another_request_too() -> None:
    request = GenerationRequest(prompt(), 8)
    keys = {
        reply_key(request, steering)
        for steering in (None, Steering(("d1",), 2.0), Steering(("d1",), -math.inf), Steering(("d2",), 2.0))
    }
    assert len(keys) == 4
    assert likelihood_key(prompt(), "question") != likelihood_key(prompt(), "reply")
    schemas = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    assert len({reply_key(replace(request, schema=schema), None) for schema in schemas}) == 2


def test_of_a_batch_only_the_new_ones_are_written_and_all_keep_their_places() -> None:
    inner = Counting()
    backend = RememberingBackend(inner)
    requests = [GenerationRequest(prompt(f"Where is town {i}?"), 8) for i in range(4)]
    expected = ScriptedBackend().generate(requests, cancel=CancelToken())
    backend.generate([requests[2], requests[0]], cancel=CancelToken())
    texts, done = dict.fromkeys(range(4), ""), []

    def on_text(index: int, text: str) -> None:
        texts[index] += text

    found = backend.generate(requests, cancel=CancelToken(), on_text=on_text, on_done=done.append)
    assert [reply.text for reply in found] == [reply.text for reply in expected] == list(texts.values())
    assert inner.asked[2:] == [requests[1].prompt, requests[3].prompt]
    assert sorted(done) == [0, 1, 2, 3]


def test_likelihoods_are_remembered_by_prompt_and_target() -> None:
    inner = Counting()
    backend = RememberingBackend(inner)
    prompts = [prompt(), prompt(n=2)]
    first = backend.log_likelihood(prompts, target="question", cancel=CancelToken())
    done: list[int] = []
    again = backend.log_likelihood(
        [*prompts, prompt(n=1)], target="question", cancel=CancelToken(), on_done=done.append
    )
    assert len(inner.asked) == 3 and sorted(done) == [0, 1, 2]
    assert [(x.logprob, x.tokens) for x in again[:2]] == [(x.logprob, x.tokens) for x in first]
    assert [x.cost.prefill_tokens_computed == 0 for x in again] == [True, True, False]


def test_a_real_model_samples_the_same_once_more() -> None:
    plain, backend = tiny_backend(), RememberingBackend(tiny_backend())
    requests = [GenerationRequest(prompt(), 6, temperature=1.0, seed=seed) for seed in (1, 2, 1)]
    expected = [reply.text for reply in plain.generate(requests, cancel=CancelToken())]
    for _ in range(2):
        assert [reply.text for reply in backend.generate(requests, cancel=CancelToken())] == expected
    assert expected[0] == expected[2]


def generation(text: str, reason: str = "stop") -> Generation:
    return Generation(text=text, finish_reason=reason, cost=Cost(llm_calls=1, prompt_tokens=5, seconds=3.0))


def test_memory_stays_within_its_limit_and_the_oldest_go_first() -> None:
    memory: ReplyMemory[Generation] = ReplyMemory(10_000)
    for number in range(20):
        memory.add(str(number).encode(), generation("x" * 1_000))
        memory.find(b"0")
        assert memory.held_bytes <= 10_000
    assert memory.find(b"0") is not None and memory.find(b"19") is not None and memory.find(b"1") is None
    memory.add(b"0", generation("y"))
    assert memory.find(b"0").text == "y"  # type: ignore[union-attr]
    memory.add(b"large", generation("x" * 20_000))
    assert memory.find(b"large") is None and memory.find(b"19") is not None
    memory.close()
    memory.add(b"late", generation("z"))
    assert memory.held_bytes == 0 and memory.find(b"0") is None


def test_what_was_stopped_is_not_remembered() -> None:
    memory: ReplyMemory[Generation] = ReplyMemory()
    memory.add(b"a", generation("half", "cancelled"))
    assert memory.find(b"a") is None
    backend, cancel = RememberingBackend(Counting()), CancelToken()
    backend.generate([GenerationRequest(prompt(), 8)], cancel=cancel)
    cancel.cancel()
    with pytest.raises(Cancelled):
        backend.generate([GenerationRequest(prompt(), 8)], cancel=cancel)


def test_without_memory_everything_is_done_again() -> None:
    inner = Counting()
    backend = RememberingBackend(inner, reply_bytes=0)
    for _ in range(2):
        backend.generate([GenerationRequest(prompt(), 8)], cancel=CancelToken())
        backend.log_likelihood([prompt()], target="question", cancel=CancelToken())
    assert len(inner.asked) == 4
