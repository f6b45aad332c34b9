"""Keys and values of a prompt that was already computed, to be used again by a prompt that begins the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Prefix:
    """Token ids of a computed prompt and its keys and values, one (1, K, T, d) pair per layer. Never changed.

    A pass that stopped early leaves the first layers only; ``serves`` says what such a prefix can be used for.
    """

    ids: tuple[int, ...]
    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]

    @classmethod
    def of(cls, ids: Sequence[int], cache: Any, layers: int | None = None) -> Prefix:
        """The first ``len(ids)`` positions of a cache with batch size 1 (no copy: caches grow by concatenation).

        ``layers``: how many of its layers hold all of them (default: all).
        """
        n = len(ids)
        kept = cache.layers[:layers]
        return cls(tuple(ids), tuple((layer.keys[:, :, :n], layer.values[:, :, :n]) for layer in kept))

    def serves(self, layers: int) -> bool:
        """Whether a pass through the first ``layers`` layers can use it."""
        return len(self.layers) >= layers

    def storages(self) -> dict[int, int]:
        """Bytes of the memory behind the keys and values by its address; other prefixes may share it."""
        storages = (tensor.untyped_storage() for pair in self.layers for tensor in pair)
        return {storage.data_ptr(): storage.nbytes() for storage in storages}

    def cache(self, length: int, batch: int = 1) -> Any:
        """A cache holding the first ``length`` positions for ``batch`` sequences; it grows without touching this.

        All layers are plain (not sliding) ones: the masks of sliding-window layers take care of the window, and a
        cache that drops old positions could not be used again from the middle.
        """
        from transformers.cache_utils import DynamicCache, DynamicLayer  # noqa: PLC0415 - heavy

        cache = DynamicCache()
        for keys, values in self.layers:
            layer = DynamicLayer()  # type: ignore[no-untyped-call]
            layer.lazy_initialization(keys, values)
            layer.keys = keys[:, :, :length].expand(batch, -1, -1, -1)
            layer.values = values[:, :, :length].expand(batch, -1, -1, -1)
            cache.layers.append(layer)
        return cache


def common_length(sequences: Sequence[Sequence[int]]) -> int:
    """Length of the longest common beginning."""
    shortest = min(len(s) for s in sequences)
    for i in range(shortest):
        if any(s[i] != sequences[0][i] for s in sequences[1:]):
            return i
    return shortest
