"""Lists of runs: which ones, in which order, and the SQL that finds a page of them without touching the runs.

Filters and orders work on ``run_facets``, a narrow row per run with an index for each of them; questions and answers
are read for the runs of the page only, and where a text is looked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from mdqa.errors import StorageError
from mdqa.records import RunStatus
from storage.encoding import clean_text, holds
from storage.facets import COUNTED, KINDS

Order = Literal["newest", "oldest", "slowest", "costliest", "nearest"]
"""How a list of runs is sorted: by time of creation, by wall time, by number of model calls, by smallest margin."""

Correct = Literal["", "right", "wrong", "unknown"]

_ORDERS = {
    "newest": "f.created desc, f.run desc",
    "oldest": "f.created, f.run",
    "slowest": "f.seconds desc, f.created desc, f.run desc",
    "costliest": "f.llm_calls desc, f.created desc, f.run desc",
    "nearest": "f.margin is null, f.margin, f.created desc, f.run desc",  # those without a margin come last
}

ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class RunFilter:
    """Which runs: equal fields, ``text`` anywhere in question or answer, created in [``since``, ``until``).

    Times without a zone are UTC. Upper and lower case of ``text`` are the same for ASCII letters only (SQLite's LIKE).
    ``diagnosis``, ``stage`` (where that happened), ``disagreement`` (a kind of it) and ``margin_below`` are facets of
    the run. Runs that a study had carried out are left out but with ``studies``, or where ``ids`` names them; ``ids``
    that are not there are none.
    """

    method: str = ""
    model: str = ""
    status: RunStatus | Literal[""] = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    benchmark: str = ""
    correct: Correct = ""
    diagnosis: str = ""
    stage: str = ""
    disagreement: str = ""
    margin_below: float | None = None
    ids: tuple[str, ...] | None = None
    studies: bool = False


EVERY = RunFilter(studies=True)
"""All runs there are."""


@dataclass(frozen=True)
class RunRow:
    """A line of a list of runs. ``correct`` is None where the right answer is not known; ``documents`` counts them.

    ``answers`` are the accepted ones.
    ``diagnosis``, ``stage``, ``disagreements`` and ``margin`` are empty until the facets of the run were worked out.
    """

    id: str
    created: str
    method: str
    model: str
    status: RunStatus
    question: str
    answer: str
    correct: bool | None
    seconds: float
    llm_calls: int
    documents: int
    answers: tuple[str, ...] = ()
    benchmark: str = ""
    diagnosis: str = ""
    stage: str = ""
    disagreements: tuple[str, ...] = ()
    margin: float | None = None


_ROW = (
    "f.run as id, f.created, f.method, f.model, f.status, questions.question, runs.answer, f.correct, runs.seconds, "
    "runs.llm_calls, questions.documents, questions.answers, f.benchmark, f.diagnosis, f.stage, "
    f"{', '.join(f'f.{kind}' for kind in KINDS)}, f.margin"
)

# Cross joins keep SQLite from walking the questions or the runs first.
_WORDS = " cross join questions on questions.id = f.question cross join runs on runs.id = f.run"

ROWS = (
    f"select {_ROW} from json_each(?) as wanted cross join run_facets as f on f.run = wanted.value{_WORDS} "
    "order by wanted.key"
)
"""The rows of these runs (a JSON list of their ids), in that order."""


def page_query(filters: RunFilter, order: str = "newest") -> tuple[str, list[Any]]:
    """The SQL of the ids of matching runs in order, and its values; StorageError for an order that does not exist."""
    if order not in _ORDERS:
        raise StorageError(f"runs cannot be sorted by {order!r}; there is: {', '.join(_ORDERS)}")
    where, values = _where(filters, facets=True)
    return f"select f.run from run_facets as f{_joined(filters)}{where} order by {_ORDERS[order]}", values


def count_query(filters: RunFilter) -> tuple[str, list[Any]]:
    """The SQL of how many runs match."""
    where, values = _where(filters, facets=True)
    return f"select count(*) from run_facets as f{_joined(filters)}{where}", values


def group_query(filters: RunFilter) -> tuple[str, list[Any]]:
    """The SQL of groups of runs that are equal in all facets, whatever the filter says of these."""
    where, values = _where(filters, facets=False)
    names = ", ".join(f"f.{name}" for name in (*COUNTED, *KINDS))
    known = "f.version > 0 as version"
    sql = f"select {names}, {known}, count(*) as number from run_facets as f{_joined(filters)}{where}"
    return f"{sql} group by {', '.join(str(place) for place in range(1, len(COUNTED) + len(KINDS) + 2))}", values


def chosen(filters: RunFilter) -> dict[str, str]:
    """What the filter says of the facets that are counted, by their names."""
    return {name: getattr(filters, name) for name in (*COUNTED, "disagreement")}


def read_row(row: dict[str, Any]) -> RunRow:
    """A row of :data:`ROWS`."""
    found = {name: value for name, value in row.items() if name not in KINDS}
    found["answers"] = tuple(json.loads(row["answers"]))
    found["correct"] = None if row["correct"] is None else bool(row["correct"])
    return RunRow(**found, disagreements=tuple(kind for kind in KINDS if row[kind]))


def utc(text: str) -> str:
    """A time as UTC with milliseconds, so that texts sort as times; what is no time is left as it is."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return clean_text(text)
    return (time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")


def _joined(filters: RunFilter) -> str:
    return _WORDS if clean_text(filters.text) else ""


def _where(filters: RunFilter, *, facets: bool) -> tuple[str, list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    if facets:
        _add_facets(filters, terms, values)
    if filters.since:
        terms.append("f.created >= ?")
        values.append(utc(filters.since.isoformat()))
    if filters.until:
        terms.append("f.created < ?")
        values.append(utc(filters.until.isoformat()))
    if filters.margin_below is not None:
        terms.append("f.margin < ?")
        values.append(filters.margin_below)
    if filters.ids is not None:
        terms.append("f.run in (select value from json_each(?))")
        values.append(json.dumps([clean_text(run_id) for run_id in filters.ids]))
    elif not filters.studies:
        terms.append("not exists (select 1 from study_runs where study_runs.run = f.run)")
    if text := clean_text(filters.text):
        terms.append(f"({holds('questions.question')} or {holds('runs.answer')})")
        values += [text] * 2
    return (" where " + " and ".join(terms) if terms else ""), values


def _add_facets(filters: RunFilter, terms: list[str], values: list[Any]) -> None:
    for name, value in chosen(filters).items():
        if not value:
            continue
        if name == "disagreement":
            if value not in KINDS:
                raise StorageError(f"there is no disagreement {value!r}; there is: {', '.join(KINDS)}")
            terms.append(f"f.{value} = 1")
        elif name == "correct":
            terms.append({"right": "f.correct = 1", "wrong": "f.correct = 0"}.get(value, "f.correct is null"))
        else:
            terms.append(f"f.{name} = ?")
            values.append(clean_text(value))
