"""Reading questions: any supported file into :class:`~mdqa.records.Question`, with a report of what was refused.

:func:`load` keeps what is good and reports the rest, :func:`read_questions` stops at the first error. The container
(JSON lines, JSON, CSV, each also as .gz) and the format (our own or a published one, ``registry.READERS``) are told by
content. Reading streams; what grows with the file is one small entry per question, to find ids used twice. A path
``hf:owner/name[:config][:split]`` is a data set of the Hugging Face hub (``hub``). Questions that come without
documents get them from a corpus (``flashrag``) where one is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from mdqa.benchmarks.fields import Item, Problem, Reader, at, clean_text, clean_value, first_notices, problem_of
from mdqa.benchmarks.files import records
from mdqa.benchmarks.flashrag import Corpus
from mdqa.benchmarks.hub import is_hub, rows
from mdqa.benchmarks.pasted import parse_pasted
from mdqa.benchmarks.placing import source_id
from mdqa.errors import InputError
from mdqa.records import Document, Question
from mdqa.registry import READERS
from mdqa.registry import load as load_entry

__all__ = [
    "SPLITS",
    "Loaded",
    "Problem",
    "clean_text",
    "in_split",
    "load",
    "load_bytes",
    "parse_pasted",
    "read_questions",
]

SPLITS = ("all", "calibration", "held-out")
"""The parts of a file: see :func:`in_split`."""


MAX_ERRORS = 1000
"""After so many records that cannot be used, :func:`load` stops: the file is of another kind."""


@dataclass(frozen=True)
class Loaded:
    """What a file gave: the good questions, and what was refused (errors) or changed (notices)."""

    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Records that were left out."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What was changed or looks odd in records that were used."""
        return tuple(problem for problem in self.problems if problem.severity == "notice")


@dataclass(frozen=True)
class Limits:
    """Most documents of a question, and most characters of its documents and its wording together; None is no limit.

    ``corpus``: where questions without documents get theirs.
    """

    max_documents: int | None = None
    max_characters: int | None = None
    corpus: Corpus | None = None


def read_questions(
    path: Path | str,
    *,
    format: str = "auto",
    limit: int | None = None,
    max_documents: int | None = None,
    max_characters: int | None = None,
    corpus: Corpus | None = None,
    on_notice: Callable[[Problem], None] = lambda problem: None,
) -> Iterator[Question]:
    """The questions of a file, one after the other; InputError at the first record that cannot be used.

    ``format``: a name of ``registry.READERS`` or "auto"; ConfigError for another name. Notices (what was
    changed or found doubled) go to ``on_notice``.
    """
    items = _items(Path(path), str(path), format, Limits(max_documents, max_characters, corpus))
    return islice(_raise_errors(items, on_notice), limit)


def load(
    path: Path | str,
    *,
    format: str = "auto",
    limit: int | None = None,
    max_documents: int | None = None,
    max_characters: int | None = None,
    corpus: Corpus | None = None,
) -> Loaded:
    """All good questions of a file (at most ``limit``) and the report; bad content never raises."""
    return _collect(_items(Path(path), str(path), format, Limits(max_documents, max_characters, corpus)), limit)


def load_bytes(
    data: bytes,
    name: str,
    *,
    format: str = "auto",
    limit: int | None = None,
    max_documents: int | None = None,
    max_characters: int | None = None,
) -> Loaded:
    """As :func:`load`, for an upload; ``name`` is the file's name as people know it."""
    return _collect(_items(data, name, format, Limits(max_documents, max_characters)), limit)


def in_split(questions: Iterable[Question], split: str) -> Iterator[Question]:
    """The questions of one part; calibration and held-out never share a question (SHA-256 of the id, even or odd).

    A question that was placed otherwise stays in the part of its source.
    """
    for item in questions:
        odd = hashlib.sha256(source_id(item).encode("utf-8", "surrogatepass")).digest()[-1] % 2
        if split == "all" or (split == "held-out") == bool(odd):
            yield item


def _raise_errors(items: Iterator[Item], on_notice: Callable[[Problem], None]) -> Iterator[Question]:
    for item in items:
        if isinstance(item, Question):
            yield item
        elif item.severity == "error":
            raise InputError(item.message, place=item.place)
        else:
            on_notice(item)


def _collect(items: Iterator[Item], limit: int | None) -> Loaded:
    questions: list[Question] = []
    problems: list[Problem] = []
    errors = 0
    if limit is not None and limit <= 0:
        return Loaded((), ())
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
            errors += item.severity == "error"
            if errors >= MAX_ERRORS:
                problems.append(Problem(item.place, f"{errors:,} records cannot be used; reading stopped here"))
                break
            continue
        questions.append(item)
        if len(questions) == limit:
            break
    return Loaded(tuple(questions), tuple(problems))


def _items(source: Path | bytes, name: str, format: str, limits: Limits) -> Iterator[Item]:
    """Questions and problems in file order. A question's notices come before it."""
    chosen = None if format == "auto" else _reader(format)
    return _read(source, name, chosen, limits)


def _read(source: Path | bytes, name: str, reader: Reader | None, limits: Limits) -> Iterator[Item]:
    first_places: dict[str, str] = {}
    found = False
    try:
        for entry in rows(name) if isinstance(source, Path) and is_hub(name) else records(source, name):
            found = True
            if isinstance(entry, Problem):
                yield entry
                continue
            place, value = entry
            notices: list[Problem] = []
            try:
                record = _record(clean_value(value, place, notices), place)
                reader = reader or _recognise(record)
                for item in (reader or _reader("mdqa"))(record, place):
                    yield from _checked(item, place, notices, limits, first_places)
                    notices = []
            except InputError as error:
                yield problem_of(error)
    except InputError as error:  # of the container: nothing more can be read
        found = True
        yield problem_of(error)
    if not found:
        yield Problem(name, "the file holds no questions")


def _record(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(
            f"expected a JSON object with a question and documents, found {type(value).__name__}", place=place
        )
    return value


def _reader(name: str) -> Reader:
    reader: Reader = load_entry(READERS, name, "format")
    return reader


def _recognise(record: dict[str, Any]) -> Reader | None:
    """The reader of the format that the record is written in; None if no format knows it."""
    for name, entry in READERS.items():
        if import_module(entry.partition(":")[0]).recognises(record):
            return _reader(name)
    return None


def _checked(
    item: Item, place: str, notices: list[Problem], limits: Limits, first_places: dict[str, str]
) -> Iterator[Item]:
    if isinstance(item, Problem):
        yield item
        return
    try:
        item = limits.corpus.fill(item) if limits.corpus else item
        _check(item, place, limits)
        if item.id in first_places:
            raise InputError(
                f"{item.id!r} was used before, at {first_places[item.id]}; ids must differ", place=at(place, "id")
            )
    except InputError as error:
        yield problem_of(error)
        return
    first_places[item.id] = place
    yield from first_notices(notices, place)
    yield from first_notices(_repeated(item.documents, place), place)
    yield item


def _check(item: Question, place: str, limits: Limits) -> None:
    """InputError for no documents, an empty one, an id used twice or more than the limits allow."""
    count = len(item.documents)
    if not count:
        raise InputError(
            "has no documents; a question needs at least one, its own or, with --corpus FILE, those of a corpus",
            place=at(place, "documents"),
        )
    if limits.max_documents is not None and count > limits.max_documents:
        raise InputError(f"has {count:,} documents; at most {limits.max_documents:,} are allowed", place=place)
    size = len(item.question) + sum(len(document.title) + len(document.text) for document in item.documents)
    if limits.max_characters is not None and size > limits.max_characters:
        raise InputError(f"has {size:,} characters; at most {limits.max_characters:,} are allowed", place=place)
    seen: set[str] = set()
    for index, document in enumerate(item.documents):
        where = f"{place}, document {index + 1}"
        if not document.text.strip():
            raise InputError("is empty; remove the document or give it a text", place=at(where, "text"))
        if document.id in seen:
            raise InputError(
                f"{document.id!r} is the id of an earlier document too; ids must differ", place=at(where, "id")
            )
        seen.add(document.id)


def _repeated(documents: tuple[Document, ...], place: str) -> Iterator[Problem]:
    """A notice for every document with the same text and title as an earlier one."""
    first: dict[tuple[str, str], int] = {}
    for number, document in enumerate(documents, 1):
        key = (" ".join(document.title.split()), " ".join(document.text.split()))
        if key in first:
            yield Problem(f"{place}, document {number}", f"is the same as document {first[key]}", "notice")
        first.setdefault(key, number)
