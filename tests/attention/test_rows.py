"""Rows that share a beginning: attention over both parts is attention over the whole, whatever else happens to rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mdqa.attention.rows import Group, Rows

HEADS, KEY_HEADS, SIZE, LAYERS = 6, 2, 8, 2


def sequence(length: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (K, T, d) of one row, layer by layer."""
    draw = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(KEY_HEADS, length, SIZE, generator=draw), torch.randn(KEY_HEADS, length, SIZE, generator=draw))
        for _ in range(LAYERS)
    ]


def group(names: list[int], shared: int, lengths: list[int], room: int = 0) -> tuple[Group, dict[int, list[Tensor]]]:
    """A group, and per name each layer's keys and values (K, T, d) in one piece, alternating."""
    begun = sequence(shared, seed=names[0] + 100)
    width = max(lengths)
    own = [tuple(torch.full((len(names), KEY_HEADS, width + room, SIZE), 9.0) for _ in range(2)) for _ in range(LAYERS)]
    whole: dict[int, list[Tensor]] = {}
    for place, (name, length) in enumerate(zip(names, lengths, strict=True)):
        row = sequence(length, seed=name)
        whole[name] = []
        for layer in range(LAYERS):
            for which in range(2):
                own[layer][which][place, :, width - length : width] = row[layer][which]
                whole[name].append(torch.cat([begun[layer][which], row[layer][which]], dim=1))
    starts = torch.tensor([width - length for length in lengths])
    return Group(list(names), starts, own, width, begun if shared else ()), whole  # type: ignore[arg-type]


def expected(query: Tensor, keys: Tensor, values: Tensor, window: int | None, softcap: float | None) -> Tensor:
    """Attention of one row's last token, (H, d), straight from the definition."""
    out = []
    for head in range(HEADS):
        k, v = keys[head // (HEADS // KEY_HEADS)], values[head // (HEADS // KEY_HEADS)]
        scores = k @ query[head] * 0.5
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if window is not None:
            scores[: max(len(scores) - window, 0)] = -torch.inf
        out.append(torch.softmax(scores, dim=0) @ v)
    return torch.stack(out)


def step(rows: Rows, whole: dict[int, list[Tensor]], seed: int, softcap: float | None = None) -> None:
    """One new token for every row; every layer's output must be that of its row alone."""
    draw = torch.Generator().manual_seed(seed)
    positions = rows.begin_step()
    order = rows.order
    assert positions[:, 0].tolist() == [whole[name][0].shape[1] for name in order]
    for layer in range(LAYERS):
        query = torch.randn(len(order), HEADS, 1, SIZE, generator=draw)
        new = torch.randn(2, len(order), KEY_HEADS, 1, SIZE, generator=draw)
        output = rows.attend(layer, query, new[0], new[1], 0.5, softcap)
        assert output.shape == (len(order), 1, HEADS, SIZE)
        for place, name in enumerate(order):
            keys, values = (torch.cat([whole[name][2 * layer + which], new[which, place]], 1) for which in range(2))
            whole[name][2 * layer : 2 * layer + 2] = [keys, values]
            alone = expected(query[place, :, 0], keys, values, rows.windows[layer], softcap)
            torch.testing.assert_close(output[place, 0], alone, atol=1e-5, rtol=1e-4)
    rows.end_step()


@pytest.mark.parametrize(("windows", "softcap"), [((None, None), None), ((3, None), None), ((9, 5), 2.0)])
def test_steps_drops_and_growth_leave_every_row_what_it_is_alone(
    windows: tuple[int | None, ...], softcap: float | None
) -> None:
    first, whole = group([0, 1, 2], shared=6, lengths=[4, 1, 7], room=2)
    second, more = group([3, 4], shared=0, lengths=[5, 2])
    third, one = group([5], shared=11, lengths=[3])
    whole |= more | one
    rows = Rows([first, second, third], windows)
    assert rows.order == [0, 1, 2, 3, 4, 5]
    for seed in range(3):  # beyond the room of the first group, and from none in the others
        step(rows, whole, seed, softcap)
    rows.drop([0, 3])
    assert sorted(rows.order) == [1, 2, 4, 5]
    step(rows, whole, 3, softcap)
    rows.drop([5])
    assert len(rows.groups) == 2
    rows.drop([2])
    for seed in range(4, 70):  # room is made again
        step(rows, whole, seed, softcap)
    rows.drop([1, 4])
    assert rows.order == []


def test_a_beginning_is_never_written_to() -> None:
    made, whole = group([0, 1], shared=6, lengths=[3, 2], room=4)
    before = [(keys.clone(), values.clone()) for keys, values in made.beginning]
    rows = Rows([made], (None, None))
    for seed in range(8):
        step(rows, whole, seed)
    for (keys, values), (kept_keys, kept_values) in zip(made.beginning, before, strict=True):
        assert torch.equal(keys, kept_keys)
        assert torch.equal(values, kept_values)


def test_what_is_seen_is_not_masked_without_need() -> None:
    made, _ = group([0, 1], shared=6, lengths=[3, 3])
    assert made.visible(None) is None
    assert made.visible(10) is None  # 6 + 3 + the new token
    nine = made.visible(9)
    assert nine is not None
    assert nine[:, 0, 0].tolist() == [[False] + [True] * 9] * 2
    uneven, _ = group([0, 1], shared=1, lengths=[1, 3])
    seen = uneven.visible(None)
    assert seen is not None
    assert seen[:, 0, 0].int().tolist() == [[1, 0, 0, 1, 1], [1, 1, 1, 1, 1]]
    slid = uneven.visible(2)
    assert slid is not None
    assert slid[:, 0, 0].int().tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
