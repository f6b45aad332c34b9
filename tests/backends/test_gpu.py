"""The same on a GPU as on the processor, and a GPU whose memory is really too small. Needs a CUDA device: -m gpu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from mdqa.backends.base import GenerationRequest, Steering
from mdqa.backends.hf import TransformersBackend
from mdqa.cancellation import CancelToken
from tests.backends.contract import CHECKS, DOCUMENTS, prompt
from tests.tiny import CONFIGS, tiny_backend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
DEVICE = "cuda"


@pytest.fixture(params=CONFIGS)
def both(request: pytest.FixtureRequest) -> tuple[TransformersBackend, TransformersBackend]:
    """A model on the processor, and the same one that was moved to the GPU."""
    there = tiny_backend(request.param)
    there.move(DEVICE)
    return tiny_backend(request.param), there


@pytest.mark.parametrize("check", CHECKS)
def test_the_contract(check: Any, both: tuple[TransformersBackend, TransformersBackend]) -> None:
    check("hf", both[1])


def test_the_same_attention(both: tuple[TransformersBackend, TransformersBackend]) -> None:
    seen = [
        b.attend(prompt(*DOCUMENTS), stage="s", title="S", cancel=CancelToken(), retrieval_heads=((1, 0),))
        for b in both
    ]
    here, there = (attention.map for attention in seen)
    np.testing.assert_allclose(there.mass, here.mass, atol=2e-4)
    assert here.heat is not None and there.heat is not None
    np.testing.assert_allclose(there.heat.weights, here.heat.weights, atol=2e-4)


def test_the_same_replies_and_likelihoods(both: tuple[TransformersBackend, TransformersBackend]) -> None:
    requests = [GenerationRequest(prompt(document), max_new_tokens=6) for document in DOCUMENTS]
    here, there = ([reply.text for reply in b.generate(requests, cancel=CancelToken())] for b in both)
    assert there == here
    prompts = [request.prompt for request in requests]
    scores = [[s.mean for s in b.log_likelihood(prompts, target="question", cancel=CancelToken())] for b in both]
    assert scores[1] == pytest.approx(scores[0], abs=1e-3)


@pytest.mark.parametrize("delta", [0.0, 4.0])
def test_the_same_steering(delta: float, both: tuple[TransformersBackend, TransformersBackend]) -> None:
    request = GenerationRequest(prompt(*DOCUMENTS), max_new_tokens=6)
    steering = Steering(documents=("b",), delta=delta)
    here, there = (b.generate([request], cancel=CancelToken(), steering=steering)[0].text for b in both)
    assert there == here
    if delta == 0:
        assert there == both[1].generate([request], cancel=CancelToken())[0].text


@pytest.fixture
def little_memory() -> Iterator[Any]:
    """A function that lets this process take so many more bytes of the GPU than it has now."""
    total = torch.cuda.get_device_properties(0).total_memory

    def leave(more: int) -> None:
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)

    yield leave
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_memory_that_is_really_too_small(little_memory: Any) -> None:
    requests = [GenerationRequest(prompt(*DOCUMENTS[: 1 + i % 4]), max_new_tokens=4) for i in range(256)]
    backend = tiny_backend()
    backend.move(DEVICE)
    known = [reply.text for reply in backend.generate(requests, cancel=CancelToken())]
    notices: list[str] = []
    for megabytes in (256, 128, 64, 32, 16, 8):  # what a batch takes depends on the kernels
        little_memory(megabytes * 2**20)
        assert [reply.text for reply in backend.generate(requests, cancel=CancelToken())] == known
        notices = backend.take_notices()
        if notices:
            break
    assert notices and "did not hold everything at once" in notices[0]
