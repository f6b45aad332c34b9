"""Between the network and Gradio: headers for the browser, limits for requests, and routes that nobody needs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ui.guard import explained

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_UPLOAD = 64 * 2**20
"""Bytes of an uploaded file; its frame may take a little more."""
MAX_BODY = 16 * 2**20
"""Bytes of every other request: above what a question at the limits of the settings takes."""
FRAME = 2**16

CLOSED = tuple(
    f"{start}/{route}"
    for start in ("", "/gradio_api")
    for route in (
        *("component_server", "custom_component", "deep_link", "dev", "monitoring", "openapi.json"),
        *("process_recording", "profiling", "proxy=", "run-history", "runs", "stream", "token", "undo-vibe-edit"),
        "vibe",
    )
)
"""Beginnings of Gradio's routes that the page does not use: each is a way in that nobody has to watch."""

OWN = "'self'"
SPACES = "https://huggingface.co https://*.hf.space"
"""A Space is shown in a frame of these."""


def headers(*, space: bool) -> tuple[tuple[bytes, bytes], ...]:
    """What every answer carries.

    Gradio starts itself by a script in the page and makes functions from text, so scripts cannot be told apart here;
    but nothing is fetched from, sent to or framed by anybody else.
    """
    policy = {
        "default-src": OWN,
        "script-src": f"{OWN} 'unsafe-inline' 'unsafe-eval'",
        "style-src": f"{OWN} 'unsafe-inline'",
        "img-src": f"{OWN} data: blob:",
        "font-src": f"{OWN} data:",
        "worker-src": f"{OWN} blob:",
        "object-src": "'none'",
        "base-uri": OWN,
        "form-action": OWN,
        "frame-ancestors": f"{OWN} {SPACES}" if space else OWN,
    }
    found = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }
    if not space:
        found |= {"x-frame-options": "SAMEORIGIN", "cross-origin-opener-policy": "same-origin"}
    return tuple((name.encode(), value.encode()) for name, value in found.items())


class Shield:
    """ASGI middleware for ``launch(app_kwargs={"middleware": ...})``."""

    def __init__(self, app: Callable[[Any, Receive, Send], Awaitable[None]], *, space: bool = False) -> None:
        self.app, self.headers = app, headers(space=space)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 404 (closed) or 413 (too large) in its place."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if _is_closed(scope["path"]):
            await self._refuse(send, 404, "not found")
            return
        limit = MAX_UPLOAD + FRAME if scope["path"].rstrip("/").endswith("/upload") else MAX_BODY
        taken, begun, too_large = 0, False, _length(scope) > limit

        async def counted() -> Message:
            nonlocal taken, too_large
            message = await receive()
            taken += len(message.get("body", b""))
            too_large = too_large or taken > limit
            return {"type": "http.disconnect"} if too_large else message

        async def sealed(message: Message) -> None:
            nonlocal begun
            if too_large and not begun:
                return  # whatever the program makes of half a request
            if message["type"] == "http.response.start":
                begun = True
                own = {name for name, _ in self.headers}
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in own]
                message = {**message, "headers": [*kept, *self.headers]}
            await send(message)

        if not too_large:
            try:
                await self.app(scope, counted, sealed)
            except Exception as problem:
                if begun:
                    raise  # the server hangs up: half an answer must not look like a whole one
                if not too_large:  # the program's own faults are explained before they come here; these are Gradio's
                    await self._refuse(send, 500, explained(problem))
                    return
        if too_large and not begun:
            await self._refuse(send, 413, "too large")

    async def _refuse(self, send: Send, status: int, words: str) -> None:
        found = [(b"content-type", b"application/json"), (b"connection", b"close"), *self.headers]
        await send({"type": "http.response.start", "status": status, "headers": found})
        await send({"type": "http.response.body", "body": json.dumps({"detail": words}).encode()})


def _is_closed(path: str) -> bool:
    return ("/" + path.lstrip("/")).startswith(CLOSED)


def _length(scope: MutableMapping[str, Any]) -> int:
    """The announced length; 0 where there is none or it is no number."""
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() and len(text) < 19 else 0
