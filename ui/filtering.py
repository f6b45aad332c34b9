"""Which stored runs the Failures tab shows, as an address says it: ``?tab=failures&method=cafe&diagnosis=dropped``.

An address holds everything, so it can be shared, and every link on the tab is one. What in it is not possible is left
out: an address comes from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, get_args
from urllib.parse import parse_qsl, urlencode

from mdqa.records import RunStatus
from storage.facets import CORRECT, KINDS
from storage.listing import ORDERS, Order, RunFilter

TAB = "failures"
BEFORE = "history"
"""What the tab was called in addresses that were given out earlier."""

MAX_TEXT = 200
MAX_PAGE = 1_000_000

FACETS: Mapping[str, str] = {
    "method": "method",
    "model": "model",
    "benchmark": "benchmark",
    "correct": "correct",
    "state": "status",
    "diagnosis": "diagnosis",
    "stage": "stage",
    "disagreement": "disagreement",
}
"""Names of facets in an address, and the fields of a filter that they set."""

CLOSED: Mapping[str, tuple[str, ...]] = {
    "correct": tuple(CORRECT.values()),
    "state": get_args(RunStatus),
    "disagreement": KINDS,
}
"""Facets with a fixed list of values."""


def tab_of(name: str) -> str:
    """The tab that ``?tab=`` means."""
    return TAB if name == BEFORE else name


@dataclass(frozen=True)
class Wanted:
    """A filter, an order and a page of it (from 0)."""

    filters: RunFilter = field(default_factory=RunFilter)
    order: Order = "newest"
    page: int = 0

    @property
    def said(self) -> dict[str, str]:
        """The filter as an address says it, without order and page."""
        found = {name: str(getattr(self.filters, column)) for name, column in FACETS.items()}
        margin, since = self.filters.margin_below, self.filters.since
        found |= {
            "text": self.filters.text,
            "margin": "" if margin is None else f"{margin:g}",
            "since": since.date().isoformat() if since else "",
            "studies": "1" if self.filters.studies else "",
        }
        return {name: value for name, value in found.items() if value}

    def address(self, **changes: str | None) -> str:
        """The address of this list, or of one with other values (None or empty: without it), from its first page on."""
        values = {"tab": TAB, **self.said, "sort": "" if self.order == "newest" else self.order}
        values |= {name: value or "" for name, value in changes.items()}
        if "diagnosis" in changes and "stage" not in changes:
            values["stage"] = ""  # a stage belongs to a diagnosis
        return "?" + urlencode({name: value for name, value in values.items() if value})

    def at(self, page: int) -> str:
        """The address of another page of this list."""
        return self.address(page=str(page) if page else None)

    def turned(self, page: int) -> Wanted:
        """The same list at another page."""
        return replace(self, page=page)


def read_address(address: object) -> Wanted:
    """What an address (all from its question mark on) asks for."""
    text = str(address or "").partition("?")[2]
    return read_values(dict(parse_qsl(text[:8_000])))


def read_values(values: Mapping[str, Any]) -> Wanted:
    """What the parameters of an address ask for."""
    given = {name: str(value).strip()[:MAX_TEXT] for name, value in values.items()}
    facets: dict[str, Any] = {
        column: given[name]
        for name, column in FACETS.items()
        if given.get(name) and (name not in CLOSED or given[name] in CLOSED[name])
    }
    filters = RunFilter(
        **facets,
        text=given.get("text", ""),
        margin_below=_margin(given.get("margin", "")),
        since=_day(given.get("since", "")),
        studies=given.get("studies") == "1",
    )
    order = next((known for known in ORDERS if known == given.get("sort")), "newest")
    page = given.get("page", "")
    return Wanted(filters, order, min(int(page), MAX_PAGE) if page.isascii() and page.isdigit() else 0)


def _margin(text: str) -> float | None:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text[:10]).replace(tzinfo=UTC)
    except ValueError:
        return None
