"""What runs are found by: their facets as they are written, and counted under a filter.

What a facet means is worked out elsewhere (``mdqa.diagnosis.facets``); here they are kept and looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlite_utils import Database

from storage.encoding import clean_text

KINDS = ("agents", "judge", "treatments", "votes")
"""The kinds of disagreement, which are the names of their columns too."""

COUNTED = ("method", "model", "benchmark", "correct", "status", "diagnosis", "stage")
"""Columns whose values are counted; each run has one value of each. ``disagreement`` is counted beside them."""

CORRECT: Mapping[int | None, str] = {1: "right", 0: "wrong", None: "unknown"}
"""Words for whether a run's answer is right, as filters name them."""


class RunFacets(Protocol):
    """The facets of a run, as ``mdqa.diagnosis.facets.Facets`` holds them."""

    @property
    def benchmark(self) -> str:
        """Where the question comes from."""

    @property
    def diagnosis(self) -> str:
        """The verdict on a wrong answer."""

    @property
    def stage(self) -> str:
        """The name of the stage where that happened."""

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Who disagreed, of :data:`KINDS`."""

    @property
    def margin(self) -> float | None:
        """How near another outcome was."""

    @property
    def version(self) -> int:
        """The version of their meaning, from 1."""


@dataclass(frozen=True)
class FacetCounts:
    """How many runs there are under a filter, in all and per value of every facet.

    ``values``: per facet (:data:`COUNTED` and ``disagreement``) the number of runs by value, the most frequent first.
    A facet's own part of the filter does not count for it: with one method chosen, the numbers of the others are
    those of choosing them instead. ``unknown``: ended runs of the filter whose facets were not worked out yet.
    """

    total: int
    values: Mapping[str, Mapping[str, int]]
    unknown: int = 0


def write_facets(db: Database, run: str, facets: RunFacets) -> None:
    """Keep a run's facets. Call it inside a write transaction."""
    values: list[Any] = [clean_text(facets.benchmark), clean_text(facets.diagnosis), clean_text(facets.stage)]
    values += [kind in facets.disagreements for kind in KINDS]
    columns = ", ".join(f"{name} = ?" for name in ("benchmark", "diagnosis", "stage", *KINDS, "margin", "version"))
    db.execute(f"update run_facets set {columns} where run = ?", [*values, facets.margin, facets.version, run])


def counted(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, str]) -> FacetCounts:
    """The counts from groups of equal rows (``number`` of them each) under what is ``chosen`` of the facets."""
    values: dict[str, Counter[str]] = {name: Counter() for name in (*COUNTED, "disagreement")}
    total = unknown = 0
    for row in rows:
        number, own = int(row["number"]), dict(_values(row))
        misses = [name for name, value in chosen.items() if value and value not in own[name]]
        if not misses:
            total += number
            unknown += number * (not row["version"] and row["status"] != "running")
        for name, found in own.items():
            if all(miss == name for miss in misses):
                values[name].update(dict.fromkeys(found, number))
    return FacetCounts(total, {name: dict(counts.most_common()) for name, counts in values.items()}, unknown)


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in COUNTED:
        value = CORRECT[row[name]] if name == "correct" else row[name]
        yield name, (value,) if value else ()
    yield "disagreement", tuple(kind for kind in KINDS if row[kind])
