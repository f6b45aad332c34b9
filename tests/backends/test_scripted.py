"""The scripted backend keeps the promises of the backend protocols."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from mdqa.backends.base import Backend, GenerationRequest, InspectableBackend, ScoringBackend, Steering
from mdqa.backends.scripted import KNOWN_WORD, NEW_WORD, ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ModelError, PromptTooLong
from mdqa.prompting import Prompt, Segment, Turn, document_segments, question_segment
from mdqa.records import Document

QUESTION = "Which river flows through the town of Velden?"
DOCUMENTS = (
    Document(id="a", title="Bread", text="Rye bread keeps for a week. It is baked at night."),
    Document(id="b", title="Velden", text="Velden is a town. The river Ostra flows through Velden every spring."),
    Document(id="c", title="Clocks", text="A town clock strikes every hour."),
)


def prompt(documents: tuple[Document, ...] = DOCUMENTS, question: str = QUESTION) -> Prompt:
    segments = (*document_segments(documents), Segment("\n\nQuestion: "), question_segment(question))
    return Prompt((Turn("system", (Segment("Answer from the documents."),)), Turn("user", segments)))


def generate(backend: ScriptedBackend, request: GenerationRequest, **options: object):
    return backend.generate([request], cancel=CancelToken(), **options)[0]  # type: ignore[arg-type]


def test_satisfies_the_protocols() -> None:
    backend = ScriptedBackend()
    assert isinstance(backend, Backend)
    assert isinstance(backend, ScoringBackend)
    assert isinstance(backend, InspectableBackend)


def test_extracts_from_the_best_document() -> None:
    reply = generate(ScriptedBackend(), GenerationRequest(prompt()))
    assert reply.text == "The river Ostra flows through Velden every spring."
    assert reply.finish_reason == "stop"
    assert reply.cost.completion_tokens == 8
    assert reply.cost.llm_calls == 1


def test_schema_is_followed_and_scores_scale_with_overlap() -> None:
    schema = {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 0, "maximum": 5},
            "share": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.1},
            "open": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "reasoning": {"type": "string", "maxLength": 10},
            "documents": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}, "maxItems": 5},
            "label": {"enum": ["no", "yes"]},
            "direct": {"type": "boolean"},
            "pairs": {"type": "array", "items": {"$ref": "#/$defs/pair"}, "minItems": 3, "maxItems": 3},
        },
        "$defs": {"pair": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}},
    }
    backend = ScriptedBackend()
    request = GenerationRequest(prompt(), max_new_tokens=200, schema=schema)
    good = json.loads(generate(backend, request).text)
    bad = json.loads(generate(backend, replace(request, prompt=prompt(DOCUMENTS[:1]))).text)
    assert set(good) == set(schema["properties"])  # type: ignore[arg-type]
    assert (good["score"], bad["score"]) == (4, 0)  # 4 of 5 long words are in the document ("which" is not)
    assert good["share"] == pytest.approx(0.8)
    assert 0 < bad["open"] < good["open"] < 1
    assert good["documents"][0] == 2
    assert (good["label"], bad["label"]) == ("yes", "no")
    assert (good["direct"], bad["direct"]) == (True, False)
    assert len(good["reasoning"]) == 10
    assert len(good["pairs"]) == 3


def test_begun_reply_is_continued() -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    request = GenerationRequest(prompt().with_reply('{"answer": "'), schema=schema)
    reply = generate(ScriptedBackend(), request)
    assert json.loads(request.prompt.reply + reply.text)["answer"].startswith("The river Ostra")


def test_schema_that_cannot_be_followed_is_refused() -> None:
    with pytest.raises(ModelError, match="pattern"):
        generate(ScriptedBackend(), GenerationRequest(prompt(), schema={"type": "string", "pattern": "^x$"}))


def test_length_and_stop() -> None:
    backend = ScriptedBackend(["one two three four", "one two. three"])
    cut = generate(backend, GenerationRequest(prompt(), max_new_tokens=2))
    assert (cut.text, cut.finish_reason) == ("one two", "length")
    stopped = generate(backend, GenerationRequest(prompt(), stop=(".",)))
    assert (stopped.text, stopped.finish_reason) == ("one two", "stop")
    with pytest.raises(ModelError, match="2 replies"):
        generate(backend, GenerationRequest(prompt()))


def test_replies_from_a_function() -> None:
    backend = ScriptedBackend(lambda request: f"{len(request.prompt.document_ids)} documents")
    assert generate(backend, GenerationRequest(prompt())).text == "3 documents"


def test_streams_word_by_word_and_reports_each_request() -> None:
    pieces: list[tuple[int, str]] = []
    done: list[int] = []
    replies = ScriptedBackend(["a b", "c"]).generate(
        [GenerationRequest(prompt())] * 2,
        cancel=CancelToken(),
        on_text=lambda index, text: pieces.append((index, text)),
        on_done=done.append,
    )
    assert pieces == [(0, "a "), (0, "b"), (1, "c")]
    assert done == [0, 1]
    assert [reply.text for reply in replies] == ["a b", "c"]


def test_cancel_stops_between_tokens() -> None:
    backend = ScriptedBackend(["word " * 1000], delay_per_token=0.01)
    cancel = CancelToken()
    written: list[str] = []
    threading.Timer(0.1, cancel.cancel).start()
    began = time.perf_counter()
    with pytest.raises(Cancelled):
        backend.generate(
            [GenerationRequest(prompt(), max_new_tokens=1000)],
            cancel=cancel,
            on_text=lambda _, text: written.append(text),
        )
    assert time.perf_counter() - began < 5
    assert 0 < len(written) < 1000


def test_window_is_kept() -> None:
    backend = ScriptedBackend(window=60)
    with pytest.raises(PromptTooLong, match="60"):
        generate(backend, GenerationRequest(prompt(), max_new_tokens=40))
    assert generate(backend, GenerationRequest(prompt(), max_new_tokens=2)).text


def test_likelihood_counts_known_words_and_permutes() -> None:
    backend = ScriptedBackend()
    prompts = [prompt((document,)) for document in DOCUMENTS]
    scores = backend.log_likelihood(prompts, target="question", cancel=CancelToken())
    turned = backend.log_likelihood(prompts[::-1], target="question", cancel=CancelToken())
    assert [s.logprob for s in turned] == [s.logprob for s in scores][::-1]
    assert max(scores, key=lambda s: s.mean) is scores[1]
    assert all(8 * NEW_WORD <= s.logprob <= 8 * KNOWN_WORD and s.tokens == 8 for s in scores)
    reply = backend.log_likelihood([prompt().with_reply("Ostra zebra")], target="reply", cancel=CancelToken())[0]
    assert reply.logprob == KNOWN_WORD + NEW_WORD
    with pytest.raises(ModelError, match="reply"):
        backend.log_likelihood([prompt()], target="reply", cancel=CancelToken())


def attend(backend: ScriptedBackend, item: Prompt, **options: object):
    return backend.attend(item, stage="s", title="S", cancel=CancelToken(), **options)  # type: ignore[arg-type]


def test_attention_is_a_share_and_finds_the_overlap() -> None:
    mass = attend(ScriptedBackend(layers=3, heads=2), prompt()).map.mass
    assert mass.shape == (3, 2, 3)
    assert mass.dtype == np.float32
    assert (mass > 0).all()
    assert (mass.sum(axis=2) <= 1).all()
    assert mass.mean(axis=(0, 1)).argmax() == 1
    empty = attend(ScriptedBackend(layers=3, heads=2), prompt(question="N/A")).map.mass
    assert (mass - empty).mean(axis=(0, 1)).argmax() == 1


def test_stopping_early_gives_the_beginning_of_the_full_pass() -> None:
    backend = ScriptedBackend()
    full, early = attend(backend, prompt()), attend(backend, prompt(), until_layer=1)
    assert np.array_equal(early.map.mass, full.map.mass[:2])
    assert early.cost.prefill_tokens_computed == -(-full.cost.prefill_tokens_computed // 2)
    with pytest.raises(ModelError, match="layer"):
        attend(backend, prompt(), until_layer=4)
    with pytest.raises(ModelError, match="head 3-0"):
        attend(backend, prompt(), until_layer=1, retrieval_heads=[(3, 0)])


def test_token_heat_adds_up_to_the_mass() -> None:
    attention = attend(ScriptedBackend(), prompt(), retrieval_heads=[(2, 1), (0, 3)])
    heat = attention.map.heat
    assert heat is not None
    for row, (layer, head) in enumerate(heat.heads):
        totals = np.bincount(heat.document, weights=heat.weights[row])
        assert totals == pytest.approx(attention.map.mass[layer, head], rel=1e-5)
    start, end = heat.spans[int(heat.weights[0].argmax())]
    hottest = heat.texts[heat.document[int(heat.weights[0].argmax())]][start:end]
    assert hottest.strip(".,():").lower() in QUESTION.lower()


def test_mean_pooling_divides_by_length() -> None:
    total, mean = attend(ScriptedBackend(), prompt()).map, attend(ScriptedBackend(), prompt(), pool="mean").map
    lengths = [len(segment.text.split()) for segment in document_segments(DOCUMENTS) if segment.document_id]
    assert np.allclose(mean.mass * lengths, total.mass)


def test_prefix_is_counted_as_reused() -> None:
    backend = ScriptedBackend()
    first = attend(backend, prompt(), keep_prefix=True)
    assert attend(backend, prompt()).prefix is None
    reply = generate(backend, GenerationRequest(prompt(question="Which bread?")), prefix=first.prefix)
    cost = reply.cost
    assert 0 < cost.cached_tokens < cost.prompt_tokens
    assert cost.cached_tokens + cost.prefill_tokens_computed == cost.prompt_tokens
    batch = backend.generate([GenerationRequest(prompt())] * 2, cancel=CancelToken())
    assert batch[0].cost.cached_tokens == 0
    assert batch[1].cost.prefill_tokens_computed == 1


def test_steering_by_zero_is_off_and_a_strong_one_moves_the_answer() -> None:
    backend, request = ScriptedBackend(), GenerationRequest(prompt())
    plain = generate(backend, request).text
    assert generate(backend, request, steering=Steering(("c",), 0.0)).text == plain
    assert generate(backend, request, steering=Steering(("c",), 9.0)).text == "A town clock strikes every hour."
    with pytest.raises(ModelError, match="one request"):
        backend.generate([request] * 2, cancel=CancelToken(), steering=Steering(("c",), 1.0))
