"""What if: a question with documents switched off, moved, duplicated or edited, and a note of what was done.

Interventions are carried out in their order, each on what the ones before it left, so a position counts (from 1) among
the documents that are there at that moment. Nothing is drawn: the same call gives the same question. A document keeps
its id whatever happens to it; a duplicate gets an id that no document of the question has or had (``d3~2``). Gold marks
stay: a duplicate has its original's, and an edited document keeps its own, because nobody but a person can say whether
the new text still holds the evidence.

The question that comes out has the same id, because seeds are made of it and a run with other seeds would differ in
more than its documents. ``meta["interventions"]`` says what was done to the original one, as JSON-ready objects (an
intervention's own fields, ``words`` for people, for a duplicate its new id as ``copy``); tables that group stored runs
by question go by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from mdqa.benchmarks.placing import with_gold_position
from mdqa.errors import InputError
from mdqa.records import Document, Question, Record

META = "interventions"
"""The field of ``Question.meta`` that lists what was done."""

_TITLE = 60


class SwitchOff(Record):
    """Leave a document out, as if it had never been given."""

    kind: Literal["switch_off"] = "switch_off"
    document: str


class Move(Record):
    """Put a document at another position, from 1; the others keep their order."""

    kind: Literal["move"] = "move"
    document: str
    position: int


class Duplicate(Record):
    """Put a copy of a document at a position, from 1 up to one behind the last."""

    kind: Literal["duplicate"] = "duplicate"
    document: str
    position: int


class Edit(Record):
    """Give a document another title and text. Its gold mark stays."""

    kind: Literal["edit"] = "edit"
    document: str
    title: str
    text: str


Intervention = Annotated[SwitchOff | Move | Duplicate | Edit, Field(discriminator="kind")]

_ADAPTER: TypeAdapter[Intervention] = TypeAdapter(Intervention)


def read_intervention(data: object) -> Intervention:
    """An intervention from its JSON object; pydantic's ValidationError if it is none."""
    return _ADAPTER.validate_python(data)


def apply(question: Question, interventions: Sequence[Intervention]) -> Question:
    """The question after these interventions; the question itself where they change nothing.

    InputError (with the intervention's number) for a document that is not there, a position out of range, an empty
    text, and for switching off the last document.
    """
    item = question
    for number, intervention in enumerate(interventions, 1):
        place = f"intervention {number}"
        index = _index(item, intervention.document, place)
        changed, copy = _documents(item, index, intervention, place)
        if changed == item.documents:
            continue
        more = {"copy": copy} if copy else {}
        note = {**intervention.model_dump(), "words": in_words(intervention, item), **more}
        meta = {**with_gold_position(item.meta, changed), META: [*item.meta.get(META, ()), note]}
        item = item.model_copy(update={"documents": changed, "meta": meta})
    return item


def in_words(intervention: Intervention, question: Question) -> str:
    """What the intervention does to this question, for people: ``Switched off document 3 “Harbour office”``.

    ``question`` is as it is before. InputError for a document that is not there.
    """
    index = _index(question, intervention.document, intervention.kind)
    document = question.documents[index]
    name = f"document {index + 1} “{_short(document.title or document.text)}”"
    match intervention:
        case SwitchOff():
            return f"Switched off {name}"
        case Move(position=position):
            return f"Moved {name} to position {position}"
        case Duplicate(position=position):
            return f"Put a copy of {name} at position {position}"
        case Edit(title=title, text=text):
            parts = [
                what for what, same in (("title", title == document.title), ("text", text == document.text)) if not same
            ]
            return f"Edited the {' and the '.join(parts) or 'text'} of {name}"


def done_to(question: Question) -> tuple[dict[str, Any], ...]:
    """What was done to the original question, as ``meta`` lists it; empty for an original."""
    return tuple(question.meta.get(META, ()))


def words_between(before: Question, after: Question) -> tuple[str, ...]:
    """In words what makes the documents of ``before`` into those of ``after``.

    What was noted where ``after`` was made from ``before``; else it is found out by ids, with documents that only
    ``after`` has as put back.
    """
    old, new = done_to(before), done_to(after)
    if new[: len(old)] == old:
        return tuple(str(note["words"]) for note in new[len(old) :])
    common = [Wanted(document=d.id, title=d.title, text=d.text) for d in after.documents if d.id in before.document_ids]
    words = []
    if common:
        words += [str(note["words"]) for note in done_to(apply(before, plan(before, common)))[len(old) :]]
    elif before.documents:
        words.append(f"Switched off all {len(before.documents):,} documents")
    for number, document in enumerate(after.documents, 1):
        if document.id not in before.document_ids:
            words.append(f"Put back “{_short(document.title or document.text)}” as document {number}")
    return tuple(words)


class Wanted(Record):
    """A document as it should stand in the end. ``copied``: a further copy of ``document`` and not the document itself.

    ``title`` and ``text`` are None where they are the document's own.
    """

    document: str
    copied: bool = False
    title: str | None = None
    text: str | None = None


def plan(question: Question, wanted: Sequence[Wanted]) -> tuple[Intervention, ...]:
    """Interventions that leave the question with exactly these documents in this order, with as few moves as can be.

    InputError for a document that the question does not have or that is wanted twice (copies aside), for an empty
    text, and where nothing is wanted.
    """
    stay = _stay(question, wanted)
    steps: list[Intervention] = []
    item = question

    def do(step: Intervention) -> None:
        nonlocal item
        item = apply(item, [step])
        steps.append(step)

    copied = {entry.document for entry in wanted if entry.copied}
    for name in question.document_ids:
        if name not in stay and name not in copied:
            do(SwitchOff(document=name))
    # An original that goes while a copy of it stays can go only when the copy is there; it waits before the copy.
    full: list[Wanted] = []
    gone: list[str] = []
    for entry in wanted:
        if entry.copied and entry.document not in stay and entry.document not in gone:
            gone.append(entry.document)
            full.append(Wanted(document=entry.document))
        full.append(entry)
    for step in _moves(item.document_ids, [entry.document for entry in full if not entry.copied]):
        do(step)
    for position, entry in enumerate(full, 1):
        if entry.copied:
            do(Duplicate(document=entry.document, position=position))
    for document, entry in zip(item.documents, full, strict=True):
        title = document.title if entry.title is None else entry.title
        text = document.text if entry.text is None else entry.text
        if (title, text) != (document.title, document.text):
            do(Edit(document=document.id, title=title, text=text))
    for name in gone:
        do(SwitchOff(document=name))
    return tuple(steps)


def longest_rising(numbers: Sequence[int]) -> list[int]:
    """A longest rising subsequence of distinct numbers: those that can stay when all are brought into order."""
    best: list[list[int]] = []  # best[k]: of the rising sequences of k + 1 numbers one whose last is lowest
    for number in numbers:
        length = next((k for k, sequence in enumerate(best) if sequence[-1] > number), len(best))
        best[length : length + 1] = [[*(best[length - 1] if length else ()), number]]
    return best[-1] if best else []


def _stay(question: Question, wanted: Sequence[Wanted]) -> set[str]:
    """The documents that stay themselves."""
    if not wanted:
        raise InputError("every document is switched off; leave at least one", place="documents")
    known, stay = set(question.document_ids), set[str]()
    for number, entry in enumerate(wanted, 1):
        if entry.document not in known:
            raise InputError(f"the question has no document {entry.document!r}", place=f"documents, number {number}")
        if not entry.copied and entry.document in stay:
            raise InputError(f"document {entry.document!r} is listed twice", place=f"documents, number {number}")
        stay |= set() if entry.copied else {entry.document}
    return stay


def _moves(now: Sequence[str], wanted: Sequence[str]) -> list[Move]:
    """Moves that bring the same ids from one order into the other."""
    order, place = list(now), {name: index for index, name in enumerate(wanted)}
    still = {wanted[index] for index in longest_rising([place[name] for name in now])}
    moves = []
    for index, name in enumerate(wanted):
        if name in still:
            continue
        order.remove(name)
        at = order.index(wanted[index - 1]) + 1 if index else 0
        order.insert(at, name)
        moves.append(Move(document=name, position=at + 1))
    return moves


def _documents(
    question: Question, index: int, intervention: Intervention, place: str
) -> tuple[tuple[Document, ...], str]:
    """The documents after an intervention on the one at ``index``, and the id of a copy."""
    document = question.documents[index]
    before, behind = question.documents[:index], question.documents[index + 1 :]
    match intervention:
        case SwitchOff():
            if len(question.documents) == 1:
                raise InputError("would switch off the last document; leave at least one", place=place)
            return before + behind, ""
        case Move(position=position):
            return _with(before + behind, document, position, place), ""
        case Duplicate(position=position):
            copy = document.model_copy(update={"id": _fresh(question, document.id)})
            return _with(question.documents, copy, position, place), copy.id
        case Edit(title=title, text=text):
            if not text.strip():
                raise InputError(
                    f"the text of document {document.id!r} is empty; write one, or switch the document off", place=place
                )
            return (*before, document.model_copy(update={"title": title, "text": text}), *behind), ""


def _with(documents: tuple[Document, ...], document: Document, position: int, place: str) -> tuple[Document, ...]:
    last = len(documents) + 1
    if not 1 <= position <= last:
        raise InputError(f"position {position} does not exist; positions are 1 to {last}", place=place)
    return (*documents[: position - 1], document, *documents[position - 1 :])


def _index(question: Question, document_id: str, place: str) -> int:
    ids = question.document_ids
    if document_id not in ids:
        known = ", ".join(ids[:10]) + (", ..." if len(ids) > 10 else "")
        raise InputError(f"there is no document {document_id!r}; the question has {known or 'none'}", place=place)
    return ids.index(document_id)


def _fresh(question: Question, document_id: str) -> str:
    """An id for a copy that no document has or had, counted up from ``~2``; a copy's copy counts on for the first."""
    noted = question.meta.get(META, ())
    taken = set(question.document_ids)
    taken |= {str(entry[name]) for entry in noted for name in ("document", "copy") if name in entry}
    origin = next((str(entry["document"]) for entry in noted if entry.get("copy") == document_id), document_id)
    if origin != document_id:
        return _fresh(question, origin)
    number = 2
    while f"{document_id}~{number}" in taken:
        number += 1
    return f"{document_id}~{number}"


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"
