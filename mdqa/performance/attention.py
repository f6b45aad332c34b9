"""What seeing the attention costs: a captured prefill beside a plain one and beside eager attention, same weights.

``plain`` is transformers' own SDPA over the prompt, filling a cache as generation does. ``captured`` is our attention
pass over the same prompt, reduced to (layers, heads, documents), and ``captured_4_heads`` also keeps the token
weights of four heads. ``eager`` is what transformers offers for the same: every attention matrix, reduced at the end.
All four begin with the prompt's text and end with numbers on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mdqa.backends.base import Attention
from mdqa.performance.cases import Case, answering_prompt
from mdqa.performance.figures import Figure, Goal, alone, figures_of, growth, skipped
from mdqa.performance.measuring import Measured, Variant
from mdqa.performance.model import attention_of, eager_bytes, free_memory, lack_of_memory, transformers_backend
from mdqa.performance.plan import Plan
from mdqa.prompting import Prompt
from mdqa.records import Head, Question

if TYPE_CHECKING:
    from mdqa.backends.hf import TransformersBackend

OVER_PLAIN = {"time": Goal(1.05), "peak_memory": Goal(1.05), "added_memory": Goal(1.05)}
UNDER_EAGER = {
    "time": Goal(5, at_least=True),
    "peak_memory": Goal(5, at_least=True),
    "added_memory": Goal(5, at_least=True),
}
NO_GROWTH = Goal(1.05)


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures per case as they come, and at the end how the cost of capturing grows with the prompt.

    At once: CapabilityError for a backend without weights of its own, ConfigError for options.
    """
    plan.refuse_options("attention")
    return _bench(plan, transformers_backend(plan.tools.backend))


def _bench(plan: Plan, backend: TransformersBackend) -> Iterator[Figure]:
    ratios: list[Figure] = []
    for case in plan.cases:
        tokens = max(len(backend.encoder.encode(answering_prompt(item)).ids) for item in case.items)
        if tokens >= backend.window:
            note = f"{tokens:,} tokens do not fit into the model's window of {backend.window:,}"
            yield skipped("captured.time", "s", note, tokens=tokens)
            continue
        figures = _figures(case, tokens, backend, plan)
        ratios += [figure for figure in figures if figure.name == "captured.time"]
        yield from figures
    yield growth("captured.time.growth", ratios, NO_GROWTH)


def _figures(case: Case, tokens: int, backend: TransformersBackend, plan: Plan) -> list[Figure]:
    size = backend.pretrained.dtype.itemsize
    need = eager_bytes(backend.layers, backend.heads, tokens, size)
    lack = lack_of_memory(need, free_memory(backend.device))
    measured = plan.measure(case, partial(_variants, backend, plan, with_eager=not lack))
    if lack:
        measured.failed["eager"] = lack
    more: dict[str, Any] = {"tokens": tokens, "documents": len(case.items[0].documents), "memory": plan.meter.source}
    return [
        *figures_of(measured, "plain", **more),
        *figures_of(measured, "captured", "plain", goals=OVER_PLAIN, **more),
        *figures_of(measured, "captured_4_heads", "plain", goals=OVER_PLAIN, **more),
        *figures_of(measured, "eager", "captured", goals=UNDER_EAGER, **more),
        _difference(measured, tokens),
    ]


def _variants(backend: TransformersBackend, plan: Plan, item: Question, *, with_eager: bool) -> list[Variant]:
    prompt = answering_prompt(item)

    def attend(heads: Sequence[Head] = ()) -> np.ndarray:
        seen: Attention = backend.attend(
            prompt, stage="bench", title="Benchmark", cancel=plan.cancel, retrieval_heads=heads
        )
        return seen.map.mass

    model = backend.pretrained
    variants = [
        Variant("plain", partial(plain_prefill, backend, prompt), partial(attention_of, model, "sdpa")),
        Variant("captured", attend),
        Variant("captured_4_heads", partial(attend, four_heads(backend.layers, backend.heads))),
    ]
    if with_eager:
        around = partial(attention_of, model, "eager")
        variants.append(Variant("eager", partial(eager_attention, backend, prompt), around))
    return variants


def four_heads(layers: int, heads: int) -> tuple[Head, ...]:
    """Four different heads spread over a model's depth; fewer where it has fewer."""
    spread = [(round(place * (layers - 1) / 3), place % heads) for place in range(4)]
    return tuple(dict.fromkeys(spread))


def plain_prefill(backend: TransformersBackend, prompt: Prompt) -> int:
    """Prefill as generation does it, with no code of ours inside the model or the tokenizer; the first token's id."""
    output = _forward(backend, plain_ids(backend, prompt))
    return int(output.logits[0, -1].argmax())


def plain_ids(backend: TransformersBackend, prompt: Prompt) -> list[int]:
    """The prompt's token ids as anyone would get them, without the places of the documents."""
    tokenizer = backend.encoder.tokenizer
    has_template = bool(getattr(tokenizer, "chat_template", None))  # which then brings the special tokens
    return list(tokenizer(backend.render(prompt), add_special_tokens=not has_template)["input_ids"])


def eager_attention(backend: TransformersBackend, prompt: Prompt) -> np.ndarray:
    """The map (layers, heads, documents) from the matrices that transformers returns."""
    import torch  # noqa: PLC0415 - heavy

    layout = backend.encoder.encode(prompt)
    output = _forward(backend, layout.ids, output_attentions=True)
    documents = layout.of_kind("document")
    rows = slice(layout.question.first, layout.question.last)
    with torch.inference_mode():
        masses = []
        for matrix in output.attentions:  # (1, H, T, T)
            tokens = matrix[0, :, rows].float().mean(dim=1)  # (H, T)
            masses.append(torch.stack([tokens[:, span.first : span.last].sum(dim=1) for span in documents], dim=1))
        return np.asarray(torch.stack(masses).cpu().numpy())


def _forward(backend: TransformersBackend, ids: Sequence[int], **options: Any) -> Any:
    import torch  # noqa: PLC0415 - heavy

    with torch.inference_mode():
        rows = torch.tensor([list(ids)], device=backend.device)
        return backend.pretrained(input_ids=rows, use_cache=True, logits_to_keep=1, **options)


def _difference(measured: Measured, tokens: int) -> Figure:
    """Whether both ways see the same: the largest difference between entries of the two maps."""
    name = "captured.difference_from_eager"
    if missing := [v for v in ("captured", "eager") if v in measured.failed]:
        return skipped(name, "mass", f"{missing[0]} {measured.failed[missing[0]]}", tokens=tokens)
    pairs = zip(measured.samples["captured"], measured.samples["eager"], strict=True)
    return alone(name, "mass", [float(np.abs(a.outcome - b.outcome).max()) for a, b in pairs], tokens=tokens)
