"""From what people type, paste or load to a checked question; every limit is checked here, on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mdqa.benchmarks.base import load_bytes, parse_pasted
from mdqa.benchmarks.names import file_stem, named
from mdqa.errors import InputError, MdqaError
from mdqa.records import Document, Question
from mdqa.settings import Settings
from ui.views.markup import short
from ui.views.preview import Refusal

Source = Literal["example", "paste", "file"]

MAX_QUESTION = 4_000
MAX_ANSWERS = 50
MAX_ANSWER = 1_000
MAX_LOADED = 5_000
"""Questions taken from one file; the rest is refused with a message."""
FOUND = 50
"""Questions of a file that the picker offers at once; a search or the next page brings others."""
MAX_SEARCH = 200


def page_within(page: int, total: int, size: int) -> int:
    """The page (from 0) of ``size`` rows that is asked for; the first or last one where there is no such page."""
    return min(max(page, 0), max(total - 1, 0) // size)


@dataclass(frozen=True)
class LoadedFile:
    """The questions of an uploaded file, what was left out (``refused``) and what looks odd (``notices``).

    Every question says which benchmark it is of: the file's name, unless the file itself says it.
    """

    name: str
    questions: tuple[Question, ...] = ()
    refused: tuple[Refusal, ...] = ()
    notices: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Found:
    """One page of the questions that a search finds: labels with indices, how many there are, the first one's place."""

    choices: tuple[tuple[str, int], ...]
    total: int
    start: int


@dataclass(frozen=True)
class Draft:
    """A question being put together: its documents, what was refused, and what its source says about it."""

    item: Question = field(default_factory=lambda: Question(id="question", question=""))
    refused: tuple[Refusal, ...] = ()


def clean(text: object) -> str:
    """Text without NUL, with lone surrogates replaced and line ends made one kind."""
    fixed = str(text or "").encode("utf-8", "replace").decode("utf-8")
    return fixed.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")


def paste_draft(text: str, settings: Settings) -> Draft:
    """Documents from one box, split at blank lines or lines of ``###``; repeated and empty ones are dealt with."""
    if len(text) > settings.max_characters:
        place, reason = "the text", _too_long(len(text), settings)
        return Draft(refused=(Refusal(place, reason),))
    if not text.strip():
        return Draft()
    try:
        documents = parse_pasted(clean(text))
    except MdqaError as problem:
        return Draft(refused=(Refusal("the text", str(problem)),))
    return limited(Question(id="pasted", question="", documents=documents), settings)


def limited(item: Question, settings: Settings) -> Draft:
    """The question within the limits of the settings; what is beyond them is refused by name, nothing silently."""
    kept: list[Document] = []
    refused: list[Refusal] = []
    size = 0
    for number, document in enumerate(item.documents, 1):
        place = f"Document {number}" + (f" ({short(document.title, 40)})" if document.title else "")
        length = len(document.text) + len(document.title)
        if not document.text.strip():
            refused.append(Refusal(place, "is empty; give it a text or leave it out."))
        elif len(kept) >= settings.max_documents:
            refused.append(Refusal(place, f"is one too many: at most {settings.max_documents:,} are taken."))
        elif size + length > settings.max_characters:
            refused.append(Refusal(place, _too_long(length, settings)))
        else:
            size += length
            kept.append(document)
    return Draft(item.with_documents(tuple(kept)), tuple(refused))


def _too_long(length: int, settings: Settings) -> str:
    return f"has {length:,} characters; all documents together may have {settings.max_characters:,}. Shorten or split."


def load_file(path: str | None, settings: Settings) -> LoadedFile:
    """The questions of an uploaded file with what could not be used and why; empty without a file."""
    if not path:
        return LoadedFile("")
    name = clean(Path(path).name)
    loaded = load_bytes(
        Path(path).read_bytes(),
        name,
        limit=MAX_LOADED,
        max_documents=settings.max_documents,
        max_characters=settings.max_characters,
    )
    refused = tuple(Refusal(problem.place, problem.message) for problem in loaded.errors)
    notices = tuple(Refusal(problem.place, problem.message) for problem in loaded.notices)
    questions = tuple(named(item, file_stem(name)) for item in loaded.questions)
    return LoadedFile(name, questions, refused, notices)


def search_questions(loaded: LoadedFile, words: str = "", start: int = 0, chosen: int | None = None) -> Found:
    """The questions whose text, id, answers or titles hold every word, or the one of a number; a page from ``start``.

    The chosen question stays in the list, at its head where the page does not hold it.
    """
    wanted = clean(words)[:MAX_SEARCH].casefold().split()
    matches = [i for i, item in enumerate(loaded.questions) if _matches(i, item, wanted)]
    start = min(max(start, 0), max(len(matches) - 1, 0)) // FOUND * FOUND
    page = matches[start : start + FOUND]
    if chosen is not None and 0 <= chosen < len(loaded.questions) and chosen not in page:
        page = [chosen, *page]
    choices = tuple((f"{i + 1}. {short(loaded.questions[i].question, 110)}", i) for i in page)
    return Found(choices, len(matches), start)


def _matches(index: int, item: Question, wanted: Sequence[str]) -> bool:
    if not wanted:
        return True
    if len(wanted) == 1 and wanted[0].removeprefix("#") == str(index + 1):
        return True
    titles = (document.title for document in item.documents)
    text = "\n".join((item.question, item.id, *item.answers, *titles)).casefold()
    return all(word in text for word in wanted)


def file_draft(loaded: LoadedFile, index: int | None, settings: Settings) -> Draft:
    """The chosen question of a file; an index that is not there gives an empty draft."""
    if index is None or not 0 <= int(index) < len(loaded.questions):
        return Draft(refused=loaded.refused)
    draft = limited(loaded.questions[int(index)], settings)
    return Draft(draft.item, draft.refused)


def gold_choices(documents: Sequence[Document]) -> list[tuple[str, str]]:
    """Labels and ids for marking gold documents."""
    return [(f"{i}. {short(d.title or d.text, 60)}", d.id) for i, d in enumerate(documents, 1)]


def finished_item(draft: Draft, question: str, answers: str, gold: Sequence[str]) -> Question:
    """The question to run: what the boxes say over the draft's documents.

    Raises:
        InputError: no question, a question or answers beyond the limits, or no documents.
    """
    words = clean(question).strip()
    if not words:
        raise InputError("write a question first", place="Question")
    if len(words) > MAX_QUESTION:
        raise InputError(f"has {len(words):,} characters; at most {MAX_QUESTION:,} are taken", place="Question")
    if not draft.item.documents:
        why = f" ({draft.refused[0].place} {draft.refused[0].reason})" if draft.refused else ""
        raise InputError(
            f"there are none to read: choose an example, paste some or load a file{why}", place="Documents"
        )
    expected = tuple(line.strip() for line in clean(answers).splitlines() if line.strip())
    if len(expected) > MAX_ANSWERS or any(len(line) > MAX_ANSWER for line in expected):
        raise InputError(f"at most {MAX_ANSWERS} of {MAX_ANSWER:,} characters each are taken", place="Answers")
    documents = marked(draft.item.documents, gold)
    return draft.item.model_copy(update={"question": words, "answers": expected, "documents": documents})


def marked(documents: tuple[Document, ...], gold: Sequence[str]) -> tuple[Document, ...]:
    """Documents with these gold marks: all said to be gold or not, or nobody knows where none is marked."""
    ids = set(gold) & {document.id for document in documents}
    return tuple(d.model_copy(update={"gold": (d.id in ids) if ids else None}) for d in documents)
