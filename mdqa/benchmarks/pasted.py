"""Documents from one pasted text."""

from __future__ import annotations

import re

from mdqa.benchmarks.fields import clean_text
from mdqa.errors import InputError
from mdqa.records import Document

_HEADING = re.compile(r"^###(?!#)[ \t]*(.*)$")
_TITLE = re.compile(r"^title:[ \t]*(.*)$", re.IGNORECASE)


def parse_pasted(
    text: str, *, max_documents: int | None = None, max_characters: int | None = None, place: str = "pasted text"
) -> tuple[Document, ...]:
    """Documents d1, d2, ... of a pasted text.

    With a line that begins with ``###`` the text is split there, and what follows on that line is the title; without
    one it is split at blank lines. A first line ``Title: ...`` gives the title too. Blank text gives no documents.
    InputError for a title without a text and for more than the limits allow.
    """
    text = clean_text(text)[0].removeprefix("\ufeff")
    if max_characters is not None and len(text) > max_characters:
        raise InputError(f"has {len(text):,} characters; at most {max_characters:,} are allowed", place=place)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    pieces = _at_headings(lines) if any(_HEADING.match(line) for line in lines) else _at_blank_lines(lines)
    documents: list[Document] = []
    for title, body in pieces:
        first = _TITLE.match(body[0]) if body else None
        if first:
            title, body = first[1].strip() or title, body[1:]
        content = "\n".join(body).strip()
        number = len(documents) + 1
        if not content and not title:
            continue
        if not content:
            raise InputError(
                f"has the title {title[:60]!r} and no text; add the text or remove the title",
                place=f"{place}, document {number}",
            )
        documents.append(Document(id=f"d{number}", title=title, text=content))
    if max_documents is not None and len(documents) > max_documents:
        raise InputError(f"has {len(documents):,} documents; at most {max_documents:,} are allowed", place=place)
    return tuple(documents)


def _at_headings(lines: list[str]) -> list[tuple[str, list[str]]]:
    pieces: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        heading = _HEADING.match(line)
        if heading:
            pieces.append((heading[1].strip(), []))
        elif line.strip() or pieces[-1][1]:  # no blank lines before the text, so that a title line comes first
            pieces[-1][1].append(line)
    return pieces


def _at_blank_lines(lines: list[str]) -> list[tuple[str, list[str]]]:
    pieces: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if line.strip():
            pieces[-1][1].append(line)
        elif pieces[-1][1]:
            pieces.append(("", []))
    return pieces
