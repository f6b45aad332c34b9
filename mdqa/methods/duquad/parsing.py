"""Reading the agents' replies: strict about shapes and numbers, clear about what was dropped, and a last resort.

The parsers raise :class:`~mdqa.methods.asking.Unreadable` for replies that cannot be used; ids and sentence numbers
that do not exist are dropped one by one and reported in ``dropped``.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdqa.methods.asking import Unreadable, json_object, json_value, number_field, text_field

_NUMBER = re.compile(r"[^\d-]{0,20}(\d{1,6})\D{0,20}")
_FIELDS = tuple(re.compile(rf'"{name}"\s*:\s*"((?:[^"\\]|\\.)*+)', re.DOTALL) for name in ("answer", "reasoning"))
_LABEL = re.compile(r"^(?:final\s+)?answer\s*[:=-]\s*", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation + "‘’“”´`–—…")


@dataclass(frozen=True)
class AgentReply:
    """An agent's answer with the document numbers that it cites; ``dropped`` are the entries that were left out."""

    reasoning: str
    answer: str
    documents: tuple[int, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoreReply:
    """The Score Agent's number in [0, 1] and the sentence numbers (from 1) that it names, not yet checked."""

    score: float
    sentences: tuple[int, ...]


@dataclass(frozen=True)
class JudgeReply:
    """The judge's answer and why."""

    reasoning: str
    answer: str


def agent_parser(shown: Collection[int], limit: int) -> Callable[[str], AgentReply]:
    """A parser for {reasoning, answer, important_documents} that accepts the numbers in ``shown``, at most ``limit``.

    Repeated numbers count once. Without the list, or with a list of nothing, the agent cites no document.
    """

    def parse(text: str) -> AgentReply:
        data = json_object(text)
        numbers, dropped = _numbers(data.get("important_documents"), shown)
        return AgentReply(
            text_field(data, "reasoning", "").strip(),
            _answer(data),
            numbers[:limit],
            (*dropped, *(str(number) for number in numbers[limit:])),
        )

    return parse


def parse_score(text: str) -> ScoreReply:
    """{score, key_sentences}: the score must be a number in [0, 1]; without a list no sentence is named."""
    data = json_object(text)
    score = number_field(data, "score", 0.0, 1.0)
    return ScoreReply(score, _numbers(data.get("key_sentences"))[0])


def existing_sentences(named: Sequence[int], count: int, limit: int) -> tuple[int, ...]:
    """Indices from 0, in document order, of the first ``limit`` named sentences that a document of ``count`` has."""
    return tuple(sorted([number - 1 for number in named if 1 <= number <= count][:limit]))


def parse_judge(text: str) -> JudgeReply:
    """{reasoning, answer}."""
    data = json_object(text)
    return JudgeReply(text_field(data, "reasoning", "").strip(), _answer(data))


def _answer(data: Mapping[str, Any]) -> str:
    value = data.get("answer")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    answer = text_field(data, "answer").strip()
    if _says_nothing(answer):
        raise Unreadable("parse_error", f"the answer is empty or copied from the form: {answer!r}")
    return answer


def _says_nothing(answer: str) -> bool:
    """Empty, dots, or a placeholder such as ``<a few words>``: small models copy the form they are shown."""
    return not answer.strip(".… ") or re.fullmatch(r"<[^<>]*>", answer) is not None


def _numbers(value: Any, allowed: Collection[int] | None = None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The allowed numbers of a list (all, if None) in order, each once, and the entries that are none."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    numbers: list[int] = []
    dropped: list[str] = []
    for entry in entries:
        number = _number(entry)
        if number is None or (allowed is not None and number not in allowed):
            dropped.append(json.dumps(entry, ensure_ascii=False)[:40])
        elif number not in numbers:
            numbers.append(number)
    return tuple(numbers), tuple(dropped)


def _number(entry: Any) -> int | None:
    """A whole number, or a short text with exactly one (``"3"``, ``"Document [3]"``)."""
    if isinstance(entry, str):
        found = _NUMBER.fullmatch(entry)
        return int(found[1]) if found else None
    if isinstance(entry, float) and entry.is_integer():
        return int(entry)
    return entry if isinstance(entry, int) and not isinstance(entry, bool) else None


def raw_answer(text: str) -> str:
    """The answer in a reply that could not be read.

    What there is of its ``answer`` field, or of its ``reasoning``; else its first line without code fences and a
    leading "Answer:". Empty if the reply says nothing.
    """
    for pattern in _FIELDS:
        if (found := pattern.search(text)) and not _says_nothing(value := _unescape(found[1]).strip()):
            return value
    for line in text.splitlines():
        line = _LABEL.sub("", line.strip("`* ")).strip("`* ")
        if any(character.isalnum() for character in line) and line.lower() != "json":
            return line
    return ""


def _unescape(text: str) -> str:
    try:
        return str(json_value(f'"{text}"', strict=False))
    except ValueError:  # cut in the middle of an escape
        return text.rstrip("\\")


def normalised(answer: str) -> str:
    """An answer for comparison: lower case, no punctuation, no English articles, single blanks."""
    text = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", text).split()) or " ".join(answer.lower().split())


def agrees_with(answer: str, *, local_answer: str | None, global_answer: str | None) -> str:
    """Whose answer the judge's equals: ``local``, ``global``, ``both`` or ``neither``. None stands for no agent."""
    mine = normalised(answer)
    same = [bool(mine) and other is not None and normalised(other) == mine for other in (local_answer, global_answer)]
    return {(True, True): "both", (True, False): "local", (False, True): "global"}.get((same[0], same[1]), "neither")
