"""Writing many replies at once: what prompts have in common is held and read once, and every step appends in place.

Rows whose prompts begin alike are a :class:`Group`: the keys and values of the beginning stand there once, each row's
own behind them. One step attends to both parts in one softmax. No padding stands inside a row, finished rows leave at
once, and nothing is copied as replies grow. :class:`Rows` travels with a forward pass as a keyword argument, as a probe
does (``capture.py``), and takes the place of the cache.

Shapes: n rows of a group, K key-value heads, G query heads for each of them, P tokens of the beginning, W columns of
the rows' own part (aligned at the right, so that all rows append in the same column), d head size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import softmax

ROWS_ARGUMENT = "mdqa_rows"

Pair = tuple[Tensor, Tensor]
"""Keys and values of one layer."""

_MASKED = torch.finfo(torch.float32).min
_GROWTH = 64
"""Columns that are added when the room is used up."""


@dataclass
class Group:
    """Rows with a common beginning.

    ``order``: whose each row is. ``starts`` (n,): the first column that is not padding. ``own``: a layer's (n, K, C, d)
    keys and values, C >= W. ``beginning``: a layer's (K, P, d), empty where nothing is shared. ``width``: W.
    """

    order: list[int]
    starts: Tensor
    own: list[Pair]
    width: int
    beginning: Sequence[Pair] = ()

    @property
    def shared(self) -> int:
        """Tokens of the common beginning, P."""
        return self.beginning[0][0].shape[1] if self.beginning else 0

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row so far (n,), which is also the position of its next token."""
        return self.shared + self.width - self.starts

    def drop(self, gone: Iterable[int]) -> None:
        """Let rows go: the last row moves into each gap."""
        for name in gone:
            place, last = self.order.index(name), len(self.order) - 1
            if place != last:
                for keys, values in self.own:
                    keys[place], values[place] = keys[last], values[last]
                self.starts[place] = self.starts[last]
                self.order[place] = self.order[last]
            self.order.pop()
            self.starts = self.starts[:last]

    def make_room(self) -> None:
        """See to it that one more column can be written in every layer."""
        if self.own[0][0].shape[2] > self.width:
            return
        for layer, (keys, values) in enumerate(self.own):
            _, heads, _, size = keys.shape
            room = (len(self.order), heads, self.width + _GROWTH, size)
            grown = keys.new_empty(room), values.new_empty((*room[:3], values.shape[3]))
            for new, old in zip(grown, (keys, values), strict=True):
                new[:, :, : self.width] = old[: len(self.order), :, : self.width]
            self.own[layer] = grown

    def visible(self, window: int | None) -> Tensor | None:
        """Which of the P + W + 1 keys each row's new token sees, (n, 1, 1, P + W + 1); None if all.

        ``window``: of a sliding layer, the token itself included.
        """
        columns = torch.arange(self.width + 1, device=self.starts.device)
        seen = columns >= self.starts[:, None]  # (n, W + 1)
        if self.shared:
            seen = torch.cat([seen.new_ones(len(self.order), self.shared), seen], dim=1)
        if window is not None:
            own = self.shared + columns - self.starts[:, None]
            before = torch.arange(self.shared, device=own.device).expand(len(self.order), -1)
            seen &= torch.cat([before, own], dim=1) > self.lengths[:, None] - window
        return None if bool(seen.all()) else seen[:, None, None]

    def attend(
        self,
        layer: int,
        query: Tensor,  # (n, H, 1, d)
        key: Tensor,  # (n, K, 1, d)
        value: Tensor,  # (n, K, 1, d)
        visible: Tensor | None,
        scale: float,
        softcap: float | None,
    ) -> Tensor:
        """Append the new token's key and value and attend to everything, (n, 1, H, d)."""
        n, heads, _, size = query.shape
        end = self.width + 1
        keys, values = (tensor[:n, :, :end] for tensor in self.own[layer])
        keys[:, :, -1], values[:, :, -1] = key[:, :, 0], value[:, :, 0]
        stacked = query.reshape(n, key.shape[1], -1, size)  # (n, K, G, d)
        scores = torch.matmul(stacked, keys.transpose(2, 3))  # (n, K, G, W + 1)
        if self.beginning:
            begun_keys, begun_values = self.beginning[layer]
            scores = torch.cat([_of_all(stacked, begun_keys.transpose(1, 2)), scores], dim=-1)
        scores = scores.float() * scale
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if visible is not None:
            scores = scores.masked_fill(~visible, _MASKED)
        weights = softmax(scores, dim=-1).to(values.dtype)
        output = torch.matmul(weights[..., self.shared :], values)  # (n, K, G, d)
        if self.beginning:
            output = output + _of_all(weights[..., : self.shared], begun_values)
        return output.reshape(n, 1, heads, values.shape[-1])


def _of_all(rows: Tensor, shared: Tensor) -> Tensor:
    """What every row's (n, K, G, a) gives with the same (K, a, b): one product per head instead of one per row."""
    n, heads, group, inner = rows.shape
    stacked = rows.transpose(0, 1).reshape(heads, n * group, inner)
    return torch.matmul(stacked, shared).view(heads, n, group, -1).transpose(0, 1)


@dataclass
class Rows:
    """All rows of a batch, group by group. ``windows``: per layer the sliding window, or None."""

    groups: list[Group]
    windows: Sequence[int | None]
    _visible: list[dict[int | None, Tensor | None]] = field(default_factory=list)

    @property
    def order(self) -> list[int]:
        """Whose each row is."""
        return [name for group in self.groups for name in group.order]

    def drop(self, gone: Iterable[int]) -> None:
        """Let these rows go; a group without rows goes with its beginning."""
        left = set(gone)
        for group in self.groups:
            group.drop([name for name in group.order if name in left])
        self.groups = [group for group in self.groups if group.order]

    def begin_step(self) -> Tensor:
        """Make room for one more token; its position in every row (B, 1)."""
        for group in self.groups:
            group.make_room()
        windows = set(self.windows)
        self._visible = [{window: group.visible(window) for window in windows} for group in self.groups]
        return torch.cat([group.lengths for group in self.groups])[:, None]

    def attend(
        self,
        layer: int,
        query: Tensor,  # (B, H, 1, d), positions and norms applied
        key: Tensor,  # (B, K, 1, d)
        value: Tensor,  # (B, K, 1, d)
        scale: float,
        softcap: float | None,
    ) -> Tensor:
        """Attention of every row's new token in one layer, (B, 1, H, d)."""
        outputs, first = [], 0
        for group, visible in zip(self.groups, self._visible, strict=True):
            part = slice(first, first + len(group.order))
            seen = visible[self.windows[layer]]
            outputs.append(group.attend(layer, query[part], key[part], value[part], seen, scale, softcap))
            first = part.stop
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def end_step(self) -> None:
        """Count the token that every layer has appended."""
        for group in self.groups:
            group.width += 1
