"""CSV: one question per row, or one document per row.

A row per question has the columns ``question`` and ``documents`` (a JSON list, or texts split as pasted text is), and
may have ``id`` and ``answers`` (a JSON list, or alternatives split by ``|``). A row per document has ``question`` and
``text`` and may have ``title``, ``gold``, ``id`` and ``answers``; consecutive rows with the same id (or, without ids,
the same question) belong together. Other columns go into ``meta``. Separators are comma, semicolon or tab.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import groupby
from types import MappingProxyType
from typing import Any

from mdqa.benchmarks.fields import Problem, at, problem_of
from mdqa.benchmarks.pasted import parse_pasted
from mdqa.errors import InputError

MAX_CELL = 64 * 2**20
"""Longest cell in characters; the csv module's own limit of 131,072 is too small for a document list."""

_GOLD = MappingProxyType({"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": None})

Row = tuple[int, dict[str, str]]


def read_table(lines: Iterator[str], name: str) -> Iterator[tuple[str, dict[str, Any]] | Problem]:
    """Records in the format of this project from a table; InputError without a usable header."""
    header_line = next(lines, "")
    delimiter = max(",;\t", key=header_line.count)
    columns = [column.strip().lower() for column in next(csv.reader([header_line], delimiter=delimiter), [])]
    if "question" not in columns or not {"documents", "text"} & set(columns):
        raise InputError(
            "is neither JSON nor a CSV table with the columns question and documents (or question and text); "
            f"it begins with {header_line.strip()[:60]!r}",
            place=f"{name}, line 1",
        )
    rows = _rows(lines, columns, delimiter, name)
    if "documents" in columns:
        yield from (_question(row, name) if isinstance(row, tuple) else row for row in rows)
    else:
        yield from _grouped(rows, name)


def _rows(lines: Iterator[str], columns: list[str], delimiter: str, name: str) -> Iterator[Row | Problem]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 2
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", place=f"{name}, from line {start} on") from None
        if len(cells) > len(columns):
            yield Problem(f"{name}, line {start}", f"has {len(cells)} cells, the header has {len(columns)} columns")
        elif any(cell.strip() for cell in cells):
            yield start, dict(zip(columns, cells, strict=False))
        start = reader.line_num + 2  # the header line is not the reader's


def _question(row: Row, name: str) -> tuple[str, dict[str, Any]] | Problem:
    number, cells = row
    place = f"{name}, line {number}"
    try:
        record: dict[str, Any] = {**cells, "documents": _documents(cells.get("documents", ""), place)}
        if "answers" in cells:
            record["answers"] = _answers(cells["answers"], place)
    except InputError as error:
        return problem_of(error)
    return place, record


def _documents(cell: str, place: str) -> Any:
    if cell.lstrip().startswith("["):
        return _json(cell, place, "documents")
    return [document.model_dump() for document in parse_pasted(cell, place=at(place, "documents"))]


def _answers(cell: str, place: str) -> Any:
    if cell.lstrip().startswith("["):
        return _json(cell, place, "answers")
    return [answer.strip() for answer in cell.split("|") if answer.strip()]


def _json(cell: str, place: str, field: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", place=at(place, field)) from None


def _grouped(rows: Iterator[Row | Problem], name: str) -> Iterator[tuple[str, dict[str, Any]] | Problem]:
    def key(row: Row | Problem) -> Any:
        return row if isinstance(row, Problem) else row[1].get("id") or row[1].get("question")

    for _, group in groupby(rows, key):
        members = list(group)
        first = members[0]
        if isinstance(first, Problem):
            yield first
            continue
        place = f"{name}, line {first[0]}"
        documents = []
        try:
            for row in members:
                assert isinstance(row, tuple)  # the key of a problem is the problem itself
                number, cells = row
                gold = cells.get("gold", "").strip().lower()
                if gold not in _GOLD:
                    raise InputError(f"must be true or false, is {gold!r}", place=at(f"{name}, line {number}", "gold"))
                documents.append({"title": cells.get("title", ""), "text": cells["text"], "gold": _GOLD[gold]})
            record: dict[str, Any] = {k: v for k, v in first[1].items() if k not in ("title", "text", "gold")}
            record["documents"] = documents
            record["answers"] = _answers(first[1].get("answers", ""), place)
        except InputError as error:
            yield problem_of(error)
            continue
        yield place, record
