"""The signals on a small real transformer against a direct computation with eager attention."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from mdqa.attention.layout import Layout
from mdqa.backends.hf import TransformersBackend
from mdqa.backends.prefix import Prefix
from mdqa.methods.base import Tools
from mdqa.methods.duquad.agents import agent_prompt, likelihood_prompt
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.prompting import Prompt
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall
from tests.tiny import tiny_backend, tiny_model

from .helpers import QUESTION, Run, WordEncoder, run_duquad

SHORT = {"agent_max_tokens": 16, "score_max_tokens": 8, "judge_max_tokens": 16}


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return tiny_backend("llama")


@pytest.fixture(scope="module")
def run(backend: TransformersBackend) -> Run:
    return run_duquad(backend=backend, **SHORT)


def token_attention(prompt: Prompt, backend: TransformersBackend) -> tuple[Layout, np.ndarray]:
    """Attention of the question's rows, mean over rows and summed over layers and heads, per token (T,)."""
    layout = backend.encoder.encode(prompt)
    model = tiny_model("llama", attention="eager")
    with torch.inference_mode():
        attentions = model(torch.tensor([layout.ids]), output_attentions=True).attentions
    rows = slice(layout.question.first, layout.question.last)
    stacked = torch.stack([layer[0, :, rows].mean(dim=1) for layer in attentions])  # (L, H, T)
    return layout, stacked.sum(dim=(0, 1)).numpy().astype(np.float64)


def test_a_model_that_writes_nonsense_still_gives_a_complete_run(run: Run) -> None:
    assert run.result.status == "ok", run.result.error
    assert [stage.name for stage in run.result.stages][-1] == "judge"
    assert run.result.parse_failures >= 2
    assert run.result.fallbacks >= 2


def test_semantic_relevance_is_the_cosine(run: Run) -> None:
    vectors = WordEncoder().encode([QUESTION.question, *(f"{d.title}\n{d.text}" for d in QUESTION.documents)])
    expected = [float(np.dot(vectors[0], vector)) for vector in vectors[1:]]
    assert list(run.values("structural_fusion", "sim").values()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("restriction", [False, True])
def test_structural_inference_is_the_mean_log_softmax(restriction: bool, backend: TransformersBackend) -> None:
    run = run_duquad(backend=backend, weight_cont=0, ppl_restriction=restriction, **SHORT)
    model = tiny_model("llama", attention="eager")
    for document in QUESTION.documents:
        layout = backend.encoder.encode(likelihood_prompt(QUESTION, document, restriction=restriction))
        with torch.inference_mode():
            logprobs = torch.log_softmax(model(torch.tensor([layout.ids])).logits[0].double(), dim=-1)
        tokens = range(layout.question.first, layout.question.last)
        expected = sum(float(logprobs[i - 1, layout.ids[i]]) for i in tokens) / len(tokens)
        assert run.values("structural_fusion", "ppl")[document.id] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["token_masked", "document", "relative", "plain"])
def test_attention_contrast_is_what_eager_attention_gives(kind: str, backend: TransformersBackend) -> None:
    run = run_duquad(backend=backend, contrast=kind, **SHORT)
    layout, question = token_attention(agent_prompt(QUESTION, QUESTION.documents, 5), backend)
    _, content_free = token_attention(agent_prompt(QUESTION, QUESTION.documents, 5, question="N/A"), backend)
    for span in layout.of_kind("document"):
        tokens = question[span.first : span.last] - content_free[span.first : span.last]
        if kind == "token_masked":
            tokens = tokens[tokens >= tokens.mean() - 2 * tokens.std()]
        asked, free = (attention[span.first : span.last].sum() for attention in (question, content_free))
        expected = {"relative": np.log(asked / free), "plain": asked}.get(kind, tokens.sum())
        got = run.values("structural_fusion", "cont")[str(span.document_id)]
        assert got == pytest.approx(float(expected), abs=1e-4)
    assert len(run.calls("content-free attention")) == (kind != "plain")


def test_documents_are_computed_once_for_both_passes_and_the_global_agent(run: Run) -> None:
    [first], [second], *_ = (run.calls("attention"), run.calls("content-free attention"))
    reply = run.calls("global_agent")[0]
    assert second.cost.cached_tokens > 0.6 * second.cost.prompt_tokens
    assert reply.cost.cached_tokens > 0.9 * reply.cost.prompt_tokens
    assert first.cost.prefill_tokens_computed == first.cost.prompt_tokens


def test_permuting_the_documents_permutes_sim_and_ppl(run: Run, backend: TransformersBackend) -> None:
    other = run_duquad(backend=backend, item=QUESTION.with_documents(QUESTION.documents[::-1]), **SHORT)
    for signal in ("sim", "ppl"):
        for document_id, value in run.values("structural_fusion", signal).items():
            assert other.values("structural_fusion", signal)[document_id] == pytest.approx(value, abs=1e-5)


def test_the_documents_keys_and_values_are_freed_after_the_agents(backend: TransformersBackend) -> None:
    tools, alive = Tools(backend, WordEncoder), {}

    def look(event: BaseEvent) -> None:
        if isinstance(event, ModelCall):
            alive[event.role] = sum(type(thing) is Prefix for thing in gc.get_objects())

    run_one(begin("duquad", DuQUADConfig(**SHORT), QUESTION, tools), tools, sink=look)
    assert alive["global_agent"] == 1
    assert alive["judge"] == 0
