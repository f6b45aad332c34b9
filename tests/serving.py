"""A server on this machine that speaks OpenAI's protocol: real HTTP, replies from a list."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mdqa.backends.served import Served

Failure = Callable[["Handler"], None]
"""What is done with a request in place of an answer."""


class Server(ThreadingHTTPServer):
    """Serves ``/v1/models``, ``/v1/completions`` and ``/v1/chat/completions``.

    ``pieces``: the reply, as it is streamed. ``first``: what is done with the first requests instead, one by one.
    ``vllm``: whether it says that it is vLLM. ``gate``: if set, replies wait for it after their first piece.
    """

    daemon_threads = True

    def __init__(self, *, vllm: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.vllm = vllm
        self.models: list[dict[str, Any]] = [{"id": "tiny", "owned_by": "vllm" if vllm else "us"}]
        if vllm:
            self.models[0] |= {"max_model_len": 2048, "root": "/nowhere/tiny"}
        self.pieces = ["The", " sky", " is blue"]
        self.finish: str | None = "stop"
        self.first: list[Failure] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.gate: threading.Event | None = None
        self.at_once = self.most_at_once = self.broken_off = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def served(self) -> Served:
        return Served(self.url, "tiny", 2048, "0.32.0" if self.vllm else "", "")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body in self.requests]


class Handler(BaseHTTPRequestHandler):
    """One request to the server."""

    server: Server
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        self.server.headers.append(dict(self.headers))
        if self.server.first:
            self.server.first.pop(0)(self)
        elif self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": self.server.models})
        elif self.path == "/version" and self.server.vllm:
            self.reply(200, {"version": "0.32.0"})
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append((self.path, body))
            self.server.headers.append(dict(self.headers))
            failure = self.server.first.pop(0) if self.server.first else None
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        try:
            if failure is not None:
                failure(self)
            elif body.get("stream"):
                self.stream(self.server.pieces, self.server.finish)
            else:
                self.reply(200, self.logprobs(body))
        except (BrokenPipeError, ConnectionResetError):
            self.server.broken_off += 1
        finally:
            with self.server.lock:
                self.server.at_once -= 1

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def stream(self, pieces: list[str], finish: str | None, *, usage: bool = True) -> None:
        """A streamed reply; without ``finish`` the line ends in the middle."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        chat = self.path.endswith("chat/completions")
        for place, piece in enumerate(pieces):
            self.event(chat, piece, None)
            while self.server.gate is not None and place == 0 and not self.server.gate.wait(0.05):
                self.wfile.write(b": still here\n\n")  # finds out whether somebody still listens
                self.wfile.flush()
        if finish is None:
            return
        self.event(chat, "", finish)
        if usage:
            counted = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
            self.data({"choices": [], "usage": counted | {"prompt_tokens_details": {"cached_tokens": 16}}})
        self.wfile.write(b"data: [DONE]\n\n")

    def events(self, *lines: str) -> None:
        """A stream of just these events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write("".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode())

    def event(self, chat: bool, piece: str, finish: str | None) -> None:
        content = {"delta": {"content": piece}} if chat else {"text": piece}
        self.data({"choices": [{"index": 0, "finish_reason": finish, **content}]})

    def data(self, body: Any) -> None:
        kind = "chat.completion.chunk" if self.path.endswith("chat/completions") else "text_completion"
        whole = {"id": "1", "object": kind, "created": int(time.time()), "model": "tiny", **body}
        self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
        self.wfile.flush()

    def logprobs(self, body: dict[str, Any]) -> dict[str, Any]:
        """Minus a tenth of its place for every token of the prompt."""
        ids = body["prompt"]
        table = [None, *({str(i): {"logprob": -place / 10, "rank": 1}} for place, i in enumerate(ids[1:], 1))]
        choice = {"index": 0, "text": "x", "finish_reason": "length", "logprobs": None, "prompt_logprobs": table}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1}
        return {
            "id": "1",
            "object": "text_completion",
            "created": 1,
            "model": "tiny",
            "choices": [choice],
            "usage": usage,
        }

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def serving(*, vllm: bool = False) -> Iterator[Server]:
    """A server that runs while the block does."""
    server = Server(vllm=vllm)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        if server.gate is not None:
            server.gate.set()
        server.shutdown()
        server.server_close()
