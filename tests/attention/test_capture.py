"""Captured attention against eager attention with output_attentions=True, on every architecture family."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mdqa.backends.base import GenerationRequest, Steering
from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import Document
from tests.tiny import CONFIGS, tiny_backend, tiny_model

TEMPLATE = parse_template("t", "### system\nAnswer.\n### user\n{{documents}}\n\nQuestion: {{question}}\nAnswer:")
DOCUMENTS = (
    Document(id="a", title="One", text="The river rises in the hills and runs north."),
    Document(id="b", title="", text="Where is the source of the river? It is in the hills."),
    Document(id="c", title="Drei", text="川は丘から北へ流れる。"),
    Document(id="d", title="One", text="The river rises in the hills and runs north."),
)


def prompt(question: str = "Where is the source of the river?", documents=DOCUMENTS) -> Prompt:
    return TEMPLATE.fill(documents=document_segments(documents), question=question_segment(question))


def eager_mass(architecture: str, layout) -> np.ndarray:
    """(L, H, D) from full eager attention matrices."""
    model = tiny_model(architecture, "eager")
    with torch.inference_mode():
        attentions = model(torch.tensor([layout.ids]), output_attentions=True).attentions
    question, spans = layout.question, layout.of_kind("document")
    rows = [a[0, :, question.first : question.last].mean(1) for a in attentions]  # (H, T) per layer
    return torch.stack([torch.stack([r[:, s.first : s.last].sum(-1) for s in spans], -1) for r in rows]).numpy()


@pytest.mark.parametrize("architecture", CONFIGS)
def test_equals_eager(architecture):
    backend = tiny_backend(architecture)
    captured = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken()).map
    expected = eager_mass(architecture, backend.encoder.encode(prompt()))
    assert captured.mass.shape == expected.shape == (4, 6, 4)
    np.testing.assert_allclose(captured.mass, expected, atol=1e-4)
    assert expected.std() > 1e-3  # the comparison would mean little if all heads were uniform


@pytest.mark.parametrize("architecture", CONFIGS)
def test_model_output_is_unchanged(architecture):
    backend = tiny_backend(architecture)
    ids = torch.tensor([backend.encoder.encode(prompt()).ids])
    with torch.inference_mode():
        ours = tiny_model(architecture)(ids).logits
        eager = tiny_model(architecture, "eager")(ids).logits
    torch.testing.assert_close(ours, eager, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_prefix_and_early_stop_give_the_same_scores(architecture):
    backend = tiny_backend(architecture)
    whole = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), keep_prefix=True)
    early = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), until_layer=1)
    assert early.map.mass.shape[0] == 2
    np.testing.assert_allclose(early.map.mass, whole.map.mass[:2], atol=1e-6)
    assert early.cost.prefill_tokens_computed == round(whole.cost.prefill_tokens_computed / 2)
    partial = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), until_layer=1, keep_prefix=True)
    shallow = backend.attend(
        prompt("N/A"), stage="s", title="S", cancel=CancelToken(), until_layer=1, prefix=partial.prefix
    )
    assert shallow.cost.cached_tokens > 0
    deep = backend.attend(prompt("N/A"), stage="s", title="S", cancel=CancelToken(), prefix=partial.prefix)
    assert deep.cost.cached_tokens == 0  # two layers of keys and values do not serve four
    np.testing.assert_allclose(shallow.map.mass, deep.map.mass[:2], atol=1e-5)
    other = prompt("N/A")
    fresh = backend.attend(other, stage="s", title="S", cancel=CancelToken())
    reused = backend.attend(other, stage="s", title="S", cancel=CancelToken(), prefix=whole.prefix)
    np.testing.assert_allclose(reused.map.mass, fresh.map.mass, atol=1e-5)
    assert reused.cost.cached_tokens > 0
    assert reused.cost.cached_tokens + reused.cost.prefill_tokens_computed == reused.cost.prompt_tokens


def test_masses_are_attention_of_documents_only():
    backend = tiny_backend("llama")
    mass = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken()).map.mass
    total = mass.sum(-1)
    assert (total > 0).all()
    assert (total < 1).all()


def test_token_heat_sums_to_the_document_mass():
    backend = tiny_backend("llama")
    result = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), retrieval_heads=[(1, 2), (3, 0)]).map
    assert result.heat is not None
    for row, (layer, head) in enumerate(result.heat.heads):
        for d in range(len(DOCUMENTS)):
            total = result.heat.weights[row, result.heat.document == d].sum()
            assert total == pytest.approx(result.mass[layer, head, d], abs=1e-5)
    start, end = result.heat.spans[0]
    assert result.heat.texts[0][start:end].strip() == "Document"[: end - start].strip()


class Sizes(TorchDispatchMode):
    """Notes the largest tensor that any operation gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        return result


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_nothing_of_size_tokens_by_tokens_is_allocated(architecture):
    """Neither by a pass that looks at all heads nor by a steered one; eager attention does, which proves the gauge."""
    backend = tiny_backend(architecture)
    long = prompt(documents=(Document(id="a", text="words and words " * 250),))
    ids = torch.tensor([backend.encoder.encode(long).ids])
    tokens = ids.shape[1]
    assert tokens > 1000
    with Sizes() as sizes:
        attention = backend.attend(
            long, stage="s", title="S", cancel=CancelToken(), keep_prefix=True, retrieval_heads=((0, 0), (3, 5))
        )
        request = GenerationRequest(long, max_new_tokens=2)
        steering = Steering(("a",), 2.0)
        backend.generate([request], cancel=CancelToken(), steering=steering)
        backend.generate([request], cancel=CancelToken(), steering=steering, prefix=attention.prefix)
    assert sizes.largest < tokens * tokens / 4
    with Sizes() as eager, torch.inference_mode():
        tiny_model(architecture, "eager")(ids)
    assert eager.largest >= tokens * tokens
