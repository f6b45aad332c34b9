"""Ratings of items by people, and what a queue says of each item: the adjudicated label, else the majority's.

A rating is whatever has the attributes of :class:`Rated`: entries of a database's log, lines of a file. The label is
one of ``first``, ``second`` (the item's candidates in canonical order, :mod:`mdqa.candidates`), ``both``, ``neither``
and ``cannot_tell``. All functions take ratings of which each annotator has one per item; of several the later counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

CHOICES = ("first", "second")
"""Labels that decide for one of the two candidates."""

CANNOT_TELL = "cannot_tell"

IMPORTED = "import-"
"""How the tokens of labels begin that were made elsewhere, where nobody knows which candidate came first."""


class Rated(Protocol):
    """What an annotator said of an item. ``seconds`` is time at work, ``swapped``: the second candidate came first."""

    @property
    def item(self) -> int:
        """The item's number in its queue's database."""

    @property
    def run(self) -> str:
        """The run that the item is about."""

    @property
    def annotator(self) -> str:
        """Who said it."""

    @property
    def label(self) -> str:
        """The label."""

    @property
    def evidence(self) -> tuple[str, ...]:
        """Ids of the documents marked as evidence."""

    @property
    def note(self) -> str:
        """What was written beside it."""

    @property
    def seconds(self) -> float:
        """Time at work on the item."""

    @property
    def swapped(self) -> bool:
        """Whether the second candidate was shown first."""

    @property
    def token(self) -> str:
        """What tells the form from others; of labels made elsewhere it begins with :data:`IMPORTED`."""

    @property
    def created(self) -> str:
        """When it was said, as UTC in ISO format."""


@dataclass(frozen=True)
class Consensus:
    """What people together say of an item.

    ``label`` is the adjudicated one, else that of more annotators than any other, else empty (``source`` ``tie``).
    ``votes``: the ``n`` annotators per label, most first. ``marks``: annotators who marked a document as evidence, by
    document; ``markers``: how many marked any (marking is voluntary: who marks nothing says nothing of documents).
    ``evidence``: the documents that more than half of the markers marked, those with most marks first.
    """

    item: int
    run: str
    label: str
    source: Literal["adjudicated", "majority", "tie"]
    votes: Mapping[str, int]
    evidence: tuple[str, ...]
    marks: Mapping[str, int]
    markers: int
    n: int

    @property
    def contested(self) -> bool:
        """Whether annotators gave different labels."""
        return len(self.votes) > 1


def latest(ratings: Iterable[Rated]) -> list[Rated]:
    """Of each annotator the last rating of each item, in the order of their first."""
    return list({(rating.item, rating.annotator): rating for rating in ratings}.values())


def by_item(ratings: Iterable[Rated]) -> dict[int, list[Rated]]:
    """:func:`latest` by item."""
    found: dict[int, list[Rated]] = {}
    for rating in latest(ratings):
        found.setdefault(rating.item, []).append(rating)
    return found


def majority(labels: Iterable[str]) -> str:
    """The label that more raters gave than any other; empty for a tie and for no labels."""
    first = Counter(labels).most_common(2)
    return first[0][0] if first and (len(first) == 1 or first[0][1] > first[1][1]) else ""


def consensus(ratings: Iterable[Rated], adjudicated: Mapping[int, Rated]) -> dict[int, Consensus]:
    """What people say of each item, by item, in the order in which items were first labelled.

    ``adjudicated``: by item the decision that counts before all votes. An item nobody labelled can have one, too; its
    marks are then those of the decision.
    """
    grouped = by_item(ratings)
    for item in adjudicated:
        grouped.setdefault(item, [])
    return {item: _of_item(item, mine, adjudicated.get(item)) for item, mine in grouped.items()}


def _of_item(item: int, mine: Sequence[Rated], decided: Rated | None) -> Consensus:
    votes = dict(Counter(rating.label for rating in mine).most_common())
    label = decided.label if decided is not None else majority(rating.label for rating in mine)
    marked = mine or ([decided] if decided is not None else [])
    marks = dict(Counter(document for rating in marked for document in dict.fromkeys(rating.evidence)).most_common())
    markers = sum(bool(rating.evidence) for rating in marked)
    evidence = tuple(document for document, number in marks.items() if 2 * number > markers)
    source: Literal["adjudicated", "majority", "tie"] = (
        "adjudicated" if decided is not None else "majority" if label else "tie"
    )
    return Consensus(item, (decided or mine[0]).run, label, source, votes, evidence, marks, markers, len(mine))


def contested(found: Mapping[int, Consensus]) -> list[Consensus]:
    """The items on which annotators differ, those without a decision first, then the most evenly split first."""
    differing = [one for one in found.values() if one.contested]
    return sorted(differing, key=lambda one: (one.source == "adjudicated", max(one.votes.values()) / one.n, one.item))
