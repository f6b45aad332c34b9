"""Remembered passes: the same results as without a memory, nothing computed twice, and never more than the limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from mdqa.backends.base import Backend, GenerationRequest, InspectableBackend, Movable, ScoringBackend, Steering
from mdqa.backends.composed import ComposedBackend
from mdqa.backends.pass_memory import Beginning, Pass, PassMemory, Wanted
from mdqa.backends.remembering import RememberingBackend, remembering
from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ModelError
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import AttentionMap, Document
from tests.tiny import CONFIGS, tiny_backend

TEMPLATE = parse_template(
    "t", "### system\nAnswer briefly.\n### user\n{{documents}}\n\nQuestion: {{question}}\nAnswer:"
)
TEXTS = tuple(f"Town number {i} lies by the river, north of the hills. " * 2 for i in range(5))
HEADS = ((0, 1), (1, 3))


def prompt(question: str = "Where is the town?", texts: tuple[str, ...] = TEXTS) -> Prompt:
    documents = [Document(id=f"d{i}", title=f"T{i}", text=text) for i, text in enumerate(texts)]
    return TEMPLATE.fill(documents=document_segments(documents), question=question_segment(question))


def attend(backend, asked: Prompt, **options):
    options = {"stage": "s", "title": "t", "cancel": CancelToken(), "retrieval_heads": HEADS} | options
    return backend.attend(asked, **options)


def write(backend, asked: Prompt, tokens: int = 5, **options):
    [reply] = backend.generate([GenerationRequest(asked, tokens)], cancel=CancelToken(), **options)
    return reply


def assert_same_map(found: AttentionMap, expected: AttentionMap) -> None:
    np.testing.assert_allclose(found.mass, expected.mass, atol=1e-5)
    assert replace(found, mass=expected.mass) == expected
    assert (found.heat is None) == (expected.heat is None)
    if found.heat is not None and expected.heat is not None:
        assert (found.heat.heads, found.heat.texts) == (expected.heat.heads, expected.heat.texts)
        np.testing.assert_array_equal(found.heat.spans, expected.heat.spans)
        np.testing.assert_allclose(found.heat.weights, expected.heat.weights, atol=1e-5)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_results_are_those_of_the_backend_within(architecture: str) -> None:
    plain, backend = tiny_backend(architecture), RememberingBackend(tiny_backend(architecture))
    passes = (
        ("the first time", prompt(), {}),
        ("again", prompt(), {"stage": "other", "title": "other"}),
        ("another question", prompt("Which river?"), {}),
        ("fewer layers", prompt(), {"until_layer": 1}),
        ("fewer heads", prompt(), {"retrieval_heads": HEADS[1:]}),
        ("other heads", prompt(), {"retrieval_heads": ((2, 0), (3, 5))}),
        ("other rows", prompt(), {"rows": "last", "retrieval_heads": ()}),
        ("mean", prompt(), {"pool": "mean"}),
        ("fewer documents", prompt(texts=TEXTS[:3]), {}),
    )
    for name, asked, options in passes:
        expected, found = attend(plain, asked, **options), attend(backend, asked, **options)
        assert_same_map(found.map, expected.map)
        assert found.document_tokens == expected.document_tokens, name
        assert (found.prefix, found.cost.prompt_tokens) == (None, expected.cost.prompt_tokens)
    steering = Steering(("d1",), 2.0)
    for asked in (prompt(), prompt("Who lives there?", TEXTS[:3])):
        assert write(backend, asked).text == write(plain, asked).text
        assert write(backend, asked, steering=steering).text == write(plain, asked, steering=steering).text


def test_the_same_pass_computes_nothing_and_says_so() -> None:
    backend = RememberingBackend(tiny_backend())
    first = attend(backend, prompt(), keep_prefix=True)
    again = attend(backend, prompt(), stage="fine", title="Fine", keep_prefix=True)
    assert first.cost.prefill_tokens_computed == first.cost.prompt_tokens
    assert again.cost.model_copy(update={"seconds": 0.0}) == first.cost.model_copy(
        update={
            "seconds": 0.0,
            "cached_tokens": first.cost.prompt_tokens,
            "prefill_tokens_computed": 0,
            "remembered_calls": 1,
        }
    )
    assert (again.map.stage, again.map.title) == ("fine", "Fine")
    assert again.prefix is first.prefix is not None
    shallow = attend(backend, prompt(), until_layer=1, retrieval_heads=HEADS[:1])
    assert shallow.cost.prefill_tokens_computed == 0
    assert shallow.map.retrieval_heads == HEADS[:1]
    assert shallow.map.mass.shape[0] == 2
    assert shallow.map.heat is not None and shallow.map.heat.heads == HEADS[:1]


def test_a_deeper_pass_or_other_heads_are_computed() -> None:
    backend = RememberingBackend(tiny_backend())
    attend(backend, prompt(), until_layer=1)
    deeper = attend(backend, prompt(), until_layer=3)
    assert deeper.cost.cached_tokens == 0
    assert deeper.map.mass.shape[0] == 4
    others = attend(backend, prompt(), retrieval_heads=((3, 0),))
    assert others.map.heat is not None and others.map.heat.heads == ((3, 0),)
    assert 0 < others.cost.prefill_tokens_computed < 0.2 * others.cost.prompt_tokens


def test_what_begins_alike_is_reused_by_passes_and_replies() -> None:
    backend = RememberingBackend(tiny_backend())
    attend(backend, prompt())
    other = attend(backend, prompt("Which river?"))
    assert other.cost.cached_tokens > 0.8 * other.cost.prompt_tokens
    part = attend(backend, prompt(texts=(*TEXTS[:3], "A new text.")))
    assert 0.5 * part.cost.prompt_tokens < part.cost.cached_tokens < part.cost.prompt_tokens
    reply = write(backend, prompt("Who lives there?"))
    assert reply.cost.cached_tokens > 0.8 * reply.cost.prompt_tokens
    batch = [GenerationRequest(prompt(question), 4) for question in ("Who?", "Why is that?")]
    for generation in backend.generate(batch, cancel=CancelToken()):
        assert generation.cost.cached_tokens > 0.8 * generation.cost.prompt_tokens
    assert write(backend, prompt(texts=("Nothing in common with that.",))).cost.cached_tokens == 0


def test_a_pass_that_stopped_early_serves_passes_that_stop_no_later() -> None:
    backend = RememberingBackend(tiny_backend())
    first = attend(backend, prompt(), until_layer=1, keep_prefix=True)
    assert attend(backend, prompt("Which river?"), until_layer=1).cost.cached_tokens > 0
    assert attend(backend, prompt("Which hill?"), until_layer=0, retrieval_heads=()).cost.cached_tokens > 0
    assert write(backend, prompt()).cost.cached_tokens == 0
    assert attend(backend, prompt("Which hill?"), until_layer=3).cost.cached_tokens == 0
    handed = attend(backend, prompt("Who?"), until_layer=1, prefix=first.prefix)
    assert handed.cost.cached_tokens > 0


def test_keys_and_values_are_counted_once() -> None:
    backend = RememberingBackend(tiny_backend())
    first = attend(backend, prompt(), keep_prefix=True)
    one = backend.remembered_bytes
    assert one >= sum(first.prefix.storages().values())
    attend(backend, prompt("Which river?"))  # keeps its map beside the first one's keys and values
    attend(backend, prompt(), retrieval_heads=((3, 0),))
    assert backend.remembered_bytes < 1.2 * one


def test_memory_stays_within_its_limit_and_old_passes_go_first() -> None:
    trial = RememberingBackend(tiny_backend())
    kept = [prompt(texts=tuple(f"{i}: {text}" for text in TEXTS)) for i in "abcd"]
    attend(trial, kept[0])
    one = trial.remembered_bytes
    backend = RememberingBackend(tiny_backend(), memory_bytes=int(2.5 * one))
    for asked in kept:
        attend(backend, asked)
        assert backend.remembered_bytes <= 2.5 * one
    # old maps outlive their keys and values, which are much larger
    assert attend(backend, kept[0], keep_prefix=True).cost.prefill_tokens_computed == 0
    assert attend(backend, kept[0], keep_prefix=True).prefix is None
    assert attend(backend, kept[3], keep_prefix=True).prefix is not None
    assert write(backend, kept[3]).cost.cached_tokens > write(backend, kept[0]).cost.cached_tokens


class Keys:
    """Keys and values of a size, which count how often somebody asks for it."""

    def __init__(self, size: int) -> None:
        self.size, self.asked = size, 0

    def storages(self) -> dict[int, int]:
        self.asked += 1
        return {id(self): self.size}


def test_many_old_maps_are_not_gone_through_again_and_again() -> None:
    memory, mass = PassMemory(100_000), np.zeros((1, 1, 5), dtype=np.float32)
    keys = [Keys(40_000) for _ in range(60)]
    for number, own in enumerate(keys):
        asked = prompt(f"Where is town number {number}?")
        found = AttentionMap("s", "t", asked.document_ids, mass.copy())
        memory.add(Pass(Wanted(asked, "question", "sum", 1, ()), found, (), 9, Beginning(asked, "", 1, own)))
        assert memory.bytes <= 100_000
    assert max(own.asked for own in keys) < 30
    wanted = [Wanted(prompt(f"Where is town number {number}?"), "question", "sum", 1, ()) for number in (30, 59)]
    old, new = (memory.find(one) for one in wanted)
    assert old is not None and old.beginning is None, "maps outlive keys and values"
    assert new is not None and new.beginning is not None


def test_a_call_that_was_shortened_says_so_and_one_that_the_method_shortened_does_not() -> None:
    backend = RememberingBackend(tiny_backend())
    first = attend(backend, prompt(), keep_prefix=True)
    assert first.cost.own_work
    handed = write(backend, prompt(), prefix=first.prefix)
    assert handed.cost.cached_tokens > 0 and handed.cost.own_work
    for later in (attend(backend, prompt("Which river?")), write(backend, prompt("Which hill?"))):
        assert later.cost.cached_tokens > 0 and later.cost.remembered_calls == 1
    assert write(backend, prompt(texts=("Another one altogether.",))).cost.own_work


def test_use_keeps_a_pass_alive() -> None:
    trial = RememberingBackend(tiny_backend())
    kept = [prompt(texts=tuple(f"{i}: {text}" for text in TEXTS)) for i in "abc"]
    attend(trial, kept[0])
    backend = RememberingBackend(tiny_backend(), memory_bytes=int(2.5 * trial.remembered_bytes))
    attend(backend, kept[0])
    attend(backend, kept[1])
    write(backend, kept[0])
    attend(backend, kept[2])
    assert attend(backend, kept[0], keep_prefix=True).prefix is not None
    assert attend(backend, kept[1], keep_prefix=True).prefix is None


def test_too_little_memory_remembers_maps_or_nothing() -> None:
    expected = attend(tiny_backend(), prompt())
    for limit in (0, 20_000):
        backend = RememberingBackend(tiny_backend(), memory_bytes=limit)
        for _ in range(2):
            found = attend(backend, prompt(), keep_prefix=True)
            assert_same_map(found.map, expected.map)
        assert backend.remembered_bytes <= limit
        assert found.cost.prefill_tokens_computed == (0 if limit else found.cost.prompt_tokens)


def test_closing_forgets_everything() -> None:
    inner = tiny_backend()
    backend = RememberingBackend(inner)
    attend(backend, prompt())
    assert backend.remembered_bytes > 0
    backend.close()
    assert backend.remembered_bytes == 0
    assert inner.pretrained is None
    with pytest.raises(ModelError, match="unloaded"):
        attend(backend, prompt())


def test_a_stop_is_heard_before_a_remembered_pass() -> None:
    backend, cancel = RememberingBackend(tiny_backend()), CancelToken()
    attend(backend, prompt())
    cancel.cancel()
    with pytest.raises(Cancelled):
        attend(backend, prompt(), cancel=cancel)


def test_threads_do_not_disturb_each_other() -> None:
    plain = tiny_backend()
    trial = RememberingBackend(tiny_backend())
    attend(trial, prompt())
    backend = RememberingBackend(tiny_backend(), memory_bytes=2 * trial.remembered_bytes)
    questions = [f"Where is town number {i % 3}?" for i in range(6)]
    expected = {question: attend(plain, prompt(question)) for question in set(questions)}
    texts = {question: write(plain, prompt(question)).text for question in set(questions)}
    ready = threading.Barrier(3)

    def work(place: int) -> None:
        ready.wait(30)
        for question in questions[place:] + questions[:place]:
            assert_same_map(attend(backend, prompt(question)).map, expected[question].map)
            assert write(backend, prompt(question)).text == texts[question]

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert backend.remembered_bytes <= 2 * trial.remembered_bytes


class Writer:
    """A backend that only writes."""

    name, model, window, capabilities = "writer", "writer", 100, frozenset({"generate"})

    def __init__(self) -> None:
        within = ScriptedBackend()
        self.generate, self.render, self.count_tokens = within.generate, within.render, within.count_tokens

    def close(self) -> None:
        """Nothing to free."""


def test_a_backend_without_attention_stays_as_it_is() -> None:
    writer = Writer()
    assert isinstance(writer, Backend)
    assert remembering(writer) is writer
    assert not isinstance(remembering(writer), ScoringBackend)


@pytest.mark.parametrize("make", [tiny_backend, ScriptedBackend])
def test_it_is_a_backend_like_the_one_within(make: Callable[[], InspectableBackend]) -> None:
    inner = make()
    backend = remembering(inner)
    assert isinstance(backend, RememberingBackend)
    assert isinstance(backend, InspectableBackend)
    for name in ("name", "model", "window", "capabilities", "layers", "heads"):
        assert getattr(backend, name) == getattr(inner, name)
    assert backend.render(prompt()) == inner.render(prompt())
    assert backend.count_tokens("one two") == inner.count_tokens("one two")
    [found] = backend.log_likelihood([prompt()], target="question", cancel=CancelToken())
    [expected] = inner.log_likelihood([prompt()], target="question", cancel=CancelToken())
    assert found.logprob == pytest.approx(expected.logprob)
    assert_same_map(attend(backend, prompt()).map, attend(inner, prompt()).map)
    assert attend(backend, prompt()).cost.prefill_tokens_computed == 0


def test_what_is_moved_remembers_nothing_of_the_old_device() -> None:
    inner = tiny_backend()
    backend = RememberingBackend(inner)
    attend(backend, prompt())
    pair = ComposedBackend(ScriptedBackend(), backend)
    assert isinstance(pair, Movable) and backend.remembered_bytes > 0
    pair.move("meta")  # the writer lies elsewhere and stays there
    assert inner.device == "meta" and {parameter.device.type for parameter in inner.pretrained.parameters()} == {"meta"}
    assert backend.remembered_bytes == 0
