"""What the server sends beside its answers, and what it does not take: through a real server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.ui.helpers import open_scripted
from tests.ui.serving import served
from ui.context import Context
from ui.shield import MAX_BODY, MAX_UPLOAD, headers


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
    ],
)
def test_routes_that_the_page_does_not_need_are_closed(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_no_file_of_the_server_is_served(client: httpx.Client, context: Context) -> None:
    database = context.settings.database
    (database.parent / "beside.txt").write_text("secret", encoding="utf-8")
    paths = [database, database.parent, database.parent / "beside.txt", Path(__file__), Path("/etc/passwd")]
    for path in [*paths, f"{database}-wal", f"{database.parent}/../{database.parent.name}/beside.txt"]:
        for route in (f"/gradio_api/file={path}", f"/gradio_api/file/{path}", f"/file={path}"):
            answer = client.get(route)
            assert answer.status_code in (403, 404) and "secret" not in answer.text, route


def test_uploads_have_a_size(client: httpx.Client) -> None:
    files = {"files": ("big.json", b"x" * (MAX_UPLOAD + 1))}
    assert client.post("/gradio_api/upload", files=files).status_code == 413
    assert client.post("/gradio_api/upload", files={"files": ("small.json", b"{}")}).status_code == 200


def test_requests_have_a_size_whatever_they_announce(client: httpx.Client) -> None:
    address = urlsplit(str(client.base_url))
    assert client.post("/gradio_api/run/predict", content=b"x" * (MAX_BODY + 1)).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 2**20 + 2):
            yield b"x" * 2**20

    with suppress(httpx.TransportError):  # the server may hang up on somebody who goes on talking
        assert client.post("/gradio_api/run/predict", content=pieces()).status_code == 413
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=20) as line:
        line.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in line.recv(4096)
    assert client.get("/config").status_code == 200
