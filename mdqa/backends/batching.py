"""Which prompts go through the model together: groups that begin alike, and passes with little padding. Pure.

Both are the cheapest division of a sorted list into runs, found exactly. Costs are counted in tokens through the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mdqa.backends.prefix import common_length

LONGEST_RUN = 256
"""Rows of one run at most, which bounds the search."""


@dataclass(frozen=True)
class Alike:
    """Rows (indices) whose first ``shared`` tokens are the same; 0 where sharing is not worth a pass."""

    rows: tuple[int, ...]
    shared: int


def alike(rows: Sequence[Sequence[int]], most: Sequence[int], worth: int) -> list[Alike]:
    """Groups of rows that begin alike, so that the fewest tokens are computed.

    Args:
        rows: token ids.
        most: per row how many of its first tokens may be shared.
        worth: tokens that another group has to save.

    All rows that share nothing are one group. Rows and groups keep the order of the input. A group is a run of the
    sorted rows, so that one inside another (rows that share a little, some of them a lot) is not looked for.
    """
    heads = [tuple(row[:limit]) for row, limit in zip(rows, most, strict=True)]
    order = sorted(range(len(rows)), key=lambda i: heads[i])
    common = [common_length([heads[a], heads[b]]) for a, b in pairwise(order)]

    def costs(last: int) -> Iterator[tuple[int, int]]:
        yield last, 0
        shared = len(heads[order[last]])
        for first in range(last - 1, -1, -1):
            shared = min(shared, common[first])
            if shared == 0:
                return
            yield first, min(0, worth - (last - first) * shared)

    groups: list[Alike] = []
    single: list[int] = []
    for run in _cheapest(len(rows), costs):
        members = [order[place] for place in run]
        shared = min((common[place] for place in run[:-1]), default=0)
        if (len(members) - 1) * shared > worth:
            groups.append(Alike(tuple(sorted(members)), shared))
        else:
            single += members
    if single:
        groups.append(Alike(tuple(sorted(single)), 0))
    return sorted(groups, key=lambda group: group.rows[0])


def passes(lengths: Sequence[int], *, shared: int, worth: int, budget: int, pad: bool) -> list[list[int]]:
    """Rows (indices) that go through the model in one pass each, the shortest first.

    Args:
        lengths: tokens of each row after what they share.
        shared: tokens before them, which every row of a pass holds.
        worth: tokens that another pass has to save.
        budget: tokens that the rows of a pass may hold, padding included; a single row may hold more.
        pad: whether rows of a pass may have different lengths.
    """
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))

    def costs(last: int) -> Iterator[tuple[int, int]]:
        longest = lengths[order[last]]
        for count in range(1, last + 2):
            first = last - count + 1
            over = count * (shared + longest) > budget
            if count > 1 and (over or (not pad and lengths[order[first]] != longest)):
                return
            yield first, worth + count * longest

    return [[order[place] for place in run] for run in _cheapest(len(lengths), costs)]


def _cheapest(count: int, costs: Callable[[int], Iterator[tuple[int, int]]]) -> list[range]:
    """The division of 0 to ``count`` - 1 into runs with the smallest sum of costs.

    ``costs`` gives for a run's last place, per first place from the last one backwards, what that run costs.
    """
    best = [(0, 0)]  # per end: smallest cost, and where the last run begins
    for last in range(count):
        runs = zip(range(LONGEST_RUN), costs(last), strict=False)
        best.append(min((best[first][0] + cost, first) for _, (first, cost) in runs))
    found: list[range] = []
    end = count
    while end:
        begin = best[end][1]
        found.append(range(begin, end))
        end = begin
    return found[::-1]
