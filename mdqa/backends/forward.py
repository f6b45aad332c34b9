"""The forward pass: batches of token ids through the model with shared beginnings, counted honestly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mdqa.attention.capture import PROBE_ARGUMENT, Probe, StopForward
from mdqa.attention.rows import ROWS_ARGUMENT, Group, Rows
from mdqa.backends.batching import Alike, alike, passes
from mdqa.backends.gathering import Gathered, Part
from mdqa.backends.prefix import Prefix, common_length
from mdqa.backends.windows import layer_windows, smallest_window
from mdqa.errors import ModelError, OutOfMemory
from mdqa.records import Cost

REPLY_ALLOWANCE = 1024
"""Tokens that a reply may add before a sliding window must not be counted on any more."""

SMALLEST_BATCH = 256
"""Tokens of a batch below which halving it cannot help any more: most prompts are a batch of their own by then."""


@dataclass
class Step:
    """Result of a prefill. ``logits`` (B, keep, V) of the last positions; ``attention_mask`` (B, T) for decoding.

    ``cached``: per row how many of its tokens were not computed for it.
    """

    logits: Tensor
    cache: Any
    attention_mask: Tensor
    lengths: list[int]
    cached: list[int]

    def cost(self, row: int, seconds: float, completion: int = 0) -> Cost:
        """Cost of one row; what several rows share is charged to the first of them only."""
        return cost_of(self.lengths[row], self.cached[row], seconds, completion)


def cost_of(length: int, cached: int, seconds: float, completion: int = 0) -> Cost:
    """Cost of one call whose prompt has ``length`` tokens, ``cached`` of which were not computed for it."""
    return Cost(
        llm_calls=1,
        prompt_tokens=length,
        completion_tokens=completion,
        cached_tokens=cached,
        prefill_tokens_computed=length - cached,
        seconds=seconds,
    )


@dataclass
class Started:
    """A batch whose prompts are computed: the logits (V,) of each first token, and what was not computed, by row."""

    rows: Rows
    logits: dict[int, Tensor]
    cached: dict[int, int]


class Engine:
    """Runs one model on one device.

    ``batch_tokens``: how many tokens a batch may hold, room for replies included and what is shared counted once.
    ``pass_budget``: how many go through at once. ``worth``: in the time that a pass takes whatever its size, so many
    tokens go through the model.
    """

    def __init__(self, model: Any, device: str) -> None:
        config = model.config.get_text_config()
        self.model: Any = model
        self.vocabulary: int = config.vocab_size
        self.layers: int = config.num_hidden_layers
        self.notices: list[str] = []
        self._work_on(device)
        self.windows = layer_windows(config)
        self._sliding_window = smallest_window(config)

    def _work_on(self, device: str) -> None:
        self.device = device
        self.batch_tokens, self.pass_budget = (12288, 2048) if device == "cpu" else (32768, 32768)
        self.worth = 24 if device == "cpu" else 512

    def move(self, device: str) -> None:
        """Bring the model to another device; ModelError where its memory does not hold it."""
        try:
            self.model = self.model.to(device)
        except torch.OutOfMemoryError:
            fits = False  # the exception holds tensors, so nothing is freed before this block is left
        else:
            fits = True
        if not fits:
            torch.cuda.empty_cache()
            raise ModelError(f"there is not enough memory on {device} for this model; choose a smaller one")
        self._work_on(device)

    def close(self) -> None:
        """Drop the model; later passes raise ModelError."""
        self.model = None
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()

    def halve(self) -> bool:
        """Compute less at once from now on, after the memory did not hold it; False where that is little already."""
        if self.batch_tokens < SMALLEST_BATCH:
            return False
        self.batch_tokens, self.pass_budget = self.batch_tokens // 2, max(self.pass_budget // 2, 1)
        self.notices.append(
            f"The memory of {self.device} did not hold everything at once, so batches now have {self.batch_tokens:,} "
            "tokens. The results are the same; it takes longer."
        )
        return True

    def batches(self, rows: Sequence[Sequence[int]], rooms: Sequence[int]) -> Iterator[list[Part]]:
        """What is written together: batches within ``batch_tokens`` (or one row). ``rooms``: longest reply per row."""
        batch: list[Part] = []
        held = 0
        for number, group in enumerate(self._alike(rows, [1] * len(rows))):
            taken: list[int] = []
            sizes = {i: len(rows[i]) - group.shared + rooms[i] for i in group.rows}
            for i in sorted(group.rows, key=sizes.__getitem__):
                if (batch or taken) and held + group.shared + (len(taken) + 1) * sizes[i] > self.batch_tokens:
                    yield batch + [Part(number, tuple(sorted(taken)), group.shared)] * bool(taken)
                    batch, taken, held = [], [], 0
                taken.append(i)
            batch.append(Part(number, tuple(sorted(taken)), group.shared))
            held += group.shared + len(taken) * max(sizes[i] for i in taken)
        if batch:
            yield batch

    def passes(
        self, rows: Sequence[Sequence[int]], keep: Sequence[int], check: Callable[[], None]
    ) -> Iterator[tuple[list[int], Step]]:
        """Prompts (indices) up to their last token, pass by pass.

        ``keep``: per row, logits of so many last positions are wanted; a pass has those of its largest number.
        ``check`` is called before each pass.
        """
        for group in self._alike(rows, keep):
            check()
            begun, computed = self._beginning(rows[group.rows[0]][: group.shared], None)
            for indices in self._passes(rows, group.rows, group.shared):
                check()
                with torch.inference_mode():
                    step = self.prefill([rows[i] for i in indices], keep=[keep[i] for i in indices], prefix=begun)
                step.cached[0] -= computed
                computed = 0
                yield indices, step

    def begin(
        self,
        rows: Sequence[Sequence[int]],
        parts: Sequence[Part],
        beginnings: dict[int, Prefix],
        *,
        prefix: Prefix | None,
        check: Callable[[], None],
    ) -> Started:
        """Run the prompts of a batch up to their last token.

        ``beginnings``: by group, what an earlier batch has left of it; added to. ``prefix``: see ``prefill``.
        """
        assert self.windows is not None
        groups: list[Group] = []
        logits: dict[int, Tensor] = {}
        cached: dict[int, int] = {}
        for part in parts:
            check()
            beginning = rows[part.rows[0]][: part.shared]
            begun, computed = self._beginning(beginning, beginnings.get(part.group, prefix))
            if begun is not None:
                beginnings[part.group] = begun
            own = Gathered(part, [len(rows[i]) - part.shared for i in part.rows])
            for indices in self._passes(rows, part.rows, part.shared):
                check()
                step = self.prefill([rows[i] for i in indices], prefix=prefix if begun is None else begun)
                own.take(indices, step.cache, step.attention_mask)
                logits.update({i: step.logits[place, -1] for place, i in enumerate(indices)})
                cached.update(zip(indices, step.cached, strict=True))
            cached[part.rows[0]] -= computed
            groups.append(own.group(begun, self.device))
        return Started(Rows(groups, self.windows), logits, cached)

    def prefill(
        self,
        rows: Sequence[Sequence[int]],
        *,
        keep: Sequence[int] | None = None,
        prefix: Prefix | None = None,
        reusable: int | None = None,
        probe: Probe | None = None,
    ) -> Step:
        """Run prompts up to their last token.

        ``keep``: per row, logits of so many last positions (default: of one). ``prefix``: what the prompts share with
        it is not computed again, at most ``reusable`` tokens; one with too few layers is left aside. A beginning that
        all rows share is computed once. With a probe that stops early the logits are empty.
        """
        needed = self.layers if probe is None or probe.stop_after is None else probe.stop_after + 1
        if prefix is not None and not prefix.serves(needed):
            prefix = None
        lengths = [len(row) for row in rows]
        keep = keep or [1] * len(rows)
        inside = [length - last for length, last in zip(lengths, keep, strict=True)]
        most = max(min(inside), 0) if self._may_pad_inside(lengths) else 0
        most = most if reusable is None else min(reusable, most)
        reused = 0 if prefix is None else min(common_length([prefix.ids, *rows]), most)
        cache = None
        shared = max(min(common_length(rows), most) - reused, 0) if len(rows) > 1 else 0
        if (len(rows) - 1) * shared > self.worth:
            cache = self.new_cache() if prefix is None or reused == 0 else prefix.cache(reused)
            ids = torch.tensor([list(rows[0][reused : reused + shared])], device=self.device)
            self._forward(ids, cache, None, None, 1)
            cache.batch_repeat_interleave(len(rows))
        else:
            shared = 0
            if prefix is not None and reused > 0:
                cache = prefix.cache(reused, batch=len(rows))
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
            output = self._forward(
                ids.to(self.device), cache, mask if padded else None, positions, max(keep), **_probing(probe)
            )
            logits = output.logits
        except StopForward:
            logits = torch.empty(len(rows), 0, 0)
        cached = [reused + (shared if i else 0) for i in range(len(rows))]
        return Step(logits, cache, mask, lengths, cached)

    def _alike(self, rows: Sequence[Sequence[int]], keep: Sequence[int]) -> list[Alike]:
        """Rows that begin alike; all together where a beginning cannot be held once."""
        if self.windows is None:
            return [Alike(tuple(range(len(rows))), 0)]
        return alike(rows, [max(len(row) - last, 0) for row, last in zip(rows, keep, strict=True)], self.worth)

    def _beginning(self, ids: Sequence[int], prefix: Prefix | None) -> tuple[Prefix | None, int]:
        """Keys and values of a beginning (None of an empty one), and how many of its tokens were computed now."""
        if not ids:
            return None, 0
        reused = 0 if prefix is None or not prefix.serves(self.layers) else common_length([prefix.ids, ids])
        cache = self.new_cache() if prefix is None or reused == 0 else prefix.cache(reused)
        if reused < len(ids):
            with torch.inference_mode():
                self._forward(torch.tensor([list(ids[reused:])], device=self.device), cache, None, None, 1)
        return Prefix.of(ids, cache), len(ids) - reused

    def _passes(self, rows: Sequence[Sequence[int]], chosen: Sequence[int], shared: int) -> Iterator[list[int]]:
        """The chosen rows in passes with little padding."""
        lengths = [len(rows[i]) for i in chosen]
        own = [length - shared for length in lengths]
        pad = self._may_pad_inside(lengths)
        for places in passes(own, shared=shared, worth=self.worth, budget=self.pass_budget, pad=pad):
            yield [chosen[place] for place in places]

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

    def decode(self, tokens: Sequence[int], rows: Rows) -> Tensor:
        """Append one token per row, in their order, and give the logits (B, V) of the next."""
        ids = torch.tensor(tokens, device=self.device)[:, None]
        output = self._forward(ids, None, None, rows.begin_step(), 1, **{ROWS_ARGUMENT: rows})
        rows.end_step()
        return output.logits[:, -1]

    def decode_padded(self, tokens: Sequence[int], step: Step, probe: Probe | None = None) -> Tensor:
        """The same for rows in a cache with padding; the step's mask and cache grow."""
        ones = torch.ones(len(tokens), 1, dtype=step.attention_mask.dtype, device=self.device)
        step.attention_mask = torch.cat([step.attention_mask, ones], dim=1)
        positions = step.attention_mask.sum(-1, keepdim=True) - 1
        padded = bool((step.attention_mask == 0).any())
        mask = step.attention_mask if padded else None
        ids = torch.tensor(tokens, device=self.device)[:, None]
        output = self._forward(ids, step.cache, mask, positions, 1, **_probing(probe))
        return output.logits[:, -1]

    def _forward(
        self,
        ids: Tensor,
        cache: Any,
        mask: Tensor | None,
        positions: Tensor | None,
        keep: int,
        **more: Any,
    ) -> Any:
        """One pass of the model; without a ``cache`` nothing is kept in one."""
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
                past_key_values=cache,
                use_cache=cache is not None,
                logits_to_keep=keep,
                **more,
            )
        except torch.OutOfMemoryError:
            pass  # the exception holds the tensors of the pass, so nothing is freed before this block is left
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        rows, tokens = ids.shape[0], ids.shape[1] + (0 if cache is None else cache.get_seq_length())
        raise OutOfMemory(
            f"there is not enough memory on {self.device} for {rows} prompt(s) of {tokens:,} tokens at once. Give "
            "fewer or shorter documents, or choose a smaller model."
        )


def _probing(probe: Probe | None) -> dict[str, Any]:
    return {} if probe is None else {PROBE_ARGUMENT: probe}
