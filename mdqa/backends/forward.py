"""The forward pass: batches of token ids through the model with shared beginnings, counted honestly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mdqa.attention.capture import PROBE_ARGUMENT, Probe, StopForward
from mdqa.backends.prefix import Prefix, common_length
from mdqa.errors import ModelError
from mdqa.records import Cost

SHARED_MINIMUM = 16
"""A common beginning shorter than this is not worth a pass of its own."""


REPLY_ALLOWANCE = 1024
"""Tokens that a reply may add before a sliding window must not be counted on any more."""


@dataclass
class Step:
    """Result of a prefill. ``logits`` (B, keep, V) of the last positions; ``attention_mask`` (B, T) for decoding."""

    logits: Tensor
    cache: Any
    attention_mask: Tensor
    lengths: list[int]
    reused: int
    shared: int

    def cost(self, row: int, seconds: float, completion: int = 0) -> Cost:
        """Cost of one row; the batch's shared beginning is charged to its first row only."""
        length = self.lengths[row]
        cached = self.reused + (self.shared if row else 0)
        return Cost(
            llm_calls=1,
            prompt_tokens=length,
            completion_tokens=completion,
            cached_tokens=cached,
            prefill_tokens_computed=length - cached,
            seconds=seconds,
        )


class Engine:
    """Runs one model on one device. ``batch_tokens``: how many padded tokens go through at once."""

    def __init__(self, model: Any, device: str) -> None:
        self.model: Any = model
        self.device = device
        self.vocabulary: int = model.config.get_text_config().vocab_size
        self.layers: int = model.config.get_text_config().num_hidden_layers
        self.batch_tokens = 8192 if device == "cpu" else 32768
        self._sliding_window = _smallest_window(model.config.get_text_config())

    def close(self) -> None:
        """Drop the model; later passes raise ModelError."""
        self.model = None
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices in batches of similar length, each within ``batch_tokens`` (or alone)."""
        batch: list[int] = []
        for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
            if batch and lengths[index] * (len(batch) + 1) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def prefill(
        self,
        rows: Sequence[Sequence[int]],
        *,
        keep: int = 1,
        prefix: Prefix | None = None,
        reusable: int | None = None,
        probe: Probe | None = None,
    ) -> Step:
        """Run prompts up to their last token.

        ``keep``: logits of so many last positions. ``prefix``: what the prompts share with it is not computed again,
        at most ``reusable`` tokens; one with too few layers is left aside. A beginning that all rows share is
        computed once. With a probe that stops early the logits are empty.
        """
        needed = self.layers if probe is None or probe.stop_after is None else probe.stop_after + 1
        if prefix is not None and not prefix.serves(needed):
            prefix = None
        lengths = [len(row) for row in rows]
        most = max(min(lengths) - keep, 0) if self._may_pad_inside(lengths) else 0
        most = most if reusable is None else min(reusable, most)
        reused = 0 if prefix is None else min(common_length([prefix.ids, *rows]), most)
        cache = None
        if prefix is not None and reused > 0:
            cache = prefix.cache(reused)
        shared = 0
        if len(rows) > 1:
            shared = max(min(common_length(rows), most) - reused, 0)
            if shared >= SHARED_MINIMUM:
                ids = torch.tensor([list(rows[0][reused : reused + shared])], device=self.device)
                cache = self._forward(ids, cache, None, None, 1).past_key_values
            else:
                shared = 0
            if cache is not None:
                cache.batch_repeat_interleave(len(rows))
        start = reused + shared
        width = max(lengths) - start
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.ones(len(rows), start + width, dtype=torch.long)
        for i, row in enumerate(rows):
            tail = list(row[start:])
            ids[i, width - len(tail) :] = torch.tensor(tail)
            mask[i, start : start + width - len(tail)] = 0
        mask = mask.to(self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, start:]
        padded = bool((mask == 0).any())
        if cache is None:
            cache = self.new_cache()
        try:
            output = self._forward(ids.to(self.device), cache, mask if padded else None, positions, keep, probe)
            logits = output.logits
        except StopForward:
            logits = torch.empty(len(rows), 0, 0)
        return Step(logits, cache, mask, lengths, reused, shared)

    def _may_pad_inside(self, lengths: Sequence[int]) -> bool:
        """Whether padding may stand between a shared beginning and the rest of the rows.

        Sliding-window masks count places, padding included, so padding inside would shorten the window; padding
        before everything does no harm.
        """
        if self._sliding_window is None or min(lengths) == max(lengths):
            return True
        return max(lengths) + REPLY_ALLOWANCE < self._sliding_window

    def new_cache(self) -> Any:
        """An empty cache with plain layers (see ``Prefix.cache``)."""
        from transformers.cache_utils import DynamicCache  # noqa: PLC0415 - heavy

        return DynamicCache()

    def decode(self, tokens: Tensor, step: Step, probe: Probe | None = None) -> Tensor:
        """Append one token per row (B,) and give the logits (B, V) of the next; the step's mask and cache grow."""
        ones = torch.ones(len(tokens), 1, dtype=step.attention_mask.dtype, device=self.device)
        step.attention_mask = torch.cat([step.attention_mask, ones], dim=1)
        positions = step.attention_mask.sum(-1, keepdim=True) - 1
        padded = bool((step.attention_mask == 0).any())
        mask = step.attention_mask if padded else None
        output = self._forward(tokens[:, None].to(self.device), step.cache, mask, positions, 1, probe)
        return output.logits[:, -1]

    def _forward(
        self,
        ids: Tensor,
        cache: Any,
        mask: Tensor | None,
        positions: Tensor | None,
        keep: int,
        probe: Probe | None = None,
    ) -> Any:
        if self.model is None:
            raise ModelError("the model was unloaded; load it again")
        if positions is None:
            past = 0 if cache is None else cache.get_seq_length()
            positions = torch.arange(past, past + ids.shape[1], device=ids.device)[None]
        try:
            return self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=self.new_cache() if cache is None else cache,
                use_cache=True,
                logits_to_keep=keep,
                **({} if probe is None else {PROBE_ARGUMENT: probe}),
            )
        except torch.OutOfMemoryError:
            pass  # the exception holds the tensors of the pass, so nothing is freed before this block is left
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        rows, tokens = ids.shape[0], ids.shape[1] + (0 if cache is None else cache.get_seq_length())
        raise ModelError(
            f"there is not enough memory on {self.device} for {rows} prompt(s) of {tokens:,} tokens at once. Give "
            "fewer or shorter documents, or choose a smaller model."
        )


def _smallest_window(config: Any) -> int | None:
    """Sliding window of the model's layers, None if every layer sees everything."""
    types = getattr(config, "layer_types", None)
    if types is not None and "sliding_attention" not in types:
        return None
    window = getattr(config, "sliding_window", None)
    return int(window) if window else None
