"""What the server sends beside its answers, and what it does not take: through a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.ui.helpers import open_scripted
from tests.ui.serving import served
from ui.context import Context
from ui.shield import FRAME, MAX_BODY, MAX_UPLOAD, Shield, headers


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    with closing(open_scripted(tmp_path_factory.mktemp("shield"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(context: Context) -> Iterator[httpx.Client]:
    with served(context) as (_, url), httpx.Client(base_url=url, timeout=20) as opened:
        yield opened


@pytest.mark.parametrize("path", ["/", "/config", "/theme.css", "/nothing", "/gradio_api/token", "/gradio_api/info"])
def test_every_answer_carries_the_headers(client: httpx.Client, path: str) -> None:
    found = client.get(path).headers
    for name, value in headers(space=False):
        assert found.get_list(name.decode()) == [value.decode()]
    assert "frame-ancestors 'self'" in found["content-security-policy"]


def test_a_space_may_be_framed_by_hugging_face_only() -> None:
    found = {name.decode(): value.decode() for name, value in headers(space=True)}
    assert "frame-ancestors 'self' https://huggingface.co https://*.hf.space" in found["content-security-policy"]
    assert "x-frame-options" not in found


@pytest.mark.parametrize(
    "path",
    [
        "/monitoring",
        "/gradio_api/token",
        "/gradio_api/runs",
        "/gradio_api/deep_link?session_hash=x",
        "//gradio_api/deep_link",
        "/gradio_api/openapi.json",
        "/gradio_api/proxy=https://example.org",
        "/gradio_api/vibe-code",
        "/gradio_api/call/annotate",
        "/gradio_api/cancel",
        "/gradio_api/file=https://example.org/x.png",
    ],
)
def test_routes_that_the_page_does_not_need_are_closed(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/gradio_api/cancel", "/lab/gradio_api/cancel", "/lab//gradio_api/cancel"])
def test_a_prefix_of_a_proxy_opens_nothing(context: Context, path: str) -> None:
    seen: list[int] = []

    async def nothing(*_: object) -> dict[str, object]:
        raise AssertionError("the request was passed on")

    async def send(message: Mapping[str, object]) -> None:
        seen.extend([message["status"]] if "status" in message else [])  # type: ignore[list-item]

    scope = {"type": "http", "method": "POST", "path": path, "root_path": "/lab", "headers": []}
    asyncio.run(Shield(nothing, context.settings)(scope, nothing, send))  # type: ignore[arg-type]
    assert seen == [404]


def test_no_file_of_the_server_is_served(client: httpx.Client, context: Context) -> None:
    database = context.settings.database
    (database.parent / "beside.txt").write_text("secret", encoding="utf-8")
    paths = [database, database.parent, database.parent / "beside.txt", Path(__file__), Path("/etc/passwd")]
    for path in [*paths, f"{database}-wal", f"{database.parent}/../{database.parent.name}/beside.txt"]:
        for route in (f"/gradio_api/file={path}", f"/gradio_api/file/{path}", f"/file={path}"):
            answer = client.get(route)
            assert answer.status_code in (403, 404) and "secret" not in answer.text, route


@pytest.mark.parametrize(
    ("sent", "passes"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1"}, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, False),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "origin": "http://127.0.0.1"}, False),
        ({"origin": "http://127.0.0.1:1"}, True),
        ({"origin": "http://lab.example", "x-forwarded-host": "lab.example"}, True),
        ({"origin": "http://lab.example:8080", "x-forwarded-host": "lab.example:8080, proxy.local"}, True),
        ({"origin": "https://example.org"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://[::"}, False),
    ],
)
def test_pages_of_other_sites_may_lead_here_and_ask_nothing(
    client: httpx.Client, sent: dict[str, str], passes: bool
) -> None:
    assert client.get("/gradio_api/app_id", headers=sent).status_code == (200 if passes else 403)
    led_here = sent.get("sec-fetch-mode") == "navigate"
    form = client.post("/login", data={"username": "x", "password": "y"}, headers=sent)
    assert (form.status_code == 403) == (led_here or not passes)


@pytest.mark.parametrize("name", ["example.org", "127.0.0.1.example.org", "[::", "", "10.0.0.1"])
def test_a_page_without_a_sign_in_is_served_under_names_of_this_machine_only(client: httpx.Client, name: str) -> None:
    assert client.get("/gradio_api/app_id", headers={"host": name}).status_code == 403
    assert client.get("/gradio_api/app_id", headers={"host": "localhost:8000"}).status_code == 200


def answer_to(client: httpx.Client, path: str, announced: int) -> bytes:
    """The beginning of the answer to a request of which only the announcement is sent."""
    address = urlsplit(str(client.base_url))
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=20) as line:
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n\r\n".encode())
        return line.recv(4096)


def test_uploads_have_a_size(client: httpx.Client) -> None:
    assert b" 413 " in answer_to(client, "/gradio_api/upload", MAX_UPLOAD + FRAME + 1)
    assert b" 400 " in answer_to(client, "/gradio_api/upload", MAX_UPLOAD + FRAME)  # it says of no kind, but may come
    assert client.post("/gradio_api/upload", files={"files": ("small.json", b"{}")}).status_code == 200


def test_requests_have_a_size_whatever_they_announce(client: httpx.Client) -> None:
    assert client.post("/gradio_api/run/predict", content=b"x" * (MAX_BODY + 1)).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 2**20 + 2):
            yield b"x" * 2**20

    with suppress(httpx.TransportError):  # the server may hang up on somebody who goes on talking
        assert client.post("/gradio_api/run/predict", content=pieces()).status_code == 413
    assert b" 413 " in answer_to(client, "/login", 99999999999)
    assert client.get("/config").status_code == 200
