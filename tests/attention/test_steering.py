"""Steering and masking: identities that hold whatever the weights are, on every architecture family."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from mdqa.attention.capture import Probe, RowBias, attend_in_blocks, row_weights
from mdqa.attention.layout import Layout
from mdqa.attention.steering import row_bias
from mdqa.backends.base import GenerationRequest, Part, Steering
from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, document_segments, parse_template, question_segment
from mdqa.records import Document
from tests.tiny import CONFIGS, tiny_backend, tiny_model

TEMPLATE = parse_template("t", "### system\nAnswer.\n### user\n{{documents}}\n\nQuestion: {{question}}\nAnswer:")
DOCUMENTS = (
    Document(id="a", title="One", text="The river rises in the hills. It runs north."),
    Document(id="b", title="", text="Where is the source? It is in the hills."),
    Document(id="c", title="Drei", text="川は丘から北へ流れる。海は遠い。"),
)
ROWS = ("question", "question_to_end", "question_to_end_and_generated")
REFERENCE = "mdqa_test_reference"


def prompt(question: str = "Where is the source?") -> Prompt:
    return TEMPLATE.fill(documents=document_segments(DOCUMENTS), question=question_segment(question))


def reference(module, query, key, value, attention_mask, scaling, softcap=None, deleted=None, **_):
    """Eager attention written out, with keys deleted from the softmax of some rows and the rest renormalised."""
    heads = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(heads, 1), value.repeat_interleave(heads, 1)
    scores = query @ key.transpose(2, 3) * scaling
    scores = scores if softcap is None else torch.tanh(scores / softcap) * softcap
    weights = torch.softmax(scores + attention_mask, dim=-1)
    if deleted is not None:
        rows, keys = deleted
        weights[:, :, rows[:, None], keys] = 0.0
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return (weights @ value).transpose(1, 2).contiguous(), None


def reference_model(architecture: str):
    AttentionInterface.register(REFERENCE, reference)
    AttentionMaskInterface.register(REFERENCE, eager_mask)
    return tiny_model(architecture, REFERENCE)


def tokens_of(layout: Layout, *documents: str) -> Tensor:
    spans = [span for span in layout.of_kind("document") if span.document_id in documents]
    return torch.cat([torch.arange(span.first, span.last) for span in spans])


def logits(model, ids: Sequence[int], **options) -> Tensor:
    with torch.inference_mode():
        return model(torch.tensor([list(ids)]), **options).logits[0]


def steered(model, layout: Layout, bias: RowBias | None) -> Tensor:
    return logits(model, layout.ids, mdqa_probe=Probe(steering=bias))


def masses(model, layout: Layout, bias: RowBias | None, keys: Tensor) -> Tensor:
    """Attention of the question's rows to ``keys`` in the first layer (whose input no bias has touched), (H,)."""
    pooling = torch.zeros(len(layout.ids), 1)
    pooling[keys] = 1.0
    rows = torch.arange(layout.question.first, layout.question.last)
    probe = Probe(rows=rows, pooling=pooling, steering=bias)
    logits(model, layout.ids, mdqa_probe=probe)
    return probe.mass[0][:, 0]


def greedy(backend, steering: Steering | None = None, tokens: int = 10, **options):
    request = GenerationRequest(prompt(), tokens)
    return backend.generate([request], cancel=CancelToken(), steering=steering, **options)[0]


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_mask_equals_deleting_the_keys(architecture):
    backend, model, plain = tiny_backend(architecture), tiny_model(architecture), reference_model(architecture)
    layout = backend.encoder.encode(prompt())
    keys = tokens_of(layout, "a", "c")
    whole = logits(plain, layout.ids)
    for rows, last in (("question", layout.question.last), ("question_to_end", len(layout.ids))):
        expected = logits(plain, layout.ids, deleted=(torch.arange(layout.question.first, last), keys))
        for before_scale in (False, True):
            bias = row_bias(layout, ("a", "c"), -math.inf, rows=rows, before_scale=before_scale)
            torch.testing.assert_close(steered(model, layout, bias), expected, atol=1e-3, rtol=1e-4)
        assert (expected - whole).abs().max() > 0.01  # the mask matters


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_mask_of_a_documents_rows_equals_deleting_the_keys(architecture):
    backend, plain = tiny_backend(architecture), reference_model(architecture)
    layout = backend.encoder.encode(prompt())
    rows, keys = tokens_of(layout, "b", "c"), tokens_of(layout, "a")
    bias = row_bias(layout, ("a",), -math.inf, row_documents=("c", "b"))
    expected = logits(plain, layout.ids, deleted=(rows, keys))
    torch.testing.assert_close(steered(tiny_model(architecture), layout, bias), expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_masked_reply_equals_deleting_the_keys_for_every_written_token(architecture):
    backend, plain = tiny_backend(architecture), reference_model(architecture)
    layout = backend.encoder.encode(prompt())
    keys, ids = tokens_of(layout, "a"), list(layout.ids)
    for _ in range(8):
        rows = torch.arange(layout.question.first, len(ids))
        ids.append(int(logits(plain, ids, deleted=(rows, keys))[-1].argmax()))
    written = backend.encoder.tokenizer.decode(ids[len(layout.ids) :], skip_special_tokens=True)
    assert greedy(backend, Steering(("a",), -math.inf, ROWS[2]), 8).text == written


@pytest.mark.parametrize("kind", ["none", "bool", "float", "half"])
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_masked_weights_are_exactly_zero_under_every_kind_of_mask(kind, softcap):
    generator = torch.Generator().manual_seed(1)
    query, key = torch.randn(4, 9, 8, generator=generator), torch.randn(2, 9, 8, generator=generator)
    visible = torch.ones(9, 9, dtype=torch.bool).tril()
    if kind != "none":
        visible &= torch.ones(9, 9, dtype=torch.bool).triu(-3)  # a window of four
    dtype = torch.float16 if kind == "half" else torch.float32
    added = torch.zeros(9, 9, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    mask = {"none": None, "bool": visible}.get(kind, added)
    bias = torch.zeros(9).masked_fill(torch.arange(9) < 3, -math.inf)
    rows = torch.arange(9)
    weights = row_weights(query, key, rows, 0, mask, 0.35, softcap, bias)
    allowed = visible & (torch.arange(9) >= 3)
    assert (weights[:, ~allowed] == 0).all()
    assert (weights[:, allowed] > 0).all()
    # rows 0 to 2 see masked keys only: no weight at all, rather than weight on what they must not see
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).float().expand(4, 9))
    without = row_weights(query, key, rows, 0, mask, 0.35, softcap)[:, 3:] * allowed[3:]
    torch.testing.assert_close(weights[:, 3:], without / without.sum(-1, keepdim=True))


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "mistral"])
def test_a_document_that_may_not_see_itself_gives_no_nan(architecture):
    backend, model = tiny_backend(architecture), tiny_model(architecture)
    layout = backend.encoder.encode(prompt())  # longer than the window of gemma2: some rows see masked keys only
    bias = row_bias(layout, ("a", "b", "c"), -math.inf, row_documents=("a", "b", "c"))
    assert steered(model, layout, bias).isfinite().all()


@pytest.mark.parametrize("architecture", CONFIGS)
def test_zero_is_exactly_no_steering(architecture):
    backend, model = tiny_backend(architecture), tiny_model(architecture)
    layout = backend.encoder.encode(prompt())
    assert row_bias(layout, ("a",), 0.0) is None
    assert torch.equal(steered(model, layout, row_bias(layout, ("a",), 0.0)), logits(model, layout.ids))
    for rows in ROWS:
        zero, plain = greedy(backend, Steering(("a",), 0.0, rows)), greedy(backend)
        assert zero.text == plain.text
        assert zero.cost.model_copy(update={"seconds": 0}) == plain.cost.model_copy(update={"seconds": 0})


@pytest.mark.parametrize("before_scale", [False, True])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_mass_grows_with_the_bias(architecture, before_scale):
    backend, model = tiny_backend(architecture), tiny_model(architecture)
    layout = backend.encoder.encode(prompt("Where?"))  # short, so that every row's window reaches the last document
    keys = tokens_of(layout, "c")

    def mass(delta: float) -> Tensor:
        return masses(model, layout, row_bias(layout, ("c",), delta, before_scale=before_scale), keys)

    found = [mass(d) for d in (-math.inf, -8.0, -1.0, 0.0, 0.5, math.log(10), math.log(13), 8.0, 80.0)]
    assert (found[0] == 0).all()
    assert all((more > less).all() for less, more in itertools.pairwise(found))
    assert (found[-1] > 0.99).all()


def test_the_weight_is_multiplied_by_the_exponential_of_the_bias():
    generator = torch.Generator().manual_seed(2)
    query, key = torch.randn(4, 6, 8, generator=generator), torch.randn(2, 6, 8, generator=generator)
    rows, chosen = torch.arange(6), torch.tensor([0, 1, 0, 0, 1, 0])
    plain = row_weights(query, key, rows, 0, None, 0.5, None)
    more = row_weights(query, key, rows, 0, None, 0.5, None, chosen * math.log(13))
    expected = plain * torch.where(chosen.bool(), 13.0, 1.0)
    torch.testing.assert_close(more, expected / expected.sum(-1, keepdim=True))


@pytest.mark.parametrize("architecture", CONFIGS)
def test_observed_rows_are_shown_with_the_bias_only_where_they_are_steered(architecture):
    backend, model = tiny_backend(architecture), tiny_model(architecture)
    layout = backend.encoder.encode(prompt())
    keys = tokens_of(layout, "a")
    bias = row_bias(layout, ("a",), -math.inf, row_documents=("b",))
    torch.testing.assert_close(masses(model, layout, bias, keys), masses(model, layout, None, keys))


def test_steering_in_blocks_of_rows_equals_steering_at_once():
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(n, 40, 8, generator=generator) for n in (6, 2, 2))
    rows, bias = torch.arange(3, 40, 2), torch.randn(40, generator=generator)

    def attended(elements: int) -> tuple[list[int], Tensor]:
        blocks = list(attend_in_blocks(query, key, value, rows, 0, None, 0.4, 5.0, bias, elements=elements))
        assert torch.equal(torch.cat([block for block, _ in blocks]), rows)
        return [len(block) for block, _ in blocks], torch.cat([out for _, out in blocks])

    sizes, whole = attended(1 << 26)
    assert sizes == [19]
    for elements, largest in ((1, 1), (6 * 40 * 4, 4), (6 * 40 * 7 + 5, 7)):
        sizes, pieces = attended(elements)
        assert max(sizes) == largest  # never more scores than allowed, but for single rows
        torch.testing.assert_close(pieces, whole, atol=1e-6, rtol=1e-6)


def blocks_of(layout: Layout) -> dict[str, str]:
    return {str(s.document_id): layout.text[s.start : s.end] for s in layout.of_kind("document")}


def test_parts_that_cover_a_document_are_the_document():
    backend = tiny_backend()
    layout = backend.encoder.encode(prompt())
    for document, block in blocks_of(layout).items():
        whole = row_bias(layout, (document,), 2.0)
        for cuts in ((0, len(block)), (0, 5, 9, len(block)), (0, 1, 2, 3, len(block))):
            parts = [Part(document, a, b) for a, b in itertools.pairwise(cuts)]
            covered = row_bias(layout, (document,), 2.0, parts=parts)
            assert torch.equal(covered.bias, whole.bias)
            assert torch.equal(covered.rows, whole.rows)
    steering = Steering(("a",), 3.0, ROWS[2])
    by_parts = Steering(("a",), 3.0, ROWS[2], parts=(Part("a", 0, 1000),))
    assert greedy(backend, by_parts).text == greedy(backend, steering).text != greedy(backend).text


def test_a_part_holds_the_tokens_whose_first_character_lies_in_it():
    backend = tiny_backend()
    layout = backend.encoder.encode(prompt())
    for document, sentence in (("a", "It runs north."), ("c", "海は遠い。"), ("b", "Where is the source?")):
        block = blocks_of(layout)[document]
        start = block.index(sentence)
        bias = row_bias(layout, ("a", "b", "c"), 1.0, parts=[Part(document, start, start + len(sentence))])
        tokens = bias.bias.nonzero().ravel().tolist()
        assert backend.encoder.tokenizer.decode([layout.ids[i] for i in tokens]).strip() == sentence
        span = next(s for s in layout.of_kind("document") if s.document_id == document)
        places = [layout.offsets[i] for i in tokens]
        assert all(span.start <= a and b <= span.end for a, b in places)


def test_a_part_without_a_token_steers_nothing():
    layout = tiny_backend().encoder.encode(prompt())
    assert row_bias(layout, ("a",), 1.0, parts=[Part("a", 3, 3)]) is None
    assert row_bias(layout, (), 1.0) is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((("x",), 1.0), {}, r"not in the prompt: \['x'\]"),
        ((("a",), 1.0), {"row_documents": ("y",)}, r"rows of documents that are not in the prompt: \['y'\]"),
        ((("a",), 1.0), {"parts": [Part("b", 0, 3)]}, r"not steered to: \['b'\]"),
        ((("a",), math.inf), {}, "by inf"),
        ((("a",), math.nan), {}, "by nan"),
    ],
)
def test_impossible_steerings_are_refused(arguments, options, message):
    layout = tiny_backend().encoder.encode(prompt())
    with pytest.raises(ValueError, match=message):
        row_bias(layout, *arguments, **options)


STEERINGS = (
    *(Steering(("a",), 4.0, rows) for rows in ROWS),
    *(Steering(("a", "c"), -math.inf, rows) for rows in ROWS),
    Steering(("a",), -math.inf, row_documents=("b",)),
    Steering(("a", "b"), 3.0, row_documents=("c", "b")),
    Steering(("b",), 5.0, ROWS[2], parts=(Part("b", 13, 33),)),
)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_reused_keys_and_values_equal_the_full_recomputation(architecture):
    backend = tiny_backend(architecture)
    kept = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), keep_prefix=True).prefix
    layout = backend.encoder.encode(prompt())
    firsts = {span.document_id: span.first for span in layout.of_kind("document")}
    before = [(keys.clone(), values.clone()) for keys, values in kept.layers]
    for steering in STEERINGS:
        fresh, reused = greedy(backend, steering), greedy(backend, steering, prefix=kept)
        assert reused.text == fresh.text
        first = min((firsts[d] for d in steering.row_documents), default=layout.question.first)
        assert reused.cost.cached_tokens == first
        assert reused.cost.prefill_tokens_computed == len(layout.ids) - first
    for (keys, values), (earlier_keys, earlier_values) in zip(kept.layers, before, strict=True):
        assert torch.equal(keys, earlier_keys)  # the kept pass is never changed
        assert torch.equal(values, earlier_values)


def test_the_model_is_unchanged_after_an_exception_in_a_steered_pass():
    backend = tiny_backend()
    model, steering = backend._engine.model, Steering(("a",), -math.inf, ROWS[2])
    before = (greedy(backend).text, greedy(backend, steering).text)
    weights = [p.clone() for p in model.parameters()]

    def fail(*_):
        raise RuntimeError("in the middle")

    handle = model.model.layers[2].register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        greedy(backend, steering)
    handle.remove()
    assert (greedy(backend).text, greedy(backend, steering).text) == before
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
    assert model.config._attn_implementation == "mdqa_sdpa"


def test_two_differently_steered_threads_do_not_disturb_each_other():
    backend = tiny_backend()
    steerings = (Steering(("a",), 9.0, ROWS[2]), Steering(("a", "c"), -math.inf, ROWS[2]))
    expected = [greedy(backend, s).text for s in steerings]
    assert len({*expected, greedy(backend).text}) == 3
    kept = backend.attend(prompt(), stage="s", title="S", cancel=CancelToken(), keep_prefix=True).prefix
    found: list[list[str]] = [[], []]

    def work(which: int) -> None:
        for turn in range(4):
            found[which].append(greedy(backend, steerings[which], prefix=kept if turn % 2 else None).text)

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[text] * 4 for text in expected]
