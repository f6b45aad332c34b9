"""From passes to rows that can be written on: each row's keys and values, without padding, behind what it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mdqa.attention.rows import Group, Pair
from mdqa.backends.prefix import Prefix

ROOM = 64
"""Columns that are kept ready for a reply; more are made as it grows."""


@dataclass(frozen=True)
class Part:
    """Rows (indices) of one group that are written together. ``group``: its number; ``shared``: as in ``Alike``."""

    group: int
    rows: tuple[int, ...]
    shared: int


class Gathered:
    """The keys and values of a part's rows behind their common beginning, gathered pass by pass."""

    def __init__(self, part: Part, lengths: Sequence[int]) -> None:
        self._part = part
        self._lengths = dict(zip(part.rows, lengths, strict=True))
        self._width = max(lengths)
        self._layers: list[Pair] = []

    def take(self, indices: Sequence[int], cache: Any, attention_mask: Tensor) -> None:
        """Copy what a pass has computed, aligned at the right; a pass that has all rows and no padding is kept."""
        shared, rows = self._part.shared, self._part.rows
        if tuple(indices) == rows and min(self._lengths.values()) == self._width:
            self._layers = [(layer.keys[:, :, shared:], layer.values[:, :, shared:]) for layer in cache.layers]
            return
        if not self._layers:
            self._layers = [(self._empty(layer.keys), self._empty(layer.values)) for layer in cache.layers]
        for place, index in enumerate(indices):
            columns = attention_mask[place].nonzero()[shared:, 0]  # without padding
            row, first = rows.index(index), self._width - self._lengths[index]
            for (keys, values), layer in zip(self._layers, cache.layers, strict=True):
                keys[row, :, first : self._width] = layer.keys[place][:, columns]
                values[row, :, first : self._width] = layer.values[place][:, columns]

    def group(self, begun: Prefix | None, device: str) -> Group:
        """The group, ready to be written on."""
        starts = torch.tensor([self._width - self._lengths[i] for i in self._part.rows], device=device)
        beginning = () if begun is None else tuple((keys[0], values[0]) for keys, values in begun.layers)
        return Group(list(self._part.rows), starts, self._layers, self._width, beginning)

    def _empty(self, like: Tensor) -> Tensor:
        _, heads, _, size = like.shape
        return like.new_zeros(len(self._part.rows), heads, self._width + ROOM, size)
