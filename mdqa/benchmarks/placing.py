"""The same question in another setting: evidence at a chosen place, fewer or more documents, or none at all.

*Position*: the gold documents stand together, the first of them in that place (from 1); the distractors keep their
order (Lost in the Middle). *Documents*: how many there are in total; distractors are dropped from the end, and where
the record brings more of them (``extra_documents`` in ``meta``) these are added behind the others. *Setting*:
``oracle`` has the gold documents only, ``closed_book`` no document, ``no_gold`` the distractors only.

Nothing is drawn, so the same call gives the same question. The id of what comes out is that of the question with a
suffix that says what was done (``@p10``, ``@n30``, ``@p10-n30``, ``@oracle``, ``@no_gold-n10``), and ``meta["placed"]``
has the same as values, with the id of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from mdqa.errors import ConfigError, InputError
from mdqa.records import Document, Question

Setting = Literal["given", "oracle", "closed_book", "no_gold"]
"""Which documents stay: all, those marked gold, none, or those not marked gold."""

SETTINGS: tuple[Setting, ...] = get_args(Setting)

EXTRA = "extra_documents"
"""The field of ``meta`` with further distractors, as records of documents."""

_SUFFIX = re.compile(r"^(?P<source>.+)@(?P<what>(?:p\d+|n\d+|p\d+-n\d+|(?:oracle|closed_book|no_gold)(?:-n\d+)?))$")


@dataclass(frozen=True)
class Placement:
    """What is done to the documents: position of the gold ones (from 1), total number, setting."""

    position: int | None = None
    documents: int | None = None
    setting: Setting = "given"

    def __post_init__(self) -> None:
        if self.setting not in SETTINGS:
            raise ConfigError(f"setting: {self.setting!r} is none; there is: {', '.join(SETTINGS)}")
        for name, value in (("position", self.position), ("documents", self.documents)):
            if value is not None and value < 1:
                raise ConfigError(f"{name}: {value} is not above zero; places and documents count from 1")
        if self.setting != "given" and self.position is not None:
            raise ConfigError(f"position: the setting {self.setting} leaves nothing to place; give one of them")
        if self.setting in ("oracle", "closed_book") and self.documents is not None:
            raise ConfigError(f"documents: the setting {self.setting} says how many there are; give one of them")

    @property
    def suffix(self) -> str:
        """What the id gets; empty where nothing is done."""
        parts = [f"p{self.position}"] if self.position is not None else []
        parts = [self.setting] if self.setting != "given" else parts
        parts += [f"n{self.documents}"] if self.documents is not None else []
        return "@" + "-".join(parts) if parts else ""


def place(
    item: Question, position: int | None = None, documents: int | None = None, setting: Setting = "given"
) -> Question:
    """The question in another setting; the question itself where nothing is asked for.

    InputError (with the question's id and the counts) for too few documents, no document marked gold, or a position
    that the gold documents do not fit into. ConfigError for settings that exclude each other.
    """
    wanted = Placement(position, documents, setting)
    if not wanted.suffix:
        return item
    where = f"question {item.id!r}"
    gold = [document for document in item.documents if document.gold]
    others = [document for document in item.documents if not document.gold]
    if wanted.setting != "closed_book" and not gold:
        raise InputError("no document is marked gold, so there is nothing to place or to take away", place=where)
    found = _documents(item, wanted, gold, others, where)
    return item.model_copy(
        update={
            "id": item.id + wanted.suffix,
            "documents": tuple(found),
            "meta": _meta(item, wanted, found),
        }
    )


def _documents(
    item: Question, wanted: Placement, gold: list[Document], others: list[Document], where: str
) -> list[Document]:
    if wanted.setting == "oracle":
        return gold
    if wanted.setting == "closed_book":
        return []
    kept_gold = len(gold) if wanted.setting == "given" else 0
    if wanted.documents is not None:
        others = _distractors(item, others, wanted.documents - kept_gold, kept_gold, where)
    if wanted.setting == "no_gold":
        if not others:
            raise InputError("every document is marked gold; without them none is left", place=where)
        return others
    if wanted.position is None:  # the gold ones stay before and behind the distractors that are left
        left = {document.id for document in others}
        known = {document.id for document in item.documents}
        stay = [document for document in item.documents if document.gold or document.id in left]
        return stay + [document for document in others if document.id not in known]
    before = wanted.position - 1
    if before > len(others):
        last = len(others) + 1
        raise InputError(
            f"position {wanted.position} is behind the last, {last}: {len(gold)} gold of "
            f"{len(gold) + len(others)} documents stand together",
            place=where,
        )
    return others[:before] + gold + others[before:]


def _distractors(item: Question, others: list[Document], count: int, gold: int, where: str) -> list[Document]:
    """The first ``count`` distractors, with those that the record brings in addition where the others are too few."""
    if count < 0:
        raise InputError(f"has {gold} gold documents, more than the {gold + count} documents asked for", place=where)
    if count > len(others):
        others = others + list(_extra(item, {document.id for document in item.documents}, where))
    if count > len(others):
        raise InputError(f"has {gold + len(others)} documents, too few for {gold + count}", place=where)
    return others[:count]


def _extra(item: Question, taken: set[str], where: str) -> Iterator[Document]:
    more = item.meta.get(EXTRA, ())
    for number, value in enumerate(more if isinstance(more, list | tuple) else (), 1):
        record = value if isinstance(value, Mapping) else {}
        if not isinstance(record.get("text"), str):
            raise InputError("has no text", place=f"{where}, field 'meta.{EXTRA}[{number - 1}]'")
        name = str(record.get("id") or f"x{number}")
        while name in taken:
            name += "'"
        taken.add(name)
        yield Document(id=name, title=str(record.get("title") or ""), text=record["text"], gold=False)


def _meta(item: Question, wanted: Placement, found: list[Document]) -> dict[str, Any]:
    """The question's meta with what was done; a ``gold_position`` (from 0) in it is brought up to date."""
    placed = {"source_id": item.id, **asdict(wanted), "documents": len(found)}
    return {**with_gold_position(item.meta, found), "placed": placed}


def with_gold_position(meta: Mapping[str, Any], documents: Sequence[Document]) -> dict[str, Any]:
    """A question's meta for these documents: a ``gold_position`` (from 0) in it is brought up to date."""
    rest = {name: value for name, value in meta.items() if name != "gold_position"}
    if "gold_position" not in meta:
        return rest
    places = [index for index, document in enumerate(documents) if document.gold]
    single = isinstance(meta["gold_position"], int) and len(places) == 1
    return {**rest, "gold_position": places[0] if single else places}


def source_id(item: Question) -> str:
    """The id of the question that this one was made of; its own where it was not made of another."""
    placed = item.meta.get("placed")
    return str(placed["source_id"]) if isinstance(placed, Mapping) and "source_id" in placed else item.id


def is_closed_book(item: Question) -> bool:
    """Whether a question is without documents on purpose, and not because somebody forgot them."""
    placed = item.meta.get("placed")
    return isinstance(placed, Mapping) and placed.get("setting") == "closed_book"


def read_suffix(name: str) -> tuple[str, Placement] | None:
    """The source's id and what was done to it, from the id of a question that :func:`place` made; None for others."""
    found = _SUFFIX.match(name)
    if not found:
        return None
    values: dict[str, Any] = {}
    for part in found["what"].split("-"):
        if part in SETTINGS:
            values["setting"] = part
        else:
            values["position" if part[0] == "p" else "documents"] = int(part[1:])
    return found["source"], Placement(**values)


@dataclass(frozen=True)
class Placed:
    """Questions in another setting, and why the others have none there."""

    questions: tuple[Question, ...]
    left_out: tuple[str, ...]


def place_all(items: Iterable[Question], wanted: Placement) -> Placed:
    """Place every question; one that cannot be placed is left out and its reason kept."""
    done, left = [], []
    for item in items:
        try:
            done.append(place(item, wanted.position, wanted.documents, wanted.setting))
        except InputError as error:
            left.append(str(error))
    return Placed(tuple(done), tuple(left))


class Placeable(Mapping[str, Question]):
    """Questions by id that also know what :func:`place` makes of them: an id with a suffix is placed when asked for.

    So results on placed questions are read with the file that the questions came from. Iteration and length are those
    of the questions themselves.
    """

    def __init__(self, items: Iterable[Question]) -> None:
        self._items = {item.id: item for item in items}

    def __getitem__(self, name: str) -> Question:
        if name in self._items:
            return self._items[name]
        found = read_suffix(name)
        if found is None or found[0] not in self._items:
            raise KeyError(name)
        try:
            return place(self._items[found[0]], found[1].position, found[1].documents, found[1].setting)
        except InputError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
