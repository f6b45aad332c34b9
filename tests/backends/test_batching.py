"""Dividing prompts into groups and passes: by hand, and against every other division of small lists."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from mdqa.backends.batching import Alike, alike, passes
from mdqa.backends.prefix import common_length

ALL = 10**6


def row(*parts: tuple[int, int]) -> tuple[int, ...]:
    """Token ids: each part is (what, how often)."""
    return tuple(token for token, count in parts for _ in range(count))


def computed(rows: Sequence[Sequence[int]], groups: Sequence[Alike], worth: int) -> int:
    """Tokens through the model, with what the beginnings' own passes cost."""
    whole = sum(len(row) for row in rows)
    return whole - sum((len(g.rows) - 1) * g.shared - worth for g in groups if g.shared)


def test_two_roles_in_one_list_are_two_groups() -> None:
    first = [row((1, 20), (2, 100), (token, 30)) for token in (7, 8, 9)]
    second = [row((1, 20), (3, 300), (token, 30)) for token in (7, 8, 9)]
    mixed = [first[0], second[0], first[1], second[1], first[2], second[2]]
    assert alike(mixed, [ALL] * 6, 24) == [Alike((0, 2, 4), 120), Alike((1, 3, 5), 320)]


def test_what_shares_nothing_worth_a_pass_is_one_group() -> None:
    rows = [row((5, 10), (token, 30)) for token in (3, 1, 2)]
    assert alike(rows, [ALL] * 3, 24) == [Alike((0, 1, 2), 0)]
    assert alike(rows, [ALL] * 3, 19) == [Alike((0, 1, 2), 10)]
    assert alike([row((4, 9))], [ALL], 0) == [Alike((0,), 0)]
    assert alike([], [], 24) == []


def test_a_beginning_leaves_what_a_row_needs_for_itself() -> None:
    same = [row((6, 100))] * 3
    assert alike(same, [99, 60, 99], 24) == [Alike((0, 1, 2), 60)]
    assert alike(same, [99, 0, 99], 24) == [Alike((0, 2), 99), Alike((1,), 0)]


def test_no_division_into_groups_computes_less() -> None:
    draw = random.Random(4)
    for _ in range(60):
        rows = [tuple(draw.choice((1, 1, 1, 2)) for _ in range(draw.randint(3, 14))) for _ in range(draw.randint(1, 6))]
        worth = draw.choice((0, 2, 5))
        most = [len(row) - 1 for row in rows]
        groups = alike(rows, most, worth)
        assert sorted(i for group in groups for i in group.rows) == list(range(len(rows)))
        for group in groups:
            members = [rows[i] for i in group.rows]
            assert group.shared <= min([most[i] for i in group.rows] + [common_length(members)])
        order = sorted(range(len(rows)), key=lambda i: rows[i][: most[i]])
        for other in runs(order):
            tried = [Alike(tuple(p), min([most[i] for i in p] + [common_length([rows[i] for i in p])])) for p in other]
            kept = [group for group in tried if (len(group.rows) - 1) * group.shared > worth]
            assert computed(rows, groups, worth) <= computed(rows, kept, worth)


def runs(things: list[int]) -> Iterator[list[list[int]]]:
    """All ways to cut a list into pieces."""
    for count in range(len(things)):
        for cuts in combinations(range(1, len(things)), count):
            yield [things[a:b] for a, b in pairwise((0, *cuts, len(things)))]


def partitions(things: list[int]) -> Iterator[list[list[int]]]:
    """All ways to divide a list into parts."""
    if not things:
        yield []
        return
    first, rest = things[0], things[1:]
    for count in range(len(rest) + 1):
        for with_first in combinations(rest, count):
            left = [thing for thing in rest if thing not in with_first]
            for others in partitions(left):
                yield [[first, *with_first], *others]


def padded(lengths: Sequence[int], division: Sequence[Sequence[int]], worth: int) -> int:
    return sum(worth + len(part) * max(lengths[i] for i in part) for part in division)


def test_passes_pad_as_little_as_passes_are_worth() -> None:
    lengths = [250, 30, 28, 240, 60]
    options = {"shared": 0, "budget": 10**6, "pad": True}
    assert passes(lengths, worth=0, **options) == [[2], [1], [4], [3], [0]]
    assert passes(lengths, worth=24, **options) == [[2, 1], [4], [3, 0]]
    assert passes(lengths, worth=10**6, **options) == [[2, 1, 4, 3, 0]]


def test_passes_keep_to_the_budget_and_to_equal_lengths() -> None:
    assert passes([10] * 5, shared=90, worth=24, budget=300, pad=True) == [[0, 1], [2, 3, 4]]
    assert passes([500], shared=90, worth=24, budget=300, pad=True) == [[0]]
    assert passes([10, 12, 10], shared=0, worth=24, budget=300, pad=False) == [[0, 2], [1]]
    assert passes([], shared=0, worth=24, budget=300, pad=True) == []


def test_no_division_into_passes_is_cheaper() -> None:
    draw = random.Random(5)
    for _ in range(60):
        lengths = [draw.randint(1, 60) for _ in range(draw.randint(1, 6))]
        shared, worth, budget = draw.randint(0, 20), draw.randint(0, 30), draw.randint(60, 300)
        found = passes(lengths, shared=shared, worth=worth, budget=budget, pad=True)
        assert sorted(i for part in found for i in part) == list(range(len(lengths)))
        for other in partitions(list(range(len(lengths)))):
            if all(len(p) == 1 or len(p) * (shared + max(lengths[i] for i in p)) <= budget for p in other):
                assert padded(lengths, found, worth) <= padded(lengths, other, worth)


def test_many_rows_are_divided_quickly_and_completely() -> None:
    rows = [row((1, 50), (token, 5)) for token in range(300)]
    groups = alike(rows, [54] * 300, 24)
    assert sorted(i for group in groups for i in group.rows) == list(range(300))
    assert max(len(group.rows) for group in groups) == 256
    assert all(group.shared == 50 for group in groups)
