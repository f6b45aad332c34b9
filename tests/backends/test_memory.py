"""A device whose memory does not hold what is computed at once: smaller batches, then words."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mdqa.attention.layout import PromptEncoder
from mdqa.backends.base import GenerationRequest
from mdqa.backends.hf import TransformersBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import OutOfMemory
from mdqa.prompting import Prompt, Segment, Turn
from tests.tiny import tiny_model, tiny_tokenizer


def small_device(most: int) -> TransformersBackend:
    """A tiny model on a device that holds passes of ``most`` tokens at once."""
    model = tiny_model("llama")

    def refuse(module: Any, args: Any, named: dict[str, Any]) -> None:
        ids = named["input_ids"]
        if ids.numel() > most:
            raise torch.OutOfMemoryError(f"tried to allocate {ids.numel()} tokens")

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    return TransformersBackend(model, tiny_tokenizer(), model_name="tiny")


PROMPTS = [
    Prompt((Turn("user", (Segment(f"{i} words: {'word ' * (20 + i % 2)}"), Segment(f"{i} or what?", "question"))),))
    for i in range(6)
]
LARGE = 10**6
ONE = 10 + max(len(PromptEncoder(tiny_tokenizer()).encode(prompt).ids) for prompt in PROMPTS)
"""Tokens that hold any of the prompts, and no two of the longer ones."""


def test_replies_are_the_same_in_smaller_batches() -> None:
    requests = [GenerationRequest(prompt, max_new_tokens=5) for prompt in PROMPTS]
    cancel, done, shown = CancelToken(), list[int](), dict[int, str]()
    backend = small_device(ONE)
    before = backend._engine.pass_budget
    found = backend.generate(
        requests,
        cancel=cancel,
        on_done=done.append,
        on_text=lambda i, text: shown.__setitem__(i, shown.get(i, "") + text),
    )
    assert backend._engine.pass_budget < before  # it happened
    assert "did not hold everything at once" in backend.take_notices()[0]
    assert backend.take_notices() == []
    assert [reply.text for reply in found] == [r.text for r in small_device(LARGE).generate(requests, cancel=cancel)]
    assert sorted(done) == list(range(6))
    assert [shown.get(i, "") for i in range(6)] == [reply.text for reply in found]


def test_likelihoods_are_the_same_in_smaller_batches() -> None:
    done: list[int] = []
    backend = small_device(ONE)
    before = backend._engine.pass_budget
    found = backend.log_likelihood(PROMPTS, target="question", cancel=CancelToken(), on_done=done.append)
    assert backend._engine.pass_budget < before
    known = small_device(LARGE).log_likelihood(PROMPTS, target="question", cancel=CancelToken())
    assert [f.logprob for f in found] == pytest.approx([k.logprob for k in known], abs=1e-4)
    assert sorted(done) == list(range(6))


def test_what_does_not_fit_alone_is_an_error_in_words() -> None:
    backend = small_device(20)
    with pytest.raises(OutOfMemory, match="not enough memory on cpu"):
        backend.generate([GenerationRequest(PROMPTS[5], max_new_tokens=2)], cancel=CancelToken())
    with pytest.raises(OutOfMemory, match="fewer or shorter documents"):
        backend.log_likelihood(PROMPTS, target="question", cancel=CancelToken())
