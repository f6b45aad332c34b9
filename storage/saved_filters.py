"""Filters of runs that somebody gave a name, with the order in which the runs are looked at."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.encoding import clean_text, now, to_json
from storage.listing import ORDERS, Order, RunFilter

if TYPE_CHECKING:
    from storage.store import Store

MAX_FILTER_NAME = 100
"""Characters of a filter's name. Upper and lower case are the same name for ASCII letters."""

MAX_FILTERS = 500
"""Filters that are kept at most."""


class FilterProblem(StorageError):
    """A name or a filter that cannot be kept; the text is about what was asked for and names no path."""


class UnknownFilter(FilterProblem):
    """There is no saved filter with this name."""


@dataclass(frozen=True)
class SavedFilter:
    """A filter with its name. ``created`` is UTC."""

    name: str
    filters: RunFilter
    order: Order
    made_by: str
    created: str


class SavedFilterStore:
    """The saved filters of a :class:`~storage.store.Store`; everybody who may see runs shares them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self) -> list[SavedFilter]:
        """All of them by name."""
        with self._store.read() as db:
            return [_read(row) for row in db.query(f"{_SELECT} order by name")]

    def get(self, name: str) -> SavedFilter:
        """The filter of this name; UnknownFilter if there is none."""
        with self._store.read() as db:
            return _require(db, name)

    def save(self, name: str, filters: RunFilter, made_by: str, order: Order = "newest") -> bool:
        """Keep a filter under a name; False where it takes the place of another one.

        Raises:
            FilterProblem: the name is empty or too long, there are too many, or the filter names single runs.
        """
        if filters.ids is not None:
            raise FilterProblem("a filter that names single runs is not kept; send the runs to a queue instead")
        found, content = _name(name), to_json(_content(filters, order), f"filter {name!r}")
        with self._store.write() as db:
            there = db.execute("select 1 from saved_filters where name = ?", [found]).fetchone()
            if not there and db.execute("select count(*) from saved_filters").fetchone()[0] >= MAX_FILTERS:
                raise FilterProblem(f"{MAX_FILTERS} filters are saved already; delete one first")
            db.execute(
                "insert into saved_filters (name, filter, made_by, created) values (?, ?, ?, ?) on conflict (name) "
                "do update set filter = excluded.filter, made_by = excluded.made_by, created = excluded.created",
                [found, content, clean_text(made_by), now()],
            )
            return not there

    def rename(self, name: str, new: str) -> None:
        """Give a filter another name.

        Raises:
            UnknownFilter: there is no filter of this name.
            FilterProblem: another one has the new name, or it is empty or too long.
        """
        wanted = _name(new)
        with self._store.write() as db:
            old = _require(db, name).name
            taken = db.execute("select name from saved_filters where name = ?", [wanted]).fetchone()
            if taken and taken[0] != old:
                raise FilterProblem(f"there is a filter {taken[0]!r} already; choose another name or delete that one")
            db.execute("update saved_filters set name = ? where name = ?", [wanted, old])

    def delete(self, name: str) -> None:
        """Delete a filter, not its runs; UnknownFilter if there is none of this name."""
        with self._store.write() as db:
            db.execute("delete from saved_filters where name = ?", [_require(db, name).name])


_SELECT = "select name, filter, made_by, created from saved_filters"

_TEXTS = ("method", "model", "status", "text", "benchmark", "correct", "diagnosis", "stage", "disagreement")


def _name(name: str) -> str:
    found = " ".join(clean_text(name).split())
    if not 1 <= len(found) <= MAX_FILTER_NAME:
        raise FilterProblem(f"the filter's name has {len(found)} characters; it needs 1 to {MAX_FILTER_NAME}")
    return found


def _require(db: Database, name: str) -> SavedFilter:
    rows = list(db.query(f"{_SELECT} where name = ?", [" ".join(clean_text(name).split())]))
    if not rows:
        raise UnknownFilter(f"there is no saved filter {name!r}; it may have been deleted or renamed")
    return _read(rows[0])


def _content(filters: RunFilter, order: Order) -> dict[str, Any]:
    """The fields that say something."""
    default = RunFilter()
    said = {field.name: getattr(filters, field.name) for field in fields(RunFilter)}
    return {name: value for name, value in said.items() if value != getattr(default, name)} | {"order": order}


def _read(row: dict[str, Any]) -> SavedFilter:
    """A row as a filter; what another version wrote and this one does not know is left out."""
    content = json.loads(row["filter"])
    known: dict[str, Any] = {name: content[name] for name in _TEXTS if isinstance(content.get(name), str)}
    known |= {name: datetime.fromisoformat(content[name]) for name in ("since", "until") if content.get(name)}
    margin, order = content.get("margin_below"), content.get("order")
    filters = RunFilter(**known, margin_below=margin, studies=bool(content.get("studies")))
    return SavedFilter(row["name"], filters, order if order in ORDERS else "newest", row["made_by"], row["created"])
