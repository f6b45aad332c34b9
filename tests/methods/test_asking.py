"""Asking several roles at once: one batch, each reply read in its role's way, the unreadable ones asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.methods.asking import REMINDER, Inquiry, Unreadable, ask, ask_together, json_object
from mdqa.methods.base import Tools
from mdqa.methods.recorder import Recorder
from mdqa.prompting import Prompt, document_segments, parse_template
from mdqa.records import Document, Generation
from mdqa.trace import BaseEvent, ModelCall

TEMPLATE = parse_template("t", "### user\n{{documents}}\nReply:")


def prompt(document: str) -> Prompt:
    return TEMPLATE.fill(documents=document_segments([Document(id=document, text=f"Text of {document}.")]))


def request(document: str, seed: int = 0) -> GenerationRequest:
    return GenerationRequest(prompt(document), seed=seed)


def number(text: str) -> int:
    if not text.isdecimal():
        raise Unreadable("parse_error", f"{text!r} is no number")
    return int(text)


class Batches(ScriptedBackend):
    """Keeps how many requests each call brought."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.sizes: list[int] = []

    def generate(self, requests: Sequence[GenerationRequest], **options: Any) -> list[Generation]:
        self.sizes.append(len(requests))
        return super().generate(requests, **options)


def recorder(backend: ScriptedBackend) -> tuple[Recorder, list[BaseEvent]]:
    events: list[BaseEvent] = []
    return Recorder(Tools(backend), sink=events.append, cancel=CancelToken()), events


def test_roles_share_a_batch_and_each_reply_is_read_in_its_own_way() -> None:
    backend = Batches(lambda request: str(10 + request.seed))
    run, events = recorder(backend)
    numbers = Inquiry("counter", [request("a", 1), request("b", 2)], number)
    words = Inquiry("speller", [request("c", 3)], lambda text: f"<{text}>", documents=[("c", "d")])
    counted, spelled = ask_together(run, [numbers, words])
    assert backend.sizes == [3]
    assert [reply.value for reply in counted] == [11, 12]
    assert [reply.value for reply in spelled] == ["<13>"]
    calls = [event for event in events if isinstance(event, ModelCall)]
    assert [(call.role, call.documents) for call in calls] == [
        ("counter", ("a",)),
        ("counter", ("b",)),
        ("speller", ("c", "d")),
    ]
    assert [reply.call for reply in (*counted, *spelled)] == [0, 1, 2]


def test_what_cannot_be_read_is_asked_again_together_with_the_others() -> None:
    def reply(request: GenerationRequest) -> str:
        again = REMINDER in "".join(turn.text for turn in request.prompt.turns)
        return "7" if again and "b" in request.prompt.document_ids else "neither"

    backend = Batches(reply)
    run, events = recorder(backend)
    one = Inquiry("one", [request("a"), request("b")], number)
    two = Inquiry("two", [request("c")], lambda text: text)
    three = Inquiry("three", [request("d")], number)
    [a, b], [c], [d] = ask_together(run, [one, two, three])
    assert backend.sizes == [4, 3]
    assert (a.status, a.raw, a.attempts) == ("parse_error", "neither", 2)
    assert (b.value, b.attempts) == (7, 2)
    assert (c.value, c.attempts) == ("neither", 1)
    assert d.value is None
    roles = [(event.role, event.attempt) for event in events if isinstance(event, ModelCall)]
    assert roles == [("one", 1), ("one", 1), ("two", 1), ("three", 1), ("one", 2), ("one", 2), ("three", 2)]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_role_without_requests_has_no_replies(retries: int) -> None:
    run, _ = recorder(Batches(lambda request: "5"))
    nothing = Inquiry[int]("none", [], number)
    assert ask_together(run, [nothing, Inquiry("one", [request("a")], number)], retries=retries)[0] == []
    assert ask_together(run, [nothing], retries=retries) == [[]]
    assert [reply.value for reply in ask(run, "one", [request("a")], number, retries=retries)] == [5]


def test_without_a_request_the_model_is_not_called() -> None:
    backend = Batches(lambda request: "1")
    run = Recorder(Tools(backend), sink=lambda event: None, cancel=CancelToken())
    assert ask_together(run, [Inquiry("a", [], number), Inquiry("b", [], number)]) == [[], []]
    assert ask(run, "a", [], number) == []
    assert backend.sizes == []


def test_half_characters_of_a_reply_are_replaced() -> None:
    """A model may write any escape, and text with half of a pair can be neither printed nor kept."""
    reply = r'{"a\ud83d": ["\udfff", {"b": "x\ud83d"}], "whole": "\ud83d\ude00", "number": 1.5}'
    read = json_object(reply)
    assert read == {"a\ufffd": ["\ufffd", {"b": "x\ufffd"}], "whole": "\U0001f600", "number": 1.5}
