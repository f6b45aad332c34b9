"""Hostile values to every listener and route of a running server: it stays up, and says nothing that it should not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gradio as gr
import httpx
import pytest

from tests.storage.builders import complete, header
from tests.ui.helpers import open_scripted
from tests.ui.serving import call, defaults, served
from ui.context import Context
from ui.page import Page

EVIL = '<img src=x onerror="alert(1)">'


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


HOSTILE: dict[str, Any] = {
    "nothing": None,
    "wrong type": {"a": [1, {"b": None}]},
    "list": [[], {}, None, EVIL],
    "not a number": math.nan,
    "infinite": -math.inf,
    "large number": 10**400,
    "true": True,
    "markup": EVIL,
    "surrogate": f"\ud800{EVIL}\udfff",
    "zero": "\x00\x07\x1b[2J",
    "long": "€" * 20_000,
    "path": "../../../../etc/passwd",
    "file": {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
    "url": {"path": "x", "url": "http://127.0.0.1:1/x", "meta": {"_type": "gradio.FileData"}},
    "statement": "'; drop table runs; --",
    "update": {"__type__": "update", "value": EVIL, "visible": True},
    "deep": nested(200),
    "run": "kept",
}
"""By name, so that a failure says which one it was."""

NAMES = list(HOSTILE)
EACH = 2
"""Values that every listener gets; all of them go round among the listeners."""


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    with closing(open_scripted(tmp_path_factory.mktemp("fuzz"))) as opened:
        opened.store.runs.begin(header("kept"))
        opened.store.runs.finish(complete("kept").model_copy(update={"answer": EVIL}))
        yield opened


@pytest.fixture(scope="module")
def server(context: Context) -> Iterator[tuple[Page, httpx.Client]]:
    with served(context) as (page, url), httpx.Client(base_url=url, timeout=30) as client:
        yield page, client


def telltales(context: Context, text: str) -> list[str]:
    """What no answer may hold: places in the program or on the disk, and texts of Python's exceptions."""
    signs = (
        "Traceback",
        "site-packages",
        'File \\"',
        ".py",
        "Error(",
        "Exception",
        str(context.settings.database.parent),
    )
    return [sign for sign in signs if sign in text]


def test_every_listener_survives_hostile_values(server: tuple[Page, httpx.Client], context: Context) -> None:
    page, client = server
    for number, fn in page.fns.items():
        for turn in range(EACH):
            name = NAMES[(number * EACH + turn + number // len(NAMES)) % len(NAMES)]
            data = [HOSTILE[name] for _ in fn.inputs]
            event = {"trigger_id": fn.targets[0][0] if fn.targets else None, "event_data": HOSTILE[name]}
            answer = call(client, number, data, session_hash="fuzz", **event)
            where = f"{fn.name} ({number}) with {name}: {answer.status_code} {answer.text[:400]}"
            assert answer.status_code in (200, 422, 500), where
            assert not telltales(context, answer.text), where
            said = answer.json()  # an answer that Gradio made, not the server's last resort
            if answer.status_code == 500:
                assert "<img" not in str(said["error"]), where
                assert "(reference" not in str(said["error"]), where
            for box, value in zip(fn.outputs, said.get("data") or [], strict=False):
                if isinstance(box, gr.HTML | gr.Markdown):
                    assert "<img src=x" not in str(value), where
    assert client.get("/config").status_code == 200
    assert context.store.runs.get("kept").answer == EVIL


def test_too_few_and_too_many_values_are_survived(server: tuple[Page, httpx.Client], context: Context) -> None:
    page, client = server
    for number in list(page.fns)[::9]:
        for data in ([], [*defaults(page, number), EVIL, EVIL]):
            answer = call(client, number, data, session_hash="fuzz")
            assert answer.status_code in (200, 500) and not telltales(context, answer.text), answer.text[:400]


BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe{",
    b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"fn_index": 1e400, "data": []}',
    b'{"fn_index": -1, "data": []}',
    b'{"fn_index": 99999999, "data": [], "session_hash": "x"}',
    b'{"fn_index": 0, "data": [], "session_hash": ["x"]}',
    b'{"fn_index": 0, "data": ["x"], "session_hash": "\\ud800", "trigger_id": 99999999}',
    b'{"fn_index": 0, "data": [1], "batched": true, "session_hash": "x"}',
    json.dumps({"fn_index": 0, "data": [EVIL], "session_hash": "../" * 50, "event_data": EVIL}).encode(),
    json.dumps({"data": [EVIL], "session_hash": "x"}).encode(),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_every_route_survives_bodies_that_are_none(
    server: tuple[Page, httpx.Client], context: Context, body: bytes
) -> None:
    _, client = server
    kind = {"content-type": "application/json"}
    for route in ("run/predict", "queue/join", "call/predict", "call/v2/predict", "cancel", "reset", "upload"):
        answer = client.post(f"/gradio_api/{route}", content=body, headers=kind)
        assert not telltales(context, answer.text), (route, answer.text[:400])
        assert EVIL not in answer.text, (route, answer.text[:400])
    assert client.get("/config").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        f"/?run={EVIL}&tab={EVIL}&before={EVIL}",
        "/?run=" + "x" * 5_000,
        "/?deep_link=../../etc/passwd",
        f"/gradio_api/queue/data?session_hash={EVIL}",
        "/gradio_api/call/predict/%2e%2e%2f",
        f"/gradio_api/file={EVIL}",
        "/gradio_api/heartbeat/%00",
        f"/{EVIL}",
        "/assets/../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/routes.py",
    ],
    ids=range(10),
)
def test_addresses_with_anything_in_them_are_survived(
    server: tuple[Page, httpx.Client], context: Context, path: str
) -> None:
    _, client = server
    with client.stream("GET", path) as answer:  # some of these stay open
        text = next(answer.iter_text(), "")
    assert EVIL not in text and "root:x" not in text and "from __future__ import" not in text
    assert path.startswith("/?") or not telltales(context, text), text[:400]
