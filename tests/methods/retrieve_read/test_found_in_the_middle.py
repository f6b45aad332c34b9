"""Found in the Middle on a small real transformer against a direct computation with eager attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mdqa.backends.hf import TransformersBackend
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.answers import answer_prompt
from mdqa.methods.base import Tools
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.method import RetrieveRead
from mdqa.records import Document, Question
from mdqa.retrieval.base import best_first
from mdqa.retrieval.found_in_the_middle import dummy_text
from mdqa.run import Outcome, begin, run_one
from mdqa.trace import BaseEvent, ModelCall
from tests.tiny import tiny_backend, tiny_model

ITEM = Question(
    id="q",
    question="Which river flows through Vienna?",
    documents=(
        Document(id="a", title="Graz", text="Graz lies on the Mur, a river."),
        Document(id="b", text="The Danube is the river that flows through Vienna."),
        Document(id="c", text="Bread is baked."),
    ),
)
CONFIG = RetrieveReadConfig(ranker="found_in_the_middle", max_new_tokens=4)


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return tiny_backend("llama")


@pytest.fixture(scope="module")
def outcome(backend: TransformersBackend) -> tuple[Outcome, list[ModelCall]]:
    events: list[BaseEvent] = []
    tools = Tools(backend)
    done = run_one(begin("retrieve_read", CONFIG, ITEM, tools), tools, sink=events.append)
    assert done.result.error is None
    return done, [event for event in events if isinstance(event, ModelCall)]


def eager(backend: TransformersBackend, documents: tuple[Document, ...]) -> list[float]:
    """Weight of the last token on each document: mean over its tokens, all heads and all four layers."""
    layout = backend.encoder.encode(answer_prompt(ITEM.question, documents))
    model = tiny_model("llama", attention="eager")
    with torch.inference_mode():
        attentions = model(torch.tensor([layout.ids]), output_attentions=True).attentions
    last = torch.stack([layer[0, :, -1] for layer in attentions]).double().mean(dim=(0, 1)).numpy()  # (T,)
    return [float(last[span.first : span.last].mean()) for span in layout.of_kind("document")]


def test_scores_are_what_eager_attention_gives(
    outcome: tuple[Outcome, list[ModelCall]], backend: TransformersBackend
) -> None:
    stage = outcome[0].result.stages[0]
    here = eager(backend, ITEM.documents)
    usual = []
    for place, document in enumerate(ITEM.documents):
        dummy = Document(id=document.id, text=dummy_text(ITEM.documents))
        usual.append(eager(backend, (*ITEM.documents[:place], dummy, *ITEM.documents[place + 1 :]))[place])
    expected = [a - b for a, b in zip(here, usual, strict=True)]
    got = {name: [scores[d].value for d in "abc"] for name, scores in stage.scores.items()}
    assert list(got) == ["attention", "dummy_attention", "found_in_the_middle"]
    assert got["attention"] == pytest.approx(here, abs=1e-6)
    assert got["dummy_attention"] == pytest.approx(usual, abs=1e-6)
    assert got["found_in_the_middle"] == pytest.approx(expected, abs=1e-6)
    assert stage.kept == tuple("abc"[index] for index in best_first(expected))
    assert "all 4 layers" in stage.note


def test_every_pass_is_a_call_and_reuses_what_stands_before_the_dummy(
    outcome: tuple[Outcome, list[ModelCall]],
) -> None:
    done, calls = outcome
    assert [(call.role, call.purpose) for call in calls] == [
        ("attention", "attention"),
        *[("dummy_attention", "attention")] * 3,
        ("answer", "generate"),
    ]
    first, *dummies = calls[:4]
    cached = [call.cost.cached_tokens for call in dummies]
    assert first.cost.cached_tokens == 0
    assert 0 < cached[0] < cached[1] < cached[2]
    assert done.result.cost.llm_calls == 5
    assert [attention_map.title for attention_map in done.maps] == [
        "Attention of the prompt's last token to the documents"
    ], "the dummies' maps are no evidence"
    assert done.maps[0].pool == "mean"
    np.testing.assert_allclose(
        done.maps[0].mass.mean(axis=(0, 1)),
        [done.result.stages[0].scores["attention"][d].value for d in "abc"],
        rtol=1e-5,
    )


def test_only_this_ranker_needs_attention() -> None:
    assert RetrieveRead.needs(CONFIG) == ("generate", "attention")
    assert RetrieveRead.needs(RetrieveReadConfig(ranker="listwise")) == ("generate",)

    class GenerationOnly(ScriptedBackend):
        capabilities = frozenset({"generate"})

    tools = Tools(GenerationOnly())
    result = run_one(begin("retrieve_read", CONFIG, ITEM, tools), tools).result
    assert result.error is not None
    assert result.error.type == "CapabilityError"


def test_it_says_how_many_layers_count() -> None:
    tools = Tools(ScriptedBackend(layers=20))
    result = run_one(begin("retrieve_read", CONFIG, ITEM.with_documents(ITEM.documents[:1]), tools), tools).result
    assert result.stages[0].note == (
        "Mean weight per token over all heads of the last 16 of 20 layers. It re-orders only; no attention is changed."
    )
