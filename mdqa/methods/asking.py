"""Asking for replies that must be parsed: one batch, one retry for those that cannot be read, then a status.

The first prompt is sent again with a firmer ending and another seed; a reply that still cannot be read keeps its
status and its raw text. Nothing becomes a silent zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from mdqa.backends.base import GenerationRequest
from mdqa.methods.recorder import Recorder
from mdqa.prompting import Segment, Turn
from mdqa.records import DocumentScore, Generation, Status

T = TypeVar("T")

REMINDER = "\n\nYour last reply could not be read. Reply with the requested JSON object only, and nothing else."


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A parsed reply, or the status that says why it could not be read. ``raw`` is always the model's own text."""

    value: T | None
    status: Status
    raw: str
    call: int
    attempts: int
    detail: str = ""

    def score(self, number: Callable[[T], float]) -> DocumentScore:
        """The reply as a document's score: ``number`` of its value, or its status."""
        if self.value is None:
            return DocumentScore(status=self.status, detail=self.detail)
        return DocumentScore(value=number(self.value))


class Unreadable(Exception):
    """Raised by a parser: ``status`` says in which way the reply cannot be read."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Inquiry(Generic[T]):
    """Requests of one role whose replies ``parse`` reads. ``documents``: per request (default: those in its prompt)."""

    role: str
    requests: Sequence[GenerationRequest]
    parse: Callable[[str], T]
    documents: Sequence[Sequence[str]] | None = None

    def about(self, index: int) -> tuple[str, ...]:
        """Ids of the documents that a request is about."""
        if self.documents is None:
            return tuple(self.requests[index].prompt.document_ids)
        return tuple(self.documents[index])


def ask(
    run: Recorder,
    role: str,
    requests: Sequence[GenerationRequest],
    parse: Callable[[str], T],
    *,
    documents: Sequence[Sequence[str]] | None = None,
    retries: int = 1,
    stream: bool = False,
    prefix: Any = None,
) -> list[Reply[T]]:
    """Send all requests as one batch, parse every reply with ``parse``, retry the unreadable ones together."""
    inquiry = Inquiry(role, requests, parse, documents)
    return ask_together(run, [inquiry], retries=retries, stream=stream, prefix=prefix)[0]


def ask_together(
    run: Recorder,
    inquiries: Sequence[Inquiry[Any]],
    *,
    retries: int = 1,
    stream: bool = False,
    prefix: Any = None,
) -> list[list[Reply[Any]]]:
    """Send the requests of several roles as one batch, so that none waits for another role's; replies per inquiry."""
    replies: dict[tuple[int, int], Reply[Any]] = {}
    pending = [(place, i) for place, inquiry in enumerate(inquiries) for i in range(len(inquiry.requests))]
    for attempt in range(1, retries + 2):
        if not pending:
            break
        asked = [inquiries[place].requests[i] for place, i in pending]
        batch = asked if attempt == 1 else [_again(request, attempt) for request in asked]
        role = inquiries[pending[0][0]].role
        generations = run.generate_unrecorded(role, batch, stream=stream and attempt == 1, prefix=prefix)
        for (place, i), request, generation in zip(pending, batch, generations, strict=True):
            inquiry = inquiries[place]
            replies[place, i] = _read(run, inquiry.role, request, generation, inquiry.parse, inquiry.about(i), attempt)
        pending = [key for key in pending if replies[key].value is None]
    return [[replies[place, i] for i in range(len(inquiry.requests))] for place, inquiry in enumerate(inquiries)]


def _read(
    run: Recorder,
    role: str,
    request: GenerationRequest,
    generation: Generation,
    parse: Callable[[str], T],
    documents: Sequence[str],
    attempt: int,
) -> Reply[T]:
    value: T | None = None
    status: Status = "ok"
    detail = ""
    try:
        value = parse(request.prompt.reply + generation.text)
    except Unreadable as problem:
        cut = problem.status == "parse_error" and generation.finish_reason == "length"
        status, detail = "truncated" if cut else problem.status, problem.detail
    done = run.record_call(role, request, generation, documents=documents, parse=status, attempt=attempt)
    return Reply(value, status, generation.text, done.call, attempt, detail)


def _again(request: GenerationRequest, attempt: int) -> GenerationRequest:
    last = request.prompt.turns[-1]
    turn = Turn(last.role, (*last.segments, Segment(REMINDER)))
    prompt = replace(request.prompt, turns=(*request.prompt.turns[:-1], turn))
    return replace(request, prompt=prompt, seed=request.seed + 7919 * (attempt - 1))


def json_object(text: str) -> Mapping[str, Any]:
    """The first JSON object in a reply, whatever follows it; :class:`Unreadable` (parse_error) if there is none."""
    start = text.find("{")
    if start < 0:
        raise Unreadable("parse_error", "no JSON object in the reply")
    try:
        data = json_value(text, start)
    except (ValueError, RecursionError) as error:
        raise Unreadable("parse_error", f"broken JSON: {error}") from None
    if not isinstance(data, dict):
        raise Unreadable("parse_error", "the reply is not a JSON object")
    return data


def json_value(text: str, start: int = 0, *, strict: bool = True) -> Any:
    """The JSON value that begins at ``start``, whatever follows it, in texts that can be written.

    The escape of one half of a surrogate pair is valid JSON and fits into no encoding: it becomes U+FFFD.
    ValueError or RecursionError if there is no value; ``strict`` as in ``json.JSONDecoder``.
    """
    value, _ = json.JSONDecoder(strict=strict).raw_decode(text, start)
    return _writable(value)


def _writable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_writable(entry) for entry in value]
        case dict():
            return {_writable(key): _writable(entry) for key, entry in value.items()}
    return value


def number_field(data: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """A number between ``low`` and ``high``; missing or of another type is parse_error, outside is out_of_range."""
    if name not in data:
        raise Unreadable("parse_error", f"no field {name!r}")
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("parse_error", f"{name} is {value!r}, not a number")
    if not low <= value <= high:
        raise Unreadable("out_of_range", f"{name} is {value!r}, not within {low:g} to {high:g}")
    return float(value)


def text_field(data: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text; parse_error if it is missing (without a default) or of another type."""
    value = data.get(name, default)
    if not isinstance(value, str):
        raise Unreadable("parse_error", f"{name} is {value!r}, not a text")
    return value
