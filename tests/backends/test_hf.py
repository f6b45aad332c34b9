"""The transformers backend on tiny models: identities that hold whatever the weights are."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import torch

from mdqa.backends.base import GenerationRequest, Steering
from mdqa.backends.hf import TransformersBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ConfigError, ModelError, PromptTooLong
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import Document
from tests.tiny import CONFIGS, tiny_backend, tiny_model, tiny_tokenizer

TEMPLATE = parse_template(
    "t", "### system\nAnswer briefly.\n### user\n{{documents}}\n\nQuestion: {{question}}\nAnswer:"
)


def prompt(question: str = "Where is it?", texts: tuple[str, ...] = ("In the hills.", "By the sea.", "Up north.")):
    documents = [Document(id=f"d{i}", title=f"T{i}", text=text) for i, text in enumerate(texts)]
    return TEMPLATE.fill(documents=document_segments(documents), question=question_segment(question))


def greedy(backend, prompts: list[Prompt], tokens: int = 12, **options):
    return backend.generate([GenerationRequest(p, tokens) for p in prompts], cancel=CancelToken(), **options)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_batch_equals_one_by_one_and_transformers_generate(architecture):
    backend = tiny_backend(architecture)
    prompts = [prompt(), prompt("Why?"), prompt("What is the name of the sea?", ("One.", "A much longer text " * 9))]
    together = greedy(backend, prompts)
    alone = [greedy(backend, [p])[0] for p in prompts]
    assert [g.text for g in together] == [g.text for g in alone]
    layout = backend.encoder.encode(prompts[0])
    model = tiny_model(architecture)
    out = model.generate(torch.tensor([layout.ids]), max_new_tokens=12, do_sample=False, eos_token_id=2, pad_token_id=3)
    expected = backend.encoder.tokenizer.decode(out[0, len(layout.ids) :], skip_special_tokens=True)
    assert together[0].text == expected


def test_shared_beginning_is_computed_once_and_counted():
    backend = tiny_backend()
    first, second = greedy(backend, [prompt("Where?"), prompt("Who is it?")])
    assert first.cost.cached_tokens == 0
    assert second.cost.cached_tokens > 40
    for generation in (first, second):
        cost = generation.cost
        assert cost.cached_tokens + cost.prefill_tokens_computed == cost.prompt_tokens
        assert cost.llm_calls == 1


def test_sampling_depends_on_the_seed_and_not_on_the_batch():
    backend = tiny_backend()
    requests = [GenerationRequest(prompt(), 10, temperature=1.0, seed=s) for s in (1, 2, 1)]
    a, b, c = backend.generate(requests, cancel=CancelToken())
    assert a.text == c.text != b.text
    assert backend.generate([requests[1]], cancel=CancelToken())[0].text == b.text


def test_streamed_pieces_make_the_text():
    backend, pieces = tiny_backend(), []
    [generation] = greedy(backend, [prompt()], on_text=lambda i, text: pieces.append(text))
    assert "".join(pieces) == generation.text
    assert len(pieces) > 1


def test_stop_string_ends_the_reply():
    backend = tiny_backend()
    whole = greedy(backend, [prompt()], 12)[0].text
    stop = whole[3:5]
    request = GenerationRequest(prompt(), 12, stop=(stop,))
    [cut] = backend.generate([request], cancel=CancelToken())
    assert cut.text == whole[: whole.find(stop)]
    assert cut.finish_reason == "stop"


def test_schema_is_enforced():
    schema = {
        "type": "object",
        "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 5}, "ok": {"type": "boolean"}},
        "required": ["score", "ok"],
        "additionalProperties": False,
    }
    backend = tiny_backend()
    requests = [GenerationRequest(prompt(q), 60, temperature=1.0, seed=i, schema=schema) for i, q in enumerate("abcd")]
    for generation in backend.generate(requests, cancel=CancelToken()):
        data = json.loads(generation.text)
        assert 0 <= data["score"] <= 5
        assert isinstance(data["ok"], bool)


def test_stop_takes_effect_between_tokens():
    backend, cancel = tiny_backend(), CancelToken()
    request = GenerationRequest(prompt(), 3000)
    seen: list[str] = []

    def on_text(_: int, text: str) -> None:
        seen.append(text)
        if len(seen) == 3:
            cancel.cancel()

    with pytest.raises(Cancelled):
        backend.generate([request], cancel=cancel, on_text=on_text)
    assert len(seen) == 3


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "mistral"])
def test_likelihood_equals_a_direct_sum_of_log_softmax(architecture):
    backend = tiny_backend(architecture)
    prompts = [prompt("Where is it?"), prompt("Why?", ("Only this one document, which is longer than the rest.",))]
    results = backend.log_likelihood(prompts, target="question", cancel=CancelToken())
    for p, result in zip(prompts, results, strict=True):
        layout = backend.encoder.encode(p)
        with torch.inference_mode():
            logprobs = tiny_model(architecture)(torch.tensor([layout.ids])).logits[0].float().log_softmax(-1)
        span = layout.question
        direct = sum(float(logprobs[i - 1, layout.ids[i]]) for i in range(span.first, span.last))
        assert result.logprob == pytest.approx(direct, abs=1e-3)
        assert result.tokens == span.last - span.first


def test_likelihood_of_a_begun_reply():
    backend = tiny_backend()
    yes, no = (prompt().with_reply(r) for r in ("yes", "no"))
    first, second = backend.log_likelihood([yes, no], target="reply", cancel=CancelToken())
    assert first.logprob != second.logprob
    with pytest.raises(ConfigError, match="no reply"):
        backend.log_likelihood([prompt()], target="reply", cancel=CancelToken())


def test_prompts_that_differ_in_the_last_token_only_are_one_pass():
    """Three replies of one token after the same text; a longer one and another text stay rows of their own."""
    backend = tiny_backend()
    short = [prompt().with_reply(reply) for reply in "ABC"]
    prompts = [short[0], prompt().with_reply("A whole sentence"), short[1], prompt("Why?").with_reply("A"), short[2]]
    done: list[int] = []
    together = backend.log_likelihood(prompts, target="reply", cancel=CancelToken(), on_done=done.append)
    assert sorted(done) == list(range(5))
    for p, found in zip(prompts, together, strict=True):
        [alone] = backend.log_likelihood([p], target="reply", cancel=CancelToken())
        assert found.logprob == pytest.approx(alone.logprob, abs=1e-4)
        assert found.tokens == alone.tokens
        assert found.cost.prompt_tokens == found.cost.cached_tokens + found.cost.prefill_tokens_computed
    assert [found.cost.prefill_tokens_computed == 0 for found in together] == [False, False, True, False, True]
    assert len({found.logprob for found in together}) == 5


def test_permuted_prompts_give_permuted_likelihoods():
    backend = tiny_backend()
    prompts = [prompt(q) for q in ("Where?", "Who was it then?", "What?")]
    forward = backend.log_likelihood(prompts, target="question", cancel=CancelToken())
    backward = backend.log_likelihood(prompts[::-1], target="question", cancel=CancelToken())
    np.testing.assert_allclose([r.logprob for r in forward], [r.logprob for r in backward[::-1]], atol=1e-4)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_steered_rows_from_the_kept_pass_equal_the_full_recomputation(architecture):
    backend = tiny_backend(architecture)
    attention = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), keep_prefix=True)
    for rows in ("question", "question_to_end", "question_to_end_and_generated"):
        steering = Steering(("d1",), 4.0, rows)
        fresh = greedy(backend, [prompt()], steering=steering)[0]
        reused = greedy(backend, [prompt()], steering=steering, prefix=attention.prefix)[0]
        assert reused.text == fresh.text
        assert reused.cost.cached_tokens == backend.encoder.encode(prompt()).question.first


def test_steering_by_zero_is_off_and_a_strong_one_is_not():
    backend = tiny_backend()
    plain = greedy(backend, [prompt()])[0].text
    assert greedy(backend, [prompt()], steering=Steering(("d1",), 0.0))[0].text == plain
    strong = Steering(("d1",), 12.0, "question_to_end_and_generated")
    assert greedy(backend, [prompt()], steering=strong)[0].text != plain
    assert greedy(backend, [prompt()])[0].text == plain  # nothing is left behind


def test_two_threads_do_not_disturb_each_other():
    backend = tiny_backend()
    steering = Steering(("d1",), 12.0, "question_to_end_and_generated")
    expected = (greedy(backend, [prompt()])[0].text, greedy(backend, [prompt()], steering=steering)[0].text)
    results: list[tuple[str, str]] = []

    def work() -> None:
        for _ in range(3):
            plain = greedy(backend, [prompt()])[0].text
            results.append((plain, greedy(backend, [prompt()], steering=steering)[0].text))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 6


def test_too_long_prompts_are_refused_with_the_numbers():
    backend = tiny_backend()
    with pytest.raises(PromptTooLong, match=r"4,096"):
        greedy(backend, [prompt(texts=("word " * 6000,))])


def test_heads_out_of_range_are_refused():
    backend = tiny_backend()
    with pytest.raises(ConfigError, match="head 9-0 does not exist"):
        backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), retrieval_heads=[(9, 0)])


class Exhausted:
    """A model that runs out of memory in every pass."""

    def __init__(self, model):
        self.config, self.generation_config = model.config, model.generation_config

    def __call__(self, **_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def test_out_of_memory_says_what_to_do():
    backend = TransformersBackend(Exhausted(tiny_model("llama")), tiny_tokenizer(), model_name="tiny")
    with pytest.raises(ModelError, match=r"not enough memory on cpu .* fewer or shorter documents"):
        greedy(backend, [prompt()])
