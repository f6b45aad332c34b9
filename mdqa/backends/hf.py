"""Models through transformers: generation, likelihood, and attention that can be seen and steered.

One engine for all three: token ids in, a forward pass over what is not computed yet, logits out. What prompts (or an
earlier pass, ``prefix``) begin with is computed and held once for all that begin so, whatever else is in the batch; the
rest goes through in passes with little padding. The cost counts what was sent and what was computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from mdqa.attention.capture import Probe
from mdqa.attention.layout import Layout, PromptEncoder, Span
from mdqa.attention.steering import row_bias
from mdqa.backends.base import (
    AttendingRows,
    Attention,
    Capability,
    GenerationRequest,
    Likelihood,
    Steering,
    TextCallback,
)
from mdqa.backends.decoding import Decoder, Job
from mdqa.backends.forward import Engine
from mdqa.backends.prefix import Prefix
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError, OutOfMemory, PromptTooLong
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import AttentionMap, Cost, Generation, Head, TokenHeat


class TransformersBackend:
    """A causal language model of transformers, loaded with ``attn_implementation=capture.IMPLEMENTATION``.

    ``name``: the backend's name; ``model_name``: as the person wrote it. Any thread may call any method; a pass holds
    its whole state itself.
    """

    capabilities: frozenset[Capability] = frozenset({"generate", "structured", "likelihood", "attention", "steering"})

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        model_name: str,
        device: str = "cpu",
        name: str = "hf",
        dtype_reason: str = "",
    ) -> None:
        config = model.config.get_text_config()
        self.name, self.model, self.dtype_reason = name, model_name, dtype_reason
        self.layers: int = config.num_hidden_layers
        self.heads: int = config.num_attention_heads
        self.window: int = config.max_position_embeddings
        self.encoder = PromptEncoder(tokenizer)
        self._engine = Engine(model, device)
        self._decoder = Decoder(self._engine, tokenizer)

    @property
    def device(self) -> str:
        """Where the model computes."""
        return self._engine.device

    def move(self, device: str) -> None:
        """See :class:`mdqa.backends.base.Movable`."""
        if device != self.device:
            self._engine.move(device)

    @property
    def pretrained(self) -> Any:
        """The transformers model itself, for comparisons with its own attention; None once it is closed."""
        return self._engine.model

    def render(self, prompt: Prompt) -> str:
        """The prompt exactly as the model sees it."""
        return self.encoder.render(prompt)

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text, without special tokens."""
        return len(self.encoder.tokenizer(self.encoder.disarm(text), add_special_tokens=False)["input_ids"])

    def take_notices(self) -> list[str]:
        """That batches were made smaller, if they were."""
        taken, self._engine.notices = self._engine.notices, []
        return taken

    def close(self) -> None:
        """Forget the model and give the device's memory back."""
        self._engine.close()

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        *,
        cancel: CancelToken,
        on_text: TextCallback | None = None,
        on_done: Callable[[int], None] | None = None,
        prefix: Prefix | None = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """See :class:`mdqa.backends.base.Backend`. Steering needs exactly one request."""
        if steering is not None and len(requests) != 1:
            raise ConfigError("steering works on one request at a time")
        jobs = []
        for index, request in enumerate(requests):
            layout = self._layout(request.prompt, reserved=request.max_new_tokens)
            job = Job(index, request, layout.ids)
            if steering is not None:
                job.steering = row_bias(
                    layout,
                    steering.documents,
                    steering.delta,
                    rows=steering.rows,
                    before_scale=steering.before_scale,
                    parts=steering.parts,
                    row_documents=steering.row_documents,
                    device=self.device,
                )
                # rows from the first steered one on are computed with the bias
                job.reusable = None if job.steering is None else job.steering.first
            jobs.append(job)
        return self._decoder.run(jobs, cancel=cancel, on_text=on_text, on_done=on_done, prefix=prefix)

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """See :class:`mdqa.backends.base.ScoringBackend`. The target's last token and what follows it are not run.

        So prompts that differ in that token alone, such as one that is continued by Yes and by No, are one row.
        """
        targets: list[tuple[int, ...]] = []
        rows: dict[tuple[int, ...], list[int]] = {}  # token ids -> the prompts that begin with them
        for i, prompt in enumerate(prompts):
            layout = self._layout(prompt)
            span = layout.target(target)
            targets.append(layout.ids[span.first : span.last])
            rows.setdefault(layout.ids[: span.last - 1], []).append(i)
        results: dict[int, Likelihood] = {}
        while left := [row for row, places in rows.items() if places[0] not in results]:
            try:
                for row, found in self._likelihoods(left, rows, targets, cancel):
                    results |= found
                    if on_done is not None:
                        for i in rows[row]:
                            on_done(i)
            except OutOfMemory as problem:
                lacking = OutOfMemory(str(problem))  # the caught one holds what the failed pass held
            else:
                break
            if len(left) == 1 or not self._engine.halve():
                raise lacking
        return [results[i] for i in range(len(prompts))]

    def _likelihoods(
        self,
        distinct: Sequence[tuple[int, ...]],
        rows: Mapping[tuple[int, ...], Sequence[int]],
        targets: Sequence[tuple[int, ...]],
        cancel: CancelToken,
    ) -> Iterator[tuple[tuple[int, ...], dict[int, Likelihood]]]:
        """Row by row the likelihoods of the prompts that begin with it, by the prompts' places."""
        keep = [max(len(targets[i]) for i in rows[row]) for row in distinct]
        began = time.perf_counter()
        for batch, step in self._engine.passes(distinct, keep, cancel.check):
            seconds = (time.perf_counter() - began) / sum(len(rows[distinct[place]]) for place in batch)
            for place, row in enumerate(distinct[number] for number in batch):
                found: dict[int, Likelihood] = {}
                for i in rows[row]:
                    tokens = torch.tensor(targets[i], device=step.logits.device)
                    # one prompt at a time: in float32 a whole batch over a large vocabulary takes gigabytes
                    logprobs = torch.log_softmax(step.logits[place, -len(tokens) :].float(), dim=-1)  # (length, V)
                    picked = logprobs.gather(1, tokens[:, None]).sum()
                    cost = step.cost(place, seconds) if i == rows[row][0] else _reused(len(row), seconds)
                    found[i] = Likelihood(float(picked), len(tokens), cost)
                yield row, found
            began = time.perf_counter()

    def attend(
        self,
        prompt: Prompt,
        *,
        stage: str,
        title: str,
        cancel: CancelToken,
        rows: AttendingRows = "question",
        pool: Literal["sum", "mean"] = "sum",
        until_layer: int | None = None,
        retrieval_heads: Sequence[Head] = (),
        prefix: Prefix | None = None,
        keep_prefix: bool = False,
    ) -> Attention:
        """See :class:`mdqa.backends.base.InspectableBackend`. One pass over one prompt, unpadded."""
        cancel.check()
        began = time.perf_counter()
        layout = self._layout(prompt)
        attending = _rows(layout, rows)
        probe = Probe(
            rows=torch.arange(*attending, device=self.device),
            pooling=self._pooling(layout, pool),
            token_heads=_by_layer(retrieval_heads, self.layers, self.heads),
            stop_after=until_layer if until_layer is not None and until_layer < self.layers - 1 else None,
        )
        with torch.inference_mode():
            step = self._engine.prefill([layout.ids], prefix=prefix, reusable=attending[0], probe=probe)
            mass = torch.stack(probe.mass).float().cpu().numpy()  # (layers run, H, D)
        spans = layout.of_kind("document")
        attention_map = AttentionMap(
            stage=stage,
            title=title,
            documents=tuple(span.document_id or "" for span in spans),
            mass=mass,
            retrieval_heads=tuple(retrieval_heads),
            model_layers=self.layers,
            pool=pool,
            heat=_heat(layout, spans, probe),
        )
        share = len(probe.mass) / self.layers
        cost = step.cost(0, time.perf_counter() - began)
        cost = cost.model_copy(update={"prefill_tokens_computed": round(cost.prefill_tokens_computed * share)})
        kept = Prefix.of(layout.ids, step.cache, layers=len(probe.mass)) if keep_prefix else None
        return Attention(attention_map, cost, kept, tuple(span.last - span.first for span in spans))

    def _layout(self, prompt: Prompt, reserved: int = 0) -> Layout:
        layout = self.encoder.encode(prompt)
        if len(layout.ids) + reserved > self.window:
            raise PromptTooLong(len(layout.ids), self.window, reserved=reserved, role=prompt.template or "prompt")
        return layout

    def _pooling(self, layout: Layout, pool: str) -> torch.Tensor:
        """Weights (T, D) that sum or average the tokens of each document."""
        spans = layout.of_kind("document")
        weights = torch.zeros(len(layout.ids), len(spans), device=self.device)
        for column, span in enumerate(spans):
            weights[span.first : span.last, column] = 1.0 if pool == "sum" else 1.0 / max(span.last - span.first, 1)
        return weights


def _reused(tokens: int, seconds: float) -> Cost:
    """Cost of a prompt whose pass was another one's."""
    return Cost(llm_calls=1, prompt_tokens=tokens, cached_tokens=tokens, seconds=seconds)


def _rows(layout: Layout, rows: AttendingRows) -> tuple[int, int]:
    if rows == "last":
        return len(layout.ids) - 1, len(layout.ids)
    question = layout.question
    return question.first, question.last if rows == "question" else len(layout.ids)


def _by_layer(heads: Sequence[Head], layers: int, count: int) -> dict[int, list[int]]:
    table: dict[int, list[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < layers and 0 <= head < count):
            raise ConfigError(f"head {layer}-{head} does not exist: the model has {layers} layers of {count} heads")
        table.setdefault(layer, []).append(head)
    return table


def _heat(layout: Layout, spans: Sequence[Span], probe: Probe) -> TokenHeat | None:
    """Token weights of the probed heads inside the documents, with the text that each token stands for."""
    if not probe.tokens:
        return None
    heads = tuple(probe.tokens)
    index = torch.cat([torch.arange(span.first, span.last) for span in spans]).to(probe.mass[0].device)
    weights = torch.stack([probe.tokens[head][index] for head in heads]).float().cpu().numpy()
    document = np.array([d for d, span in enumerate(spans) for _ in range(span.first, span.last)], dtype=np.int32)
    places = np.array(
        [
            (max(layout.offsets[i][0], span.start) - span.start, min(layout.offsets[i][1], span.end) - span.start)
            for span in spans
            for i in range(span.first, span.last)
        ],
        dtype=np.int32,
    ).reshape(-1, 2)
    texts = tuple(layout.text[span.start : span.end] for span in spans)
    return TokenHeat(heads, texts, document, places, weights.astype(np.float32))
