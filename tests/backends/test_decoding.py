"""Many replies at once, in groups that begin alike: the same replies as one by one, with less computed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch

from mdqa.backends.base import GenerationRequest, Likelihood
from mdqa.backends.decoding import Job, PaddedBatch
from mdqa.backends.hf import TransformersBackend
from mdqa.backends.prefix import Prefix
from mdqa.backends.windows import layer_windows
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import Document, Generation
from tests.tiny import CONFIGS, tiny_backend, tiny_model

ROLES = [
    parse_template(role, f"### system\n{text}\n### user\nQuestion: {{{{question}}}}\n\n{{{{documents}}}}\n\nAnswer:")
    for role, text in (("a", "You grade what helps to answer. " * 4), ("b", "You look for whatever differs here. " * 6))
]
TEXTS = ("In the hills.", "By the sea, where the water is deep and the boats lie.", "Up north. " * 12, "No.")


def prompts(roles: Sequence[int] = (0, 1), texts: Sequence[str] = TEXTS) -> list[Prompt]:
    """Every role asks about every text, as agents do."""
    return [
        ROLES[role].fill(
            question=question_segment("Where is it?"), documents=document_segments([Document(id="d", text=text)])
        )
        for role in roles
        for text in texts
    ]


def write(backend: TransformersBackend, given: Sequence[Prompt], tokens: Sequence[int] = (14,)) -> list[Generation]:
    lengths = itertools.cycle(tokens)
    requests = [GenerationRequest(prompt, next(lengths)) for prompt in given]
    return backend.generate(requests, cancel=CancelToken())


def texts(generations: Sequence[Generation]) -> list[str]:
    return [generation.text for generation in generations]


def computed(generations: Sequence[Generation] | Sequence[Likelihood]) -> int:
    return sum(generation.cost.prefill_tokens_computed for generation in generations)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_groups_give_the_replies_of_single_calls(architecture: str) -> None:
    backend = tiny_backend(architecture)
    together = write(backend, prompts(), (14, 3, 9))
    alone = [write(backend, [prompt], (tokens,))[0] for prompt, tokens in zip(prompts(), itertools.cycle((14, 3, 9)))]
    assert texts(together) == texts(alone)
    assert [g.cost.completion_tokens for g in together] == [g.cost.completion_tokens for g in alone]


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma2"])
def test_every_beginning_is_computed_once(architecture: str) -> None:
    backend = tiny_backend(architecture)
    rows = [backend.encoder.encode(prompt).ids for prompt in prompts()]
    groups = backend._engine._alike(rows, [1] * len(rows))
    assert [group.rows for group in groups] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert all(group.shared > 40 for group in groups)
    together = write(backend, prompts())
    assert computed(together) == sum(map(len, rows)) - sum(3 * group.shared for group in groups)
    assert [g.cost.cached_tokens == 0 for g in together] == [True, False, False, False] * 2
    assert [g.cost.prompt_tokens for g in together] == [len(row) for row in rows]


def test_a_small_budget_makes_batches_and_still_computes_beginnings_once() -> None:
    backend = tiny_backend()
    whole = write(backend, prompts())
    backend._engine.batch_tokens = 400
    rows = [backend.encoder.encode(prompt).ids for prompt in prompts()]
    batches = list(backend._engine.batches(rows, [14] * len(rows)))
    assert len(batches) > 2
    assert sorted(i for batch in batches for part in batch for i in part.rows) == list(range(8))
    for batch in batches:
        held = sum(
            part.shared + len(part.rows) * max(len(rows[i]) - part.shared + 14 for i in part.rows) for part in batch
        )
        assert held <= 400 or sum(len(part.rows) for part in batch) == 1
    split = write(backend, prompts())
    assert texts(split) == texts(whole)
    assert computed(split) == computed(whole)


def test_a_prefix_of_an_earlier_pass_is_used_by_every_group() -> None:
    backend = tiny_backend()
    attention = backend.attend(prompts([0])[2], stage="s", title="S", cancel=CancelToken(), keep_prefix=True)
    requests = [GenerationRequest(prompt, 14) for prompt in prompts()]
    with_prefix = backend.generate(requests, cancel=CancelToken(), prefix=attention.prefix)
    plain = write(backend, prompts())
    assert texts(with_prefix) == texts(plain)
    rows = [backend.encoder.encode(prompt).ids for prompt in prompts()]
    shared = backend._engine._alike(rows, [1] * len(rows))[0].shared
    assert computed(plain) - computed(with_prefix) >= shared
    before = [(keys.clone(), values.clone()) for keys, values in attention.prefix.layers]
    write(backend, prompts())
    for (keys, values), (kept_keys, kept_values) in zip(attention.prefix.layers, before, strict=True):
        assert torch.equal(keys, kept_keys)
        assert torch.equal(values, kept_values)


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_padded_rows_give_the_same_replies(architecture: str) -> None:
    """The way of models in which nothing can be shared, taken by a model that has both."""
    backend = tiny_backend(architecture)
    expected = texts(write(backend, prompts(), (14, 3, 9)))
    backend._engine.windows = None
    assert texts(write(backend, prompts(), (14, 3, 9))) == expected


def test_padded_rows_leave_when_they_are_done() -> None:
    backend = tiny_backend()
    backend._engine.windows = None
    ids = [tuple(backend.encoder.encode(prompt).ids) for prompt in prompts([0])]
    jobs = [Job(i, GenerationRequest(prompt), ids[i]) for i, prompt in enumerate(prompts([0]))]
    with torch.inference_mode():
        batch = PaddedBatch(backend._engine, jobs, None)
        whole = batch.decode([5, 6, 7, 8])
        batch.drop([1, 3])
        assert batch.order == [0, 2]
        assert batch.decode([9, 9]).shape == (2, whole.shape[1])


def test_layers_that_are_not_known_are_not_shared() -> None:
    config = tiny_model("gemma3").config
    assert layer_windows(config) == (24, None, 24, None)
    assert layer_windows(tiny_model("mistral").config) == (32,) * 4
    assert layer_windows(tiny_model("llama").config) == (None,) * 4
    config.layer_types = ["chunked_attention", "full_attention"] * 2
    assert layer_windows(config) is None


def test_a_stop_is_seen_between_the_passes_over_the_prompts() -> None:
    backend, cancel = tiny_backend(), CancelToken()
    backend._engine.batch_tokens = 400
    with pytest.raises(Cancelled):
        backend.generate(
            [GenerationRequest(prompt, 4) for prompt in prompts()], cancel=cancel, on_done=lambda i: cancel.cancel()
        )


def test_likelihoods_share_beginnings_too() -> None:
    backend = tiny_backend()
    given = [prompt.with_reply(reply) for prompt in prompts() for reply in ("yes, it is", "no")]
    together = backend.log_likelihood(given, target="reply", cancel=CancelToken())
    alone = [backend.log_likelihood([prompt], target="reply", cancel=CancelToken())[0] for prompt in given]
    for one, other in zip(together, alone, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-3)
        assert one.tokens == other.tokens
    assert computed(together) < 0.6 * computed(alone)
    for likelihood in together:
        cost = likelihood.cost
        assert cost.cached_tokens + cost.prefill_tokens_computed == cost.prompt_tokens
        assert min(cost.cached_tokens, cost.prefill_tokens_computed) >= 0


def test_nothing_is_kept_for_gradients() -> None:
    engine = tiny_backend()._engine
    assert all(parameter.requires_grad for parameter in engine.model.parameters())
    rows = [tuple(range(4, 60)), tuple(range(4, 70))]
    for _, step in engine.passes(rows, [1, 2], CancelToken().check):
        assert not step.logits.requires_grad
        assert not any(layer.keys.requires_grad for layer in step.cache.layers)


def test_a_prefix_with_too_few_layers_is_left_aside() -> None:
    backend = tiny_backend()
    attention = backend.attend(
        prompts()[0], stage="s", title="S", cancel=CancelToken(), until_layer=1, keep_prefix=True
    )
    assert isinstance(attention.prefix, Prefix)
    plain = write(backend, prompts())
    requests = [GenerationRequest(prompt, 14) for prompt in prompts()]
    given = backend.generate(requests, cancel=CancelToken(), prefix=attention.prefix)
    assert texts(given) == texts(plain)
    assert computed(given) == computed(plain)
