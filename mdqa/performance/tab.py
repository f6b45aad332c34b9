"""A browser's tab without a browser: what a button starts goes through Gradio's queue, and its event stream is read."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from mdqa.errors import ModelError

BEATS = 60.0
"""Seconds without a sign of the server after which a tab gives up. Gradio sends a heartbeat every 15 s."""


@dataclass(frozen=True)
class Listener:
    """What hangs on an event of the page, and what is sent for it as long as nobody has typed or chosen anything."""

    number: int
    boxes: tuple[int, ...]
    values: tuple[Any, ...]
    then: tuple[int, ...]


class Layout:
    """The listeners of a page by number, and those of its buttons, as ``/config`` tells a browser."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        boxes = {box["id"]: box for box in config["components"]}
        self._ids = {box["props"].get("elem_id"): number for number, box in boxes.items()}
        self._targets = {one["id"]: [tuple(target) for target in one["targets"]] for one in config["dependencies"]}
        values = {
            number: None if box["type"] == "state" else box["props"].get("value") for number, box in boxes.items()
        }
        after: dict[int, list[int]] = {}
        for one in config["dependencies"]:
            after.setdefault(one["trigger_after"], []).append(one["id"])
        self.listeners = {
            one["id"]: Listener(
                number=one["id"],
                boxes=tuple(one["inputs"]),
                values=tuple(values[box] for box in one["inputs"]),
                then=tuple(after.get(one["id"], ())),
            )
            for one in config["dependencies"]
        }

    @classmethod
    def of(cls, url: str) -> Layout:
        """The layout of the page at this address."""
        answer = httpx.get(f"{url}/config", timeout=BEATS, trust_env=False)
        return cls(answer.raise_for_status().json())

    def of_button(self, name: str) -> list[Listener]:
        """What a press on the button with this ``elem_id`` starts; ModelError where there is no such button."""
        found = [one for n, one in self.listeners.items() if (self._ids.get(name), "click") in self._targets[n]]
        if not found:
            raise ModelError(f"the page has no button {name!r}")
        return found

    def filled(self, listener: Listener, given: Mapping[str, Any]) -> Listener:
        """The listener with what a person chose, by the ``elem_id`` of the box; ModelError where it has no such box."""
        chosen = {self._ids.get(name): value for name, value in given.items()}
        if missing := [name for name in given if self._ids.get(name) not in listener.boxes]:
            raise ModelError(f"the page sends no box {missing[0]!r} there")
        pairs = zip(listener.boxes, listener.values, strict=True)
        return replace(listener, values=tuple(chosen.get(box, value) for box, value in pairs))


class Tab:
    """One open page: ``press`` starts what a button starts, ``follow`` reads until it and what follows have ended."""

    def __init__(self, url: str, layout: Layout) -> None:
        self._layout = layout
        self._session = uuid.uuid4().hex
        self._client = httpx.Client(base_url=url, timeout=BEATS, trust_env=False)
        self._going: dict[str, Listener] = {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def press(self, button: str, given: Mapping[str, Any] | None = None) -> None:
        """Press a button, after the boxes ``given`` were filled; ModelError if the server does not take it."""
        self._start([self._layout.filled(one, given or {}) for one in self._layout.of_button(button)])

    def follow(self) -> Iterator[Any]:
        """The first output of every message that brings one (None for others), until nothing is going on any more.

        ModelError if a listener failed or the stream broke off.
        """
        while self._going:
            then: list[int] = []
            for said in self._messages():
                listener = self._going.get(said.get("event_id") or "")
                if listener is not None and said["msg"] == "process_completed":
                    del self._going[said["event_id"]]
                    if not said["success"]:
                        raise ModelError(f"listener {listener.number} failed: {said['output']}")
                    then.extend(listener.then)
                yield _first(said)
            self._start([self._layout.listeners[number] for number in then])

    def _messages(self) -> Iterator[dict[str, Any]]:
        """One event stream, which the server closes when nothing of this tab is going on."""
        with self._client.stream("GET", "/gradio_api/queue/data", params={"session_hash": self._session}) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    said = json.loads(line.removeprefix("data:"))
                    if said["msg"] == "unexpected_error":
                        raise ModelError(f"the event stream broke off: {said.get('message')}")
                    yield said

    def _start(self, listeners: Sequence[Listener]) -> None:
        for one in listeners:
            body = {"fn_index": one.number, "data": one.values, "session_hash": self._session}
            answer = self._client.post("/gradio_api/queue/join", json=body)
            if not answer.is_success:
                raise ModelError(f"listener {one.number} was not taken: {answer.status_code} {answer.text[:200]}")
            self._going[answer.json()["event_id"]] = one


def _first(said: Mapping[str, Any]) -> Any:
    """The first output: the value, or what an edit puts in its place (Gradio sends edits after the first value)."""
    data = (said.get("output") or {}).get("data") or [None]
    first = data[0]
    if said["msg"] == "process_generating" and isinstance(first, list):
        return next((edit[2] for edit in first if edit[:2] == ["replace", []]), None)
    return first


def attribute(content: Any, name: str) -> str | None:
    """The value of the first attribute of this name in a piece of HTML; None where there is none."""
    found = re.search(rf'\b{re.escape(name)}="([^"]*)"', content) if isinstance(content, str) else None
    return found[1] if found else None
