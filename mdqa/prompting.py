"""Prompts as data: turns made of segments, so that every later step knows which text is a document.

A template is a text file with ``### system`` and ``### user`` sections and ``{{placeholders}}``. It is filled
strictly: a missing or unknown placeholder is an error, and what is filled in is never looked at again, so braces or
placeholders inside a document are plain text. Turning a :class:`Prompt` into tokens is the work of
``attention.layout``; that is also where control tokens inside the text are disarmed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from mdqa.errors import ConfigError
from mdqa.records import Document

SegmentKind = Literal["text", "document", "question"]
Role = Literal["system", "user", "assistant"]

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_SECTION = re.compile(r"^### (system|user)\n", re.MULTILINE)


@dataclass(frozen=True)
class Segment:
    """A piece of a turn. ``document_id`` is set for documents; ``kind`` question marks the rows that attend."""

    text: str
    kind: SegmentKind = "text"
    document_id: str | None = None


@dataclass(frozen=True)
class Turn:
    """One chat turn."""

    role: Role
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The turn's whole text."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True)
class Prompt:
    """A chat prompt; ``reply`` is text with which the assistant's turn already begins."""

    turns: tuple[Turn, ...]
    reply: str = ""
    template: str = ""

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of the documents in the order in which they stand in the prompt."""
        return tuple(s.document_id for t in self.turns for s in t.segments if s.document_id is not None)

    @property
    def fingerprint(self) -> str:
        """First 16 hex digits of the SHA-256 over roles, texts and the begun reply."""
        parts = [f"{turn.role}\x00{turn.text}" for turn in self.turns] + [self.reply]
        return hashlib.sha256("\x01".join(parts).encode()).hexdigest()[:16]

    def with_reply(self, reply: str) -> Prompt:
        """The same prompt with the assistant's turn begun."""
        return replace(self, reply=reply)


Value = str | Segment | Iterable[Segment]


@dataclass(frozen=True)
class Template:
    """A parsed template file."""

    name: str
    sections: tuple[tuple[Role, str], ...]

    @property
    def placeholders(self) -> frozenset[str]:
        """Names that must be given to :meth:`fill`."""
        return frozenset(name for _, text in self.sections for name in _PLACEHOLDER.findall(text))

    def fill(self, values: Mapping[str, Value] | None = None, /, **more: Value) -> Prompt:
        """The prompt with every placeholder replaced; ConfigError names missing and unknown ones."""
        given: dict[str, Value] = {**(values or {}), **more}
        wanted = self.placeholders
        if wanted != set(given):
            missing, unknown = sorted(wanted - set(given)), sorted(set(given) - wanted)
            raise ConfigError(f"prompt {self.name!r}: missing values {missing}, unknown values {unknown}")
        ready = {name: tuple(_segments(value)) for name, value in given.items()}
        return Prompt(tuple(Turn(role, _fill_section(text, ready)) for role, text in self.sections), template=self.name)


def load_template(package: str, name: str) -> Template:
    """Read ``prompts/<name>.txt`` of a package (for example ``mdqa.methods.cafe``); ConfigError if it is unusable."""
    source = files(package) / "prompts" / f"{name}.txt"
    return parse_template(f"{package.removeprefix('mdqa.methods.')}/{name}", source.read_text(encoding="utf-8"))


def parse_template(name: str, text: str) -> Template:
    """A template from its text; sections keep their inner newlines and lose the last one."""
    pieces = _SECTION.split(text)
    if pieces[0].strip() or len(pieces) < 3:
        raise ConfigError(f"prompt {name!r}: must begin with a '### system' or '### user' line")
    roles: list[Role] = ["system" if role == "system" else "user" for role in pieces[1::2]]
    return Template(name, tuple(zip(roles, (body.strip("\n") for body in pieces[2::2]), strict=True)))


def _segments(value: Value) -> Iterable[Segment]:
    if isinstance(value, str):
        return (Segment(value),)
    return (value,) if isinstance(value, Segment) else value


def _fill_section(text: str, values: Mapping[str, tuple[Segment, ...]]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    for index, piece in enumerate(_PLACEHOLDER.split(text)):  # odd pieces are placeholder names
        if index % 2:
            segments.extend(values[piece])
        elif piece:
            segments.append(Segment(piece))
    return tuple(segments)


def question_segment(question: str) -> Segment:
    """The question, marked as the rows whose attention is of interest."""
    return Segment(question.strip(), kind="question")


def document_segment(number: int, document: Document) -> Segment:
    """One numbered document: header line (with the title where there is one) and text.

    The header belongs to the document's span (``methods.md`` GAP-C3).
    """
    title = f" (Title: {document.title.strip()})" if document.title.strip() else ""
    return Segment(f"Document [{number}]{title}\n{document.text.strip()}", kind="document", document_id=document.id)


def document_segments(documents: Iterable[Document], numbers: Iterable[int] | None = None) -> tuple[Segment, ...]:
    """Documents separated by blank lines, numbered from 1 or by ``numbers``. The blank lines belong to no document."""
    documents = tuple(documents)
    labels = tuple(numbers) if numbers is not None else range(1, len(documents) + 1)
    segments: list[Segment] = []
    for number, document in zip(labels, documents, strict=True):
        if segments:
            segments.append(Segment("\n\n"))
        segments.append(document_segment(number, document))
    return tuple(segments)
