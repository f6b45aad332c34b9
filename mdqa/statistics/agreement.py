"""Agreement of raters on nominal labels, with what is missing, intervals over items, and reasons where it is undefined.

Ratings come as a table (items, raters) of category numbers counted from 0, with :data:`MISSING` where a rater said
nothing. Every coefficient is a function of sums over items, so that the bootstrap draws items whole and needs no loop
over draws. Written here and not taken from a package: ``krippendorff`` is under the GPL, and of statsmodels nothing
else would be used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mdqa.statistics.clustered import drawn, percentiles

MISSING = -1

RESAMPLES = 2_000
"""Draws of an interval; a page has dozens of them."""

Status = Literal["ok", "no_overlap", "one_rater", "one_category", "not_two_raters"]


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement, or the reason why there is none.

    ``items`` and ``ratings`` are those it rests on, ``pairs`` the pairs of ratings of one item among them. ``low`` and
    ``high`` bound the bootstrap interval over items; None without a value, or where no draw has one. ``note`` says in a
    sentence why there is no value, or what was left out.
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    ratings: int
    pairs: int
    status: Status = "ok"
    note: str = ""


Sums = Callable[[np.ndarray], np.ndarray]
"""From sums over items, (draws, k), to the coefficient of each draw, (draws,); NaN where it is undefined."""


Said = tuple[Hashable, Hashable, Hashable]
"""Item, rater, label."""


def table_of(ratings: Iterable[Said]) -> tuple[np.ndarray, list[Hashable], list[Hashable]]:
    """The table of (item, rater, label) triples, with its items and its raters in order of appearance.

    A later rating of an item by a rater takes the place of an earlier one.
    """
    found = list(ratings)
    items, raters, labels = (list(dict.fromkeys(triple[i] for triple in found)) for i in range(3))
    places = [{value: place for place, value in enumerate(values)} for values in (items, raters, labels)]
    table = np.full((len(items), len(raters)), MISSING, dtype=np.int64)
    for item, rater, label in found:
        table[places[0][item], places[1][rater]] = places[2][label]
    return table, items, raters


def percent_agreement(table: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> Coefficient:
    """The share of pairs of ratings of one item that are the same. Not corrected for chance.

    Args:
        table: (items, raters) of category numbers, :data:`MISSING` where there is none.
        resamples: draws of the interval.
        seed: of the draws.
    """
    counts = _counts(table)
    if (none := _nothing(table, counts)) is not None:
        return none
    counts = counts[counts.sum(axis=1) > 1]
    size = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / 2
    return _measured(counts, np.stack([agreeing, size * (size - 1) / 2], axis=1), _ratio, resamples, seed)


def cohen_kappa(table: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> Coefficient:
    """Cohen's kappa of two raters over the items that both rated (Cohen 1960), unweighted.

    Arguments as for :func:`percent_agreement`; ``table`` has two columns. Undefined where both only ever used one and
    the same category: chance would then agree always.
    """
    if table.ndim != 2 or table.shape[1] != 2:
        return _none(table, "not_two_raters", "Cohen's kappa compares exactly two raters.")
    counts = _counts(table)
    if (none := _nothing(table, counts)) is not None:
        return none
    both = table[(table != MISSING).all(axis=1)]
    k = counts.shape[1]
    cells = np.zeros((len(both), k * k))
    cells[np.arange(len(both)), both[:, 0] * k + both[:, 1]] = 1.0

    def kappa(sums: np.ndarray) -> np.ndarray:
        crossed = sums.reshape(len(sums), k, k)
        n = crossed.sum(axis=(1, 2))
        observed = np.trace(crossed, axis1=1, axis2=2) / n
        expected = (crossed.sum(axis=1) * crossed.sum(axis=2)).sum(axis=1) / n**2
        return _corrected(observed, expected)

    return _measured(counts[counts.sum(axis=1) > 1], cells, kappa, resamples, seed)


def fleiss_kappa(table: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> Coefficient:
    """Fleiss' kappa (Fleiss 1971), for any number of raters who need not be the same for every item.

    It is defined for as many ratings of every item. Where the numbers differ, the items with the most frequent number
    from two on are used (of equally frequent ones the higher), and ``note`` says how many are left out. Arguments as
    for :func:`percent_agreement`.
    """
    counts = _counts(table)
    if (none := _nothing(table, counts)) is not None:
        return none
    size = counts.sum(axis=1)
    numbers, frequency = np.unique(size[size > 1], return_counts=True)
    raters = int(numbers[frequency == frequency.max()].max())
    used = counts[size == raters]
    agreeing = (used * (used - 1)).sum(axis=1) / (raters * (raters - 1))

    def kappa(sums: np.ndarray) -> np.ndarray:
        items = sums[:, 0]
        shares = sums[:, 2:] / (items * raters)[:, None]
        return _corrected(sums[:, 1] / items, (shares**2).sum(axis=1))

    rows = np.concatenate([np.ones((len(used), 1)), agreeing[:, None], used], axis=1)
    found = _measured(used, rows, kappa, resamples, seed)
    left = int((size > 1).sum()) - len(used)
    if not left:
        return found
    words = "1 item has" if left == 1 else f"{left:,} items have"
    note = f"Over items with {raters} ratings each; {words} another number and cannot be used here."
    return replace(found, note=f"{note} {found.note}".strip())


def krippendorff_alpha(table: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> Coefficient:
    """Krippendorff's alpha for nominal data, any number of raters, with missing ratings (Krippendorff 2011).

    Items with a single rating pair with nothing and do not count. Arguments as for :func:`percent_agreement`.
    """
    counts = _counts(table)
    if (none := _nothing(table, counts)) is not None:
        return none
    used = counts[counts.sum(axis=1) > 1]
    size = used.sum(axis=1)
    differing = (used * (size[:, None] - used)).sum(axis=1) / (size - 1)

    def alpha(sums: np.ndarray) -> np.ndarray:
        values = sums[:, 1:]
        n = values.sum(axis=1)
        expected = (n**2 - (values**2).sum(axis=1)) / (n - 1)
        result = np.full(len(sums), np.nan)
        some = expected > 1e-12
        result[some] = 1 - sums[some, 0] / expected[some]
        return result

    return _measured(used, np.concatenate([differing[:, None], used], axis=1), alpha, resamples, seed)


def _counts(table: np.ndarray) -> np.ndarray:
    """(items, categories) how many raters gave each item each category; ValueError for a table that is none."""
    if table.ndim != 2 or (table.size and (not np.issubdtype(table.dtype, np.integer) or table.min() < MISSING)):
        raise ValueError(f"expected a table (items, raters) of whole numbers from {MISSING} on, got {table.shape}")
    categories = int(table.max()) + 1 if table.size else 0
    counts = np.zeros((len(table), max(categories, 1)))
    for column in table.T:
        said = column != MISSING
        counts[np.flatnonzero(said), column[said]] += 1
    return counts


def _nothing(table: np.ndarray, counts: np.ndarray) -> Coefficient | None:
    """Why no pair of ratings can be compared; None where one can."""
    if (counts.sum(axis=1) > 1).any():
        return None
    if not table.size or not (table != MISSING).any():
        return _none(table, "no_overlap", "Nobody has labelled anything yet.")
    if (table != MISSING).any(axis=0).sum() < 2:
        return _none(table, "one_rater", "Only one person has labelled; agreement needs a second one.")
    return _none(table, "no_overlap", "No item was labelled by two of them, so there is nothing to compare.")


def _none(table: np.ndarray, status: Status, note: str) -> Coefficient:
    return Coefficient(None, None, None, 0, int((table != MISSING).sum()), 0, status, note)


def _measured(counts: np.ndarray, rows: np.ndarray, of_sums: Sums, resamples: int, seed: int) -> Coefficient:
    """The coefficient of all items and its interval from draws of items. ``rows``: (items, k), summed over items."""
    size = counts.sum(axis=1)
    about = (len(counts), int(size.sum()), int((size * (size - 1) / 2).sum()))
    (value,) = of_sums(rows.sum(axis=0, keepdims=True))
    if np.isnan(value):
        note = (
            "Everybody gave every item the same label. Corrected for chance, agreement is undefined then: "
            "with one category, chance agrees always."
        )
        return Coefficient(None, None, None, *about, "one_category", note)
    draws = np.concatenate([of_sums(weights @ rows) for weights in drawn(len(rows), resamples, seed)])
    ends = percentiles(draws)
    low, high = ends if ends is not None else (None, None)
    return Coefficient(float(value), low, high, *about, "ok", _left_out(int(np.isnan(draws).sum()), len(draws)))


def _left_out(missing: int, draws: int) -> str:
    """How many draws have no value, so that the interval stands on the others; empty if all have one."""
    if not missing:
        return ""
    share = f"{missing / draws:.0%} of the" if missing >= 0.01 * draws else f"{missing:,} of {draws:,}"
    verbs = "has one category only and is" if missing == 1 else "have one category only and are"
    return f"{share} draws {verbs} left out of the interval."


def _ratio(sums: np.ndarray) -> np.ndarray:
    result: np.ndarray = sums[:, 0] / sums[:, 1]
    return result


def _corrected(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(observed - expected) / (1 - expected); NaN where chance agrees always."""
    result = np.full(len(observed), np.nan)
    some = expected < 1 - 1e-12
    result[some] = (observed[some] - expected[some]) / (1 - expected[some])
    return result
