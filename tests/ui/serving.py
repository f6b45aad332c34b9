"""A running page on a free port of this machine, and people who are signed in to it."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import httpx

from mdqa.users import Role, User, hashed, write_users
from ui.context import Context
from ui.launching import launch_options
from ui.layout import appearance, build_ui
from ui.page import Page

PASSWORD = "correct horse"
PEOPLE: Mapping[str, Role] = {"ada": "admin", "ann": "annotator", "lin": "analyst", "bob": "annotator"}


def with_users(context: Context, folder: Path) -> Context:
    """The context of a page to which :data:`PEOPLE` sign in with :data:`PASSWORD`."""
    kept = hashed(PASSWORD)
    write_users(folder / "users.json", [User(name, role, kept) for name, role in PEOPLE.items()])
    return replace(context, settings=replace(context.settings, users=folder / "users.json"))


@contextmanager
def served(context: Context) -> Iterator[tuple[Page, str]]:
    """The page as ``app.py`` serves it, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = replace(context.settings, host="127.0.0.1", port=port)
    page = build_ui(replace(context, settings=settings)).queue(max_size=200, default_concurrency_limit=40)
    try:
        page.launch(**launch_options(settings), **appearance(), prevent_thread_lock=True)
        yield page, f"http://127.0.0.1:{port}"
    finally:
        page.close(verbose=False)


def defaults(page: Page, number: int) -> list[Any]:
    """What a browser sends for a listener as long as nobody has typed or chosen anything."""
    return [None if isinstance(box, gr.State) else getattr(box, "value", None) for box in page.fns[number].inputs]


@contextmanager
def sign_in(url: str, name: str, password: str = PASSWORD) -> Iterator[httpx.Client]:
    """A client that this person has signed in with."""
    with httpx.Client(base_url=url, timeout=20) as client:
        client.post("/login", data={"username": name, "password": password}).raise_for_status()
        yield client


def call(client: httpx.Client, number: int, data: list[Any], **more: Any) -> httpx.Response:
    """A listener by its number, straight away; in a session of its own if ``session_hash`` is not given."""
    body = {"fn_index": number, "data": data, "session_hash": uuid.uuid4().hex, **more}
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    return client.post("/gradio_api/run/predict", content=content, headers={"content-type": "application/json"})


def queued(client: httpx.Client, number: int, data: list[Any], **more: Any) -> str:
    """A listener through the queue, as the page calls it: all that the event stream says until it has ended."""
    session = uuid.uuid4().hex
    body = {"fn_index": number, "data": data, "session_hash": session, **more}
    client.post("/gradio_api/queue/join", json=body).raise_for_status()
    seen = []
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as answer:
        for line in answer.iter_lines():
            seen.append(line)
            if "process_completed" in line or "close_stream" in line or "unexpected_error" in line:
                break
    return "\n".join(seen)
