"""The attention function: SDPA as it is, plus what a :class:`Probe` asks for on a few rows.

A probe travels with one forward pass as a keyword argument, so nothing global is set and two passes in two threads do
not know of each other. For the rows of the question it computes the softmax of that layer, reduces it at once to
(heads, documents) and drops it; a full attention matrix never exists. With a steering it replaces the output of the
steered rows by attention with the bias. A pass that needs only the first layers stops after them.

Shapes: B batch, H query heads, K key-value heads, G = H / K, R probed rows, T keys, D documents, d head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softmax

from mdqa.attention.rows import Rows

IMPLEMENTATION = "mdqa_sdpa"
"""Name under which transformers knows the function (``attn_implementation``)."""

PROBE_ARGUMENT = "mdqa_probe"

_MASKED = torch.finfo(torch.float32).min
"""Logit of an invisible key: finite, so that the all-invisible rows of left padding give no NaN."""

_INVISIBLE = torch.finfo(torch.float16).min / 2
"""Scores below this come from a mask: no model's logits go near it, and float masks of every type go beyond."""

_CHUNK_ELEMENTS = 1 << 26  # at most this many scores at once (256 MB in float32)


class StopForward(Exception):
    """Raised inside a forward pass when the deepest layer that was asked for is done."""


@dataclass(frozen=True)
class RowBias:
    """A steering in tokens: ``bias`` (T0,) is added to the logits of ``rows``; keys beyond T0 get none.

    ``rows``: absolute positions; ``and_after``: also every row from this position on (generated tokens). A bias of
    minus infinity takes the key out of the softmax.
    """

    rows: Tensor
    bias: Tensor
    before_scale: bool = False
    and_after: int | None = None

    @property
    def first(self) -> int:
        """The first steered row: what stands before it is as without steering."""
        return int(self.rows.min())

    def rows_within(self, offset: int, count: int) -> Tensor:
        """Steered rows among the ``count`` query rows that begin at absolute position ``offset``, as indices."""
        local = self.rows - offset
        local = local[(local >= 0) & (local < count)]
        if self.and_after is not None and offset + count > self.and_after:
            after = torch.arange(max(self.and_after - offset, 0), count, device=local.device)
            local = torch.unique(torch.cat([local, after]))
        return local

    def logits(self, keys: int, scaling: float) -> Tensor:
        """The bias of a steered row for ``keys`` keys (T,), in float32."""
        bias = torch.zeros(keys, dtype=torch.float32, device=self.bias.device)
        bias[: min(keys, len(self.bias))] = self.bias[:keys]
        return bias * scaling if self.before_scale else bias


@dataclass
class Probe:
    """What to look at and what to change in one forward pass over one sequence (B = 1).

    ``rows``: (R,) absolute positions whose attention is wanted. ``pooling``: (T, D) weights that pool key tokens to
    documents. ``token_heads``: layer -> heads for which the token weights (T,) are kept. Results: ``mass`` one (H, D)
    per layer in order, ``tokens`` per (layer, head).
    """

    rows: Tensor | None = None
    pooling: Tensor | None = None
    token_heads: dict[int, list[int]] = field(default_factory=dict)
    stop_after: int | None = None
    steering: RowBias | None = None
    mass: list[Tensor] = field(default_factory=list)
    tokens: dict[tuple[int, int], Tensor] = field(default_factory=dict)


def register() -> None:
    """Make :data:`IMPLEMENTATION` known to transformers. Calling it again changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface  # noqa: PLC0415 - heavy
    from transformers.masking_utils import sdpa_mask  # noqa: PLC0415

    AttentionInterface.register(IMPLEMENTATION, attention_forward)
    AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)


def attention_forward(
    module: Any,
    query: Tensor,  # (B, H, Q, d), positions and norms applied
    key: Tensor,  # (B, K, T, d)
    value: Tensor,  # (B, K, T, d)
    attention_mask: Tensor | None,  # (B, 1, Q, T) bool or float, or None for plain causal
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    mdqa_probe: Probe | None = None,
    mdqa_rows: Rows | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The function behind :data:`IMPLEMENTATION`; returns (B, Q, H, d)."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: PLC0415

    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if mdqa_rows is not None:  # one new token per row; the mask and what it is computed from do not count
        return mdqa_rows.attend(module.layer_idx, query, key, value, scale, softcap), None
    probe = mdqa_probe
    if probe is not None and probe.rows is not None:
        _observe(module.layer_idx, query, key, attention_mask, scale, softcap, probe)
        if probe.stop_after is not None and module.layer_idx >= probe.stop_after:
            raise StopForward
    if softcap is None and attention_mask is not None and query.shape[2] == 1:
        output = _decode_attention(query, key, value, attention_mask, scale)
    elif softcap is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scale, **kwargs)
    else:  # SDPA knows no soft-capping and would silently leave it out
        output = _capped_attention(query, key, value, attention_mask, scale, softcap)
    if probe is not None and probe.steering is not None:
        output = _steer(output, query, key, value, attention_mask, scale, softcap, probe.steering)
    return output, None


def row_weights(
    query: Tensor,  # (H, R, d)
    key: Tensor,  # (K, T, d)
    rows: Tensor,  # (R,) indices among the Q query rows
    offset: int,  # absolute position of query row 0
    mask: Tensor | None,  # (Q, T) of this sequence
    scale: float,
    softcap: float | None,
    bias: Tensor | None = None,  # (T,), or (R, T), added to the logits
) -> Tensor:
    """Softmax weights (H, R, T) in float32 of some rows, with soft-cap, mask and bias applied in the model's order.

    Where the bias is minus infinity the weight is exactly 0; a row that would then see nothing has no weights at all.
    """
    heads, count, size = query.shape
    groups, keys = key.shape[0], key.shape[1]
    stacked = query.reshape(groups, heads // groups * count, size)  # head h reads key head h // G
    scores = torch.matmul(stacked, key.transpose(1, 2)).view(heads, count, keys).float() * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        visible = torch.arange(keys, device=rows.device)[None, :] <= (rows + offset)[:, None]
        scores = scores.masked_fill(~visible, _MASKED)
    elif mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask[rows], _MASKED)
    else:
        scores = scores + mask[rows].float()
    if bias is None:
        return softmax(scores, dim=-1)
    gone = scores <= _INVISIBLE  # also the finite scores: a row whose visible keys are all taken out must not use them
    weights = softmax(scores.masked_fill(gone, -torch.inf), dim=-1)
    return weights.masked_fill(gone.all(dim=-1, keepdim=True), 0.0)


def _observe(
    layer: int,
    query: Tensor,
    key: Tensor,
    attention_mask: Tensor | None,
    scale: float,
    softcap: float | None,
    probe: Probe,
) -> None:
    assert probe.rows is not None
    assert probe.pooling is not None
    offset = key.shape[2] - query.shape[2]
    rows = probe.rows - offset
    mask = None if attention_mask is None else attention_mask[0, 0]
    bias = None
    if probe.steering is not None:
        bias = _bias_of(probe.steering, rows, offset, query.shape[2], key.shape[2], scale)
    heads, groups = query.shape[1], key.shape[1]
    per_group = heads // groups
    step = max(1, _CHUNK_ELEMENTS // (per_group * len(rows) * key.shape[2]))  # key heads at once
    means = []
    for first in range(0, groups, step):
        q = query[0, first * per_group : (first + step) * per_group, rows]
        weights = row_weights(q, key[0, first : first + step], rows, offset, mask, scale, softcap, bias)
        means.append(weights.mean(dim=1))
    tokens = torch.cat(means)  # (H, T)
    probe.mass.append(tokens @ probe.pooling)
    for head in probe.token_heads.get(layer, ()):
        probe.tokens[layer, head] = tokens[head]


def _bias_of(steering: RowBias, rows: Tensor, offset: int, count: int, keys: int, scale: float) -> Tensor:
    """The bias (R, T) of rows of which only some may be steered."""
    steered = torch.isin(rows, steering.rows_within(offset, count))
    bias = steering.logits(keys, scale)
    return torch.where(steered[:, None], bias, torch.zeros_like(bias))


def _steer(
    output: Tensor,  # (1, Q, H, d)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scale: float,
    softcap: float | None,
    steering: RowBias,
) -> Tensor:
    offset = key.shape[2] - query.shape[2]
    rows = steering.rows_within(offset, query.shape[2])
    if len(rows) == 0:
        return output
    mask = None if attention_mask is None else attention_mask[0, 0]
    bias = steering.logits(key.shape[2], scale)
    output = output.clone()
    for block, attended in attend_in_blocks(query[0], key[0], value[0], rows, offset, mask, scale, softcap, bias):
        output[0, block] = attended.to(output.dtype)
    return output


def attend_in_blocks(
    query: Tensor,  # (H, Q, d)
    key: Tensor,  # (K, T, d)
    value: Tensor,  # (K, T, d)
    rows: Tensor,  # (R,) indices among the Q query rows
    offset: int,
    mask: Tensor | None,
    scale: float,
    softcap: float | None,
    bias: Tensor | None = None,
    *,
    elements: int = _CHUNK_ELEMENTS,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Attention of some rows as (rows, (rows, H, d) in float32), in blocks of at most ``elements`` scores at once.

    Memory so grows with T and not with R times T. A block has at least one row.
    """
    value = value.float()
    step = max(1, elements // (query.shape[0] * key.shape[1]))
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        weights = row_weights(query[:, block], key, block, offset, mask, scale, softcap, bias)
        yield block, _apply(weights, value).transpose(0, 1)


def _apply(weights: Tensor, value: Tensor) -> Tensor:
    """Weights (H, R, T) times values (K, T, d), both float32 -> (H, R, d)."""
    heads, count, keys = weights.shape
    groups = value.shape[0]
    stacked = weights.reshape(groups, heads // groups * count, keys)
    return torch.matmul(stacked, value).view(heads, count, -1)


def _decode_attention(query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, scale: float) -> Tensor:
    """One new token per row of a padded batch, (B, 1, H, d).

    SDPA with a mask wants keys and values repeated for every query head, which costs more than the attention itself
    when there is one query row; here the query heads of a group share their keys in one product.
    """
    batch, heads, _, size = query.shape
    groups = key.shape[1]
    stacked = query.reshape(batch, groups, heads // groups, size)
    scores = torch.matmul(stacked, key.transpose(2, 3)).float() * scale  # (B, K, G, T)
    if attention_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attention_mask, _MASKED)  # (B, 1, 1, T)
    else:
        scores = scores + attention_mask.float()
    output = torch.matmul(softmax(scores, dim=-1).to(value.dtype), value)  # (B, K, G, d)
    return output.reshape(batch, 1, heads, value.shape[-1])


def _capped_attention(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scale: float, softcap: float
) -> Tensor:
    """Attention with soft-capped logits in blocks of rows."""
    batch, heads, count, _ = query.shape
    rows, offset = torch.arange(count, device=query.device), key.shape[2] - count
    output = torch.empty(batch, count, heads, value.shape[-1], dtype=query.dtype, device=query.device)
    for b in range(batch):
        mask = None if attention_mask is None else attention_mask[b if attention_mask.shape[0] > 1 else 0, 0]
        for block, attended in attend_in_blocks(query[b], key[b], value[b], rows, offset, mask, scale, softcap):
            output[b, block] = attended.to(output.dtype)
    return output
