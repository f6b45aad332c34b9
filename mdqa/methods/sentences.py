"""Sentences of a document, as exact pieces of its text.

The splitter knows the ends of sentences of several scripts and the usual English abbreviations. It errs on the side
of longer pieces: an unsplit pair of sentences still is evidence, half a sentence is not.
"""

from __future__ import annotations

import re
from itertools import pairwise

_CLOSING = "\"'”’»)\\]」』】）》"
# A run of marks begins where no mark stands before it; that keeps the search linear in the text.
_END = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\s)"  # spaced scripts: the mark must be followed by a space
    rf"|[。！？｡।॥۔؟։።]++[{_CLOSING}]*+"  # scripts whose marks end a sentence by themselves
    r"|\n"
)
_WORD_BEFORE = re.compile(r"[^\W_](?:[\w.'’&-]*[^\W_])?$")
_WORD_AFTER = re.compile(r"[^\W\d_]+")
_INITIAL = re.compile(r"[^\W\d_]")
_INITIALISM = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_LOOK_BACK = 24


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(
    "mr mrs ms mx dr prof st ste gen col lt cpl maj capt cmdr sgt rev hon sen rep gov pres mt ft messrs fr vs cf viz "
    "approx ca e.g i.e al"
)
_NOT_BEFORE_DIGIT = _words(
    "no nos fig figs vol vols p pp ch sec art op eq jan feb mar apr jun jul aug sep sept oct nov dec"
)
_ONLY_BEFORE_STARTER = _words("inc ltd co corp bros jr sr dept univ ph.d b.a m.a a.m p.m etc")
_STARTERS = _words(
    "the a an he she it they we you i this that these those there here his her its their our in on at by for from "
    "with after before during since while when where although though however but and as if one some many most "
    "several both each no not"
)


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text in order, each an exact piece of it without the blanks around it.

    A line break ends a sentence unless the very next line goes on in lower case. Text without any mark is one sentence.
    """
    return tuple(text[start:end] for start, end in sentence_spans(text))


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where the sentences of :func:`split_sentences` stand: characters [start, end) of the text, in order."""
    borders = [0, *(match.end() for match in _END.finditer(text) if _ends_sentence(text, match)), len(text)]
    spans = []
    for start, end in pairwise(borders):
        piece = text[start:end]
        if piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            spans.append((first, first + len(piece.strip())))
    return tuple(spans)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark = match.group()
    ahead = text[match.end() : match.end() + 200]
    after = ahead.lstrip()
    if mark == "\n":
        return "\n" in ahead[: len(ahead) - len(after)] or not after[:1].islower()
    if mark[0] not in ".!?…":
        return True
    after = after.lstrip("\"'“‘«([{„¿¡")
    if after[:1].islower():
        return False
    return (
        mark[0] != "."
        or mark.startswith("..")
        or _full_stop(text[max(match.start() - _LOOK_BACK, 0) : match.start()], after)
    )


def _full_stop(before: str, after: str) -> bool:
    """Whether a single full stop after ``before`` ends a sentence, given what follows."""
    found = _WORD_BEFORE.search(before)
    if found is None:
        return True
    word = found.group().lower()
    next_word = _WORD_AFTER.match(after)
    starter = next_word is not None and next_word.group().lower() in _STARTERS
    if word in _NEVER:
        return False
    if word in _NOT_BEFORE_DIGIT:
        return not after[:1].isdigit()
    if word in _ONLY_BEFORE_STARTER or _INITIALISM.fullmatch(word):
        return starter or not after
    if _INITIAL.fullmatch(word):
        return starter or word == "i" or not found.group().isupper() or not after
    return True
