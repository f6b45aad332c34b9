"""Who agrees with whom: people together, every pair of people, people with judges, judges with judges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from mdqa.agreement.judges import by_question, judge_labels
from mdqa.agreement.ratings import Rated, consensus, latest
from mdqa.records import RunResult
from mdqa.statistics.agreement import (
    MISSING,
    RESAMPLES,
    Coefficient,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
    table_of,
)

Kind = Literal["people", "person-person", "person-judge", "judge-judge", "judges"]

MOST_PAIRS = 60
"""Pairs of people, and of people and judges, that are listed: those with the most items in common."""

MAJORITY = "Majority of people"
"""The rater that says what most people said, or what was adjudicated."""

COEFFICIENTS = ("percent", "cohen", "fleiss", "krippendorff")

COLUMNS = (
    *("queue", "kind", "one", "two", "coefficient", "value", "low", "high", "items", "ratings", "pairs"),
    *("status", "note"),
)
"""Fields of a coefficient as a flat row."""

Triple = tuple[Hashable, str, str]
"""Item, rater, label."""


@dataclass(frozen=True)
class Line:
    """Agreement of two raters, or of all raters of a kind (``two`` empty).

    Cohen's kappa is there for two raters, Fleiss' kappa for three or more (of two raters it would be Scott's pi, a
    second coefficient for the same thing). ``None``: does not apply.
    """

    kind: Kind
    one: str
    two: str
    percent: Coefficient
    cohen: Coefficient | None
    fleiss: Coefficient | None
    krippendorff: Coefficient

    def coefficient(self, name: str) -> Coefficient | None:
        """One of :data:`COEFFICIENTS`."""
        found: Coefficient | None = getattr(self, name)
        return found


@dataclass(frozen=True)
class Table:
    """All lines, and how many pairs with an item in common are not listed (:data:`MOST_PAIRS`)."""

    lines: tuple[Line, ...]
    left_out: int


def agreement_table(
    ratings: Iterable[Rated],
    adjudicated: Mapping[int, Rated],
    runs: Mapping[str, RunResult],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Table:
    """Agreement on the items of a queue.

    Args:
        ratings: what people said; adjudicated decisions are not among them.
        adjudicated: decisions by item; they count in :data:`MAJORITY` only.
        runs: the runs of the items by id. Judges with judges are compared over all of them, labelled or not.
        resamples: draws of every interval.
        seed: of the draws.
    """
    mine = latest(ratings)
    together = consensus(mine, adjudicated)
    judged = judge_labels(runs)
    called = _told_apart({rating.annotator for rating in mine}, {MAJORITY, *(judge for judge, _ in judged.values())})
    people: list[Triple] = [(rating.item, called[rating.annotator], rating.label) for rating in mine]
    lines = []
    names = _raters(people)
    if len(names) not in (1, 2):  # of two people, their pair says it all
        lines.append(_line("people", f"All {len(names)} people" if names else "People", "", people, resamples, seed))
    pairs, left = _pairs("person-person", combinations(names, 2), people, resamples, seed)
    lines += pairs
    with_judges: list[Triple] = [
        (one.item, judged[one.run][0], judged[one.run][1]) for one in together.values() if one.run in judged
    ]
    decided: list[Triple] = [(one.item, MAJORITY, one.label) for one in together.values() if one.label]
    judges = _raters(with_judges)
    crossed = [(name, judge) for name in (MAJORITY, *names) for judge in judges]
    found, more = _pairs("person-judge", crossed, [*people, *decided, *with_judges], resamples, seed)
    lines += found
    left += more
    alone = by_question(runs)
    judges = _raters(alone)
    if len(judges) > 2:
        lines.append(_line("judges", f"All {len(judges)} judges", "", alone, resamples, seed))
    found, more = _pairs("judge-judge", combinations(judges, 2), alone, resamples, seed)
    return Table((*lines, *found), left + more)


def agreement_rows(table: Table, queue: str) -> list[dict[str, Any]]:
    """The coefficients as flat rows (:data:`COLUMNS`), those that do not apply left out."""
    return [
        {"queue": queue, "kind": line.kind, "one": line.one, "two": line.two, "coefficient": name} | vars(coefficient)
        for line in table.lines
        for name in COEFFICIENTS
        if (coefficient := line.coefficient(name)) is not None
    ]


def _told_apart(people: Set[str], others: Set[str]) -> dict[str, str]:
    """What people are called in the table: a name that is also a judge's gets a word more, for any name may sign in."""
    called = {name: name for name in people}
    for name in sorted(people & others):
        while called[name] in people | others:
            called[name] += " (person)"
    return called


def _raters(triples: Iterable[Triple]) -> list[str]:
    return sorted({rater for _, rater, _ in triples}, key=lambda name: (name.casefold(), name))


def _pairs(
    kind: Kind, pairs: Iterable[tuple[str, str]], triples: Sequence[Triple], resamples: int, seed: int
) -> tuple[list[Line], int]:
    """The lines of the pairs with the most items in common, in the order of ``pairs``; and how many are left out.

    Where no pair has an item in common, the pairs stand there all the same, up to the limit: they say so in words.
    """
    table, _, raters = table_of(triples)
    said = table != MISSING
    column = {name: place for place, name in enumerate(raters)}
    every = list(pairs)
    shared = [
        int((said[:, column[one]] & said[:, column[two]]).sum()) if one in column and two in column else 0
        for one, two in every
    ]
    wanted = [place for place, number in enumerate(shared) if number] or list(range(len(every)))
    best = sorted(wanted, key=lambda place: -shared[place])[:MOST_PAIRS]
    lines = []
    for place in sorted(best):
        one, two = every[place]
        lines.append(_line(kind, one, two, [t for t in triples if t[1] in (one, two)], resamples, seed))
    return lines, len(wanted) - len(best)


def _line(kind: Kind, one: str, two: str, triples: Sequence[Triple], resamples: int, seed: int) -> Line:
    table, _, raters = table_of(triples)
    if two and len(raters) < 2:  # one of them said nothing at all
        table = np.concatenate([table, np.full((len(table), 2 - len(raters)), MISSING)], axis=1)

    def of(coefficient: Callable[..., Coefficient]) -> Coefficient:
        return coefficient(table, resamples=resamples, seed=seed)

    several = len(raters) > 2
    return Line(
        kind,
        one,
        two,
        percent=of(percent_agreement),
        cohen=of(cohen_kappa) if not several and table.shape[1] == 2 else None,
        fleiss=of(fleiss_kappa) if several else None,
        krippendorff=of(krippendorff_alpha),
    )
