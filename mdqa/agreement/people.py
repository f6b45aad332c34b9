"""Every annotator by themselves: how much they did, how often others say the same, how fast, whether order sways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from mdqa.agreement.ratings import CHOICES, IMPORTED, Rated, by_item, latest, majority
from mdqa.statistics.bootstrap import Interval, mean_interval

TENS = 10
"""Labels of a stretch."""

RESAMPLES = 2_000


@dataclass(frozen=True)
class Person:
    """An annotator. Shares come with their number of items and a 95% bootstrap interval; None where there are none.

    ``with_others``: share of the items on which the majority of the others said the same, over items where at least one
    other annotator said something and the others have a majority. ``with_adjudicated``: over adjudicated items.
    ``first_shown``: share of the choices for one candidate that went to the one shown first; 0.5 is no bias, as the
    order is drawn (of labels made elsewhere it is unknown, and one answer alone has none). ``seconds``: the median time
    at work on an item.
    """

    name: str
    n: int
    labels: Mapping[str, int]
    with_others: Interval | None
    with_adjudicated: Interval | None
    first_shown: Interval | None
    seconds: float | None


@dataclass(frozen=True)
class Stretch:
    """Part of an annotator's work: a day (``2026-11-30``) or ten labels in a row (``1-10``), in order of ``start``."""

    name: str
    stretch: str
    start: int
    with_others: Interval | None
    n: int


def people(
    ratings: Iterable[Rated], adjudicated: Mapping[int, Rated], *, unordered: Container[str] = ()
) -> list[Person]:
    """All annotators by name. ``unordered``: the runs with one answer, which is shown first and last."""
    mine = latest(ratings)
    same = _with_others(mine)
    found = []
    for name in _names(mine):
        own = [rating for rating in mine if rating.annotator == name]
        chosen = [rating for rating in own if rating.label in CHOICES and _has_order(rating, unordered)]
        decided = [rating for rating in own if rating.item in adjudicated]
        found.append(
            Person(
                name,
                len(own),
                dict(Counter(rating.label for rating in own).most_common()),
                _share([same[rating.item, name] for rating in own if (rating.item, name) in same]),
                _share([rating.label == adjudicated[rating.item].label for rating in decided]),
                _share([(rating.label == "first") != rating.swapped for rating in chosen]),
                median(rating.seconds for rating in own) if own else None,
            )
        )
    return found


def over_time(ratings: Iterable[Rated], *, by: str = "tens") -> list[Stretch]:
    """Agreement with the others' majority over each annotator's work, ``by`` ``day`` or ``tens`` of labels.

    Everybody's labels are put in the order in which they were given; a stretch with nobody to compare with has none.
    """
    mine = latest(ratings)
    same = _with_others(mine)
    found = []
    for name in _names(mine):
        own = sorted((rating for rating in mine if rating.annotator == name), key=lambda rating: rating.created)
        parts: dict[str, list[Rated]] = {}
        for place, rating in enumerate(own):
            first = place // TENS * TENS
            key = rating.created[:10] if by == "day" else f"{first + 1}-{first + TENS}"
            parts.setdefault(key, []).append(rating)
        for start, (key, part) in enumerate(parts.items()):
            compared = [same[rating.item, name] for rating in part if (rating.item, name) in same]
            found.append(Stretch(name, key, start, _share(compared), len(part)))
    return found


def _has_order(rating: Rated, unordered: Container[str]) -> bool:
    """Whether one of two candidates was shown first, and it is known which."""
    return rating.run not in unordered and not rating.token.startswith(IMPORTED)


def _names(ratings: Sequence[Rated]) -> list[str]:
    return sorted({rating.annotator for rating in ratings}, key=lambda name: (name.casefold(), name))


def _with_others(ratings: Sequence[Rated]) -> dict[tuple[int, str], bool]:
    """By item and annotator whether the others' majority said the same; without an entry where they have none."""
    found = {}
    for item, said in by_item(ratings).items():
        for rating in said:
            others = majority(other.label for other in said if other is not rating)
            if others:
                found[item, rating.annotator] = rating.label == others
    return found


def _share(values: Sequence[bool]) -> Interval | None:
    return mean_interval([float(value) for value in values], resamples=RESAMPLES) if values else None
