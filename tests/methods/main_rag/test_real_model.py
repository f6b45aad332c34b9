"""The Judge's log-odds on small real transformers against the model's own logits."""

from __future__ import annotations

import pytest
import torch

from mdqa.backends.hf import TransformersBackend
from mdqa.methods.main_rag.method import judge_prompt
from tests.tiny import tiny_backend, tiny_model

from .helpers import QUESTION, Judged, run_main_rag


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def backend(request: pytest.FixtureRequest) -> TransformersBackend:
    return tiny_backend(request.param)


@pytest.fixture(scope="module")
def run(backend: TransformersBackend) -> Judged:
    run = run_main_rag(backend=backend, max_new_tokens=5)
    assert run.result.error is None
    return run


def predicted(run: Judged) -> dict[str, str]:
    return {o.documents[0]: o.answer for o in run.result.opinions if o.role == "predictor" and o.answer}


def direct(backend: TransformersBackend, document: str, answer: str, reply: str) -> float:
    """log p(reply) by one pass of a plain model over the whole prompt."""
    prompt = judge_prompt(QUESTION.question, QUESTION.document(document), answer, "factoid").with_reply(reply)
    layout = backend.encoder.encode(prompt)
    model = tiny_model(backend.model.removeprefix("tiny-"), attention="eager")
    with torch.inference_mode():
        logprobs = model(torch.tensor([layout.ids])).logits[0].double().log_softmax(-1)
    return sum(float(logprobs[i - 1, layout.ids[i]]) for i in range(layout.reply.first, layout.reply.last))


def test_log_odds_are_those_of_the_models_own_logits(run: Judged, backend: TransformersBackend) -> None:
    answers = predicted(run)
    assert len(answers) >= 2, "a tiny model writes something for most documents"
    for document, answer in answers.items():
        expected = direct(backend, document, answer, "Yes") - direct(backend, document, answer, "No")
        assert run.log_odds[document] == pytest.approx(expected, abs=1e-3)
    assert len({round(value, 6) for value in run.log_odds.values() if value is not None}) > 1


def test_permuting_the_documents_permutes_the_log_odds(run: Judged, backend: TransformersBackend) -> None:
    other = run_main_rag(QUESTION.with_documents(QUESTION.documents[::-1]), backend=backend, max_new_tokens=5)
    for document, value in run.log_odds.items():
        assert other.log_odds[document] == (None if value is None else pytest.approx(value, abs=1e-3))
