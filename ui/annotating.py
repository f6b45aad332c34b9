"""The verbs of annotation, without Gradio: what an annotator is shown, and keeping what they decide.

Judging is blind, and the server sees to it: a page gets a :class:`Sheet` and nothing else, in which every field was put
on purpose. Who gave which answer, the judge's choice, scores, marks of evidence, expected answers, other people's
labels, and even the ids of run and documents (they may tell) stay here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from mdqa.candidates import candidates_of
from mdqa.errors import InputError, StorageError
from mdqa.records import RunResult
from storage.assignments import Assigned, OwnProgress, Progress, UnknownForm
from storage.labels import Rating, Refused, SavedOtherwise
from storage.queue_settings import LABELS, QueueSettings
from storage.queues import UnknownQueue
from ui.context import Context
from ui.logs import log

Mark = Literal["A", "B", "both", "neither", "cannot_tell"]
"""What an annotator says, in terms of what is on the page."""

MARKS: tuple[Mark, ...] = get_args(Mark)


class Stale(InputError):
    """The form is not open for this person (any more); the next item is."""


@dataclass(frozen=True)
class BlindDocument:
    """A document as it is read: counted from 1 in input order."""

    number: int
    title: str
    text: str


@dataclass(frozen=True)
class Draft:
    """What this person had said of the item themselves before they took it back."""

    mark: str = ""
    evidence: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Blind:
    """All that is shown of an item. ``answers``: A and, if there are two, B; ``marks``: what may be said of them."""

    token: str
    question: str
    documents: tuple[BlindDocument, ...]
    answers: tuple[str, ...]
    marks: tuple[str, ...]
    practice: bool
    draft: Draft = Draft()


@dataclass(frozen=True)
class Feedback:
    """What is said after a practice item: the mark that was expected, the one that was given, and why."""

    expected: str
    given: str
    answers: tuple[str, ...]
    words: str

    @property
    def right(self) -> bool:
        """Whether it was the expected one."""
        return self.expected == self.given


@dataclass(frozen=True)
class Sheet:
    """What the page gets: an item (None if there is nothing left), the rules, and how far everybody is."""

    queue: str
    item: Blind | None
    guidelines: str
    version: int
    own: OwnProgress
    all: Progress
    feedback: Feedback | None = None


@dataclass(frozen=True)
class QueueCard:
    """A queue in the list that people choose from."""

    name: str
    own: OwnProgress
    items: int


def queue_cards(context: Context, who: str) -> list[QueueCard]:
    """The queues that have items, by name."""
    store = context.store
    return [
        QueueCard(queue.name, store.assignments.own_progress(queue.name, who), queue.items)
        for queue in store.queues.queues()
        if queue.items
    ]


def sheet(context: Context, queue: str, who: str, feedback: Feedback | None = None) -> Sheet:
    """The next item of a queue for a person; InputError where there is no such queue."""
    store = context.store
    try:
        while True:
            desk = store.assignments.desk(queue, who)
            try:
                item = _blind(context, desk.form, desk.settings) if desk.form else None
            except StorageError as problem:  # one that cannot be read holds nobody up
                assert desk.form is not None
                log.error("run %s cannot be shown to an annotator: %s", desk.form.run, problem)
                store.labels.skip(desk.form.token, who, "skipped by the program: it cannot be shown")
                continue
            name = desk.form.queue if desk.form else queue
            return Sheet(name, item, desk.settings.guidelines, desk.settings.version, desk.own, desk.all, feedback)
    except UnknownQueue:
        raise InputError("there is no such queue (any more); choose another one", place="Queue") from None


def save(
    context: Context,
    who: str,
    token: str,
    mark: str,
    *,
    evidence: Sequence[int] = (),
    note: str = "",
    seconds: float = 0.0,
    idle_seconds: float = 0.0,
) -> Feedback | None:
    """Keep a label. Returns when it is safe on disk, with what is said about it where it is a practice item's.

    ``evidence``: numbers of documents. Saving the same form again changes nothing.

    Raises:
        Stale: the form is not open for this person, or was saved with something else (in another tab).
        InputError: something that was said cannot be kept.
    """
    if mark not in MARKS:  # the words of the canonical order among them: what comes of them would tell it
        raise InputError(f"there is no label {mark[:40]!r}; there is: {', '.join(MARKS)}")
    try:
        form, run = _form(context, token, who)
        said = context.store.labels.answer(
            token,
            who,
            label_of_mark(mark, form.swapped),
            evidence=_documents(run, evidence),
            note=note,
            seconds=seconds,
            idle_seconds=idle_seconds,
        )
    except (UnknownForm, SavedOtherwise) as problem:
        raise Stale(str(problem)) from None
    except Refused as problem:
        raise InputError(str(problem)) from None
    return _feedback(context, run, form, said)


def skip(
    context: Context, who: str, token: str, reason: str, *, seconds: float = 0.0, idle_seconds: float = 0.0
) -> None:
    """Leave an item to others; errors as for :func:`save`, and InputError without a reason."""
    try:
        context.store.labels.skip(token, who, reason, seconds=seconds, idle_seconds=idle_seconds)
    except (UnknownForm, SavedOtherwise) as problem:
        raise Stale(str(problem)) from None
    except Refused as problem:
        raise InputError(str(problem)) from None


def flag(context: Context, who: str, token: str, note: str, save_token: str) -> None:
    """Say that something is wrong with an item; it stays open. Errors as for :func:`save`."""
    try:
        context.store.labels.flag(token, who, note, save_token)
    except (UnknownForm, SavedOtherwise) as problem:
        raise Stale(str(problem)) from None
    except Refused as problem:
        raise InputError(str(problem)) from None


def undo(context: Context, who: str, queue: str, save_token: str) -> bool:
    """Take back the latest label or skip of a person in a queue; False if there is nothing (left) to take back."""
    try:
        return context.store.labels.undo(queue, who, save_token) is not None
    except UnknownQueue:
        raise InputError("there is no such queue (any more); choose another one", place="Queue") from None
    except Refused as problem:
        raise InputError(str(problem)) from None


def sayable(labels: Sequence[str], answers: int) -> tuple[str, ...]:
    """Those of the labels that mean something of so many answers; of a single answer only whether it is right."""
    needs = {"first": 1, "second": 2, "both": 2}
    return tuple(label for label in labels if answers >= needs.get(label, 0))


def alive(context: Context, who: str, token: str) -> None:
    """A sign of life of somebody who works on an item: it is held for them."""
    context.store.assignments.renew(token, who)


def label_of_mark(mark: str, swapped: bool) -> str:
    """A mark on the page in terms of the candidates in canonical order; other texts stay what they are."""
    letters = ("A", "B")
    return LABELS[letters.index(mark) ^ swapped] if mark in letters else mark


def mark_of_label(label: str, swapped: bool) -> str:
    """The way back."""
    places = ("first", "second")
    return ("A", "B")[places.index(label) ^ swapped] if label in places else label


def _blind(context: Context, form: Assigned, settings: QueueSettings) -> Blind:
    """The item, field by field."""
    run = context.store.runs.get(form.run)
    answers = _answers(run, form)
    return Blind(
        token=form.token,
        question=run.question.question,
        documents=tuple(
            BlindDocument(number, document.title, document.text)
            for number, document in enumerate(run.question.documents, 1)
        ),
        answers=answers,
        marks=_marks(settings.labels, len(answers), form.swapped),
        practice=form.practice,
        draft=_draft(context, form, run),
    )


def _answers(run: RunResult, form: Assigned) -> tuple[str, ...]:
    """The candidates' answers in the order that was drawn for this person."""
    answers = tuple(candidate.answer for candidate in candidates_of(run))
    return answers[::-1] if form.swapped and len(answers) == 2 else answers


def _marks(labels: Sequence[str], answers: int, swapped: bool) -> tuple[str, ...]:
    """What may be said, in the order of the buttons."""
    marks = {mark_of_label(label, swapped and answers == 2) for label in sayable(labels, answers)}
    return tuple(mark for mark in MARKS if mark in marks)


def _draft(context: Context, form: Assigned, run: RunResult) -> Draft:
    """This person's own earlier label of the item; an open item has one only after an undo."""
    own = context.store.labels.of(form.item, form.annotator)
    before = next((entry for entry in reversed(own) if entry.action == "label"), None)
    if before is None:
        return Draft()
    places = {name: number for number, name in enumerate(run.question.document_ids, 1)}
    swapped = form.swapped and len(candidates_of(run)) == 2
    return Draft(
        mark_of_label(before.label, swapped),
        tuple(places[name] for name in before.evidence if name in places),
        before.note,
    )


def _form(context: Context, token: str, who: str) -> tuple[Assigned, RunResult]:
    """The form and its run, also of a form that was saved already, so that it can be saved again."""
    form = context.store.assignments.of_token(token, who)
    run = context.store.runs.get(form.run)
    if len(candidates_of(run)) < 2:  # one answer is A, whatever was drawn
        form = replace(form, swapped=False)
    return form, run


def _documents(run: RunResult, numbers: Sequence[int]) -> list[str]:
    known: Mapping[int, str] = dict(enumerate(run.question.document_ids, 1))
    for number in numbers:
        if number not in known:
            raise InputError(f"there is no document {number}; there are {len(known)}", place="Evidence")
    return [known[number] for number in numbers]


def _feedback(context: Context, run: RunResult, form: Assigned, said: Rating) -> Feedback | None:
    settings = context.store.queue_settings.of(said.queue, said.version)
    practice = settings.practice(run.id) if said.practice else None
    if practice is None:
        return None
    marks = [mark_of_label(label, form.swapped) for label in (practice.label, said.label)]
    return Feedback(marks[0], marks[1], _answers(run, form), practice.feedback)
