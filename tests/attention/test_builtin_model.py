"""Captured attention and likelihood on the built-in model against eager attention with output_attentions=True."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from mdqa.backends.embedded import ensure_model
from mdqa.benchmarks.examples import examples
from mdqa.cancellation import CancelToken
from mdqa.methods.answers import answer_prompt
from mdqa.prompting import Prompt
from mdqa.settings import Settings

pytestmark = pytest.mark.slow


def prompts() -> list[Prompt]:
    chosen = [e.question for e in examples()][:3]
    return [answer_prompt(q.question, q.documents) for q in chosen]


def test_built_in_model_equals_eager(builtin_backend):
    folder = ensure_model(Settings.from_environment().cache)
    eager = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    prompt = prompts()[0]
    captured = builtin_backend.attend(prompt, stage="s", title="S", cancel=CancelToken()).map.mass
    layout = builtin_backend.encoder.encode(prompt)
    with torch.inference_mode():
        output = eager(torch.tensor([layout.ids]), output_attentions=True)
    rows = slice(layout.question.first, layout.question.last)
    for layer, weights in enumerate(output.attentions):  # (1, H, T, T)
        mean = weights[0, :, rows].mean(1)
        expected = [mean[:, s.first : s.last].sum(-1).numpy() for s in layout.of_kind("document")]
        np.testing.assert_allclose(captured[layer], np.stack(expected, axis=-1), atol=1e-4)
    [likelihood] = builtin_backend.log_likelihood([prompt], target="question", cancel=CancelToken())
    logprobs = output.logits[0].log_softmax(-1)
    direct = sum(float(logprobs[i - 1, layout.ids[i]]) for i in range(rows.start, rows.stop))
    assert likelihood.logprob == pytest.approx(direct, abs=1e-2)


def test_likelihoods_of_a_batch_equal_those_alone(builtin_backend):
    together = builtin_backend.log_likelihood(prompts(), target="question", cancel=CancelToken())
    for prompt, result in zip(prompts(), together, strict=True):
        [alone] = builtin_backend.log_likelihood([prompt], target="question", cancel=CancelToken())
        assert result.logprob == pytest.approx(alone.logprob, abs=1e-2)
