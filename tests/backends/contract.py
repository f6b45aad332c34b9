"""What every backend keeps, as checks of its name and a backend of it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, get_args

import numpy as np
import pytest

from mdqa.backends.base import (
    Attention,
    Backend,
    Capability,
    GenerationRequest,
    InspectableBackend,
    ScoringBackend,
)
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, PromptTooLong
from mdqa.prompting import Prompt, Segment, Turn, document_segments, question_segment
from mdqa.records import Document

QUESTION = "Which river flows through the town of Velden?"
DOCUMENTS = (
    Document(id="a", title="Bread", text="Rye bread keeps for a week. It is baked at night.", gold=False),
    Document(id="b", title="Velden", text="The river Ostra flows through the town of Velden.", gold=True),
    Document(id="c", title="Clock", text="The clock of Velden was built in 1712.", gold=False),
    Document(id="d", title="Moss", text="Moss grows on stones.", gold=False),
)


def prompt(*documents: Document) -> Prompt:
    segments = (*document_segments(documents), Segment("\n"), question_segment(QUESTION))
    return Prompt((Turn("system", (Segment("Answer."),)), Turn("user", segments)))


def keeps_its_promises(name: str, backend: Any) -> None:
    assert backend.name == name
    assert backend.capabilities <= set(get_args(Capability))
    assert backend.count_tokens("a river") >= 2
    assert DOCUMENTS[0].text in backend.render(prompt(*DOCUMENTS))
    protocols = {"generate": Backend, "likelihood": ScoringBackend, "attention": InspectableBackend}
    for capability, protocol in protocols.items():
        if capability in backend.capabilities:
            assert isinstance(backend, protocol)
            for method in (m for m in vars(protocol) if not m.startswith("_") and callable(getattr(protocol, m))):
                theirs, ours = signature(getattr(protocol, method)), signature(getattr(type(backend), method))
                assert list(ours.parameters) == list(theirs.parameters), f"{name}.{method}"


def generates_in_order_and_counts(name: str, backend: Any) -> None:
    done = list[int]()
    requests = [GenerationRequest(prompt(document), max_new_tokens=4) for document in DOCUMENTS[:2]]
    replies = backend.generate(requests, cancel=CancelToken(), on_done=done.append)
    assert sorted(done) == [0, 1]
    alone = [backend.generate([request], cancel=CancelToken())[0] for request in requests]
    assert [reply.text for reply in replies] == [reply.text for reply in alone]
    for reply in alone:
        assert reply.cost.llm_calls == 1
        assert 0 < reply.cost.completion_tokens <= 4
        assert reply.cost.prompt_tokens == reply.cost.cached_tokens + reply.cost.prefill_tokens_computed > 0


def refuses_what_is_too_long_and_stops(name: str, backend: Any) -> None:
    with pytest.raises(PromptTooLong):
        long = DOCUMENTS[0].model_copy(update={"text": "river " * (backend.window + 1)})
        backend.generate([GenerationRequest(prompt(long))], cancel=CancelToken())
    stopped = CancelToken()
    stopped.cancel()
    with pytest.raises(Cancelled):
        backend.generate([GenerationRequest(prompt(DOCUMENTS[0]), max_new_tokens=4)], cancel=stopped)


def scores_prompts_whatever_their_place(name: str, backend: Any) -> None:
    if "likelihood" not in backend.capabilities:
        pytest.skip(f"{name} gives no likelihood")
    prompts = [prompt(document) for document in DOCUMENTS]
    scores = [s.mean for s in backend.log_likelihood(prompts, target="question", cancel=CancelToken())]
    turned = [s.mean for s in backend.log_likelihood(prompts[::-1], target="question", cancel=CancelToken())]
    assert turned[::-1] == pytest.approx(scores, abs=1e-4)
    assert all(score < 0 for score in scores)


def shows_shares_of_attention(name: str, backend: Any) -> None:
    if "attention" not in backend.capabilities:
        pytest.skip(f"{name} shows no attention")

    def attend(**options: Any) -> Attention:
        shown: Attention = backend.attend(prompt(*DOCUMENTS[:2]), stage="s", title="S", cancel=CancelToken(), **options)
        return shown

    full, early = attend(), attend(until_layer=1)
    assert full.map.mass.shape == (backend.layers, backend.heads, 2)
    assert (full.map.mass >= 0).all()
    assert (full.map.mass.sum(axis=2) <= 1 + 1e-5).all()
    assert full.map.documents == ("a", "b")
    np.testing.assert_allclose(early.map.mass, full.map.mass[:2], atol=1e-5)
    assert early.cost.prefill_tokens_computed < full.cost.prefill_tokens_computed


CHECKS: tuple[Callable[[str, Any], None], ...] = (
    keeps_its_promises,
    generates_in_order_and_counts,
    refuses_what_is_too_long_and_stops,
    scores_prompts_whatever_their_place,
    shows_shares_of_attention,
)
