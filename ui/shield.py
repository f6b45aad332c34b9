"""Between the network and Gradio: headers for the browser, limits for requests, and who may ask for what by a route.

Routes that run handlers are left to :mod:`ui.page`; here are those that give out or take something without one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
from starlette.requests import Request

from mdqa.errors import ConfigError, InputError, MdqaError
from mdqa.ports import is_loopback
from mdqa.settings import Settings
from mdqa.users import clean_name, read_users
from ui.guard import SEES_RUNS, explained
from ui.people import require, signed_in

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Refusal = tuple[int, str]

MAX_UPLOAD = 64 * 2**20
"""Bytes of an uploaded file; its frame may take a little more."""
MAX_BODY = 16 * 2**20
"""Bytes of every other request: above what a question at the limits of the settings takes."""
FRAME = 2**16

CLOSED = tuple(
    f"{start}/{route}"
    for start in ("", "/gradio_api")
    for route in (
        *("api/", "call/", "cancel", "component_server", "custom_component", "deep_link", "dev", "file=http"),
        *("file/http", "monitoring", "openapi.json", "process_recording", "profiling", "proxy=", "reset"),
        *("run-history", "runs", "stream", "token", "undo-vibe-edit", "vibe"),
    )
)
"""Beginnings of Gradio's routes that the page does not use: each is a way in that nobody has to watch."""
FILES = ("/gradio_api/file", "/gradio_api/upload")
"""Beginnings of the routes for files: for those who see runs. Annotators neither load nor save any."""
HEARTBEAT, ANSWERS = "/gradio_api/heartbeat/", "/gradio_api/queue/data"
"""Routes of one open page: that it is open, and what its handlers answer."""

ELSEWHERE = (b"cross-site", b"same-site")
"""What browsers say of a request that another site's page makes (https://www.w3.org/TR/fetch-metadata/)."""

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
    """ASGI middleware for ``launch(app_kwargs={"middleware": ...})`` around a :class:`ui.page.Page`."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], settings: Settings) -> None:
        self.app, self.headers = app, headers(space=settings.space)
        self.settings = settings
        self._passwords = _passwords(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 401 or 403 (not for this person), 404 (closed) or 413 (too large) for it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal:
            await self._refuse(send, *refusal)
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
                safe = [_cookie(scope, *pair, space=self.settings.space) for pair in kept]
                message = {**message, "headers": [*safe, *self.headers]}
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

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Status and words for what is not passed on; None for what is."""
        path = _route(scope)
        if path.startswith(CLOSED):
            return 404, "not found"
        if not self.settings.sign_in and is_loopback(self.settings.host) and not is_loopback(_host(scope)):
            # Where the owner needs no password, any site could give itself this address and be them (DNS rebinding).
            return 403, f"this page is for {self.settings.host} only; to serve it under a name, let people sign in"
        if _is_forged(scope):
            return 403, "another site may not ask for this"
        self._end_sign_ins(scope["app"].tokens)
        try:
            return self._not_theirs(scope, path)
        except MdqaError as problem:
            return 401 if isinstance(problem, InputError) else 403, explained(problem)

    def _not_theirs(self, scope: Scope, path: str) -> Refusal | None:
        """For the routes of files and of open pages: whether this person may use them."""
        request, app = Request(scope), scope["app"]
        page, person = app.get_blocks(), gr.Request(request, username=_user_name(app, request))
        if path.startswith(FILES):
            require(page.context, person, *SEES_RUNS)
        session = path.removeprefix(HEARTBEAT) if path.startswith(HEARTBEAT) else None
        if path.startswith(ANSWERS):
            session = request.query_params.get("session_hash")
        if session is None:
            return None
        name = signed_in(self.settings, person)
        if name is None and self.settings.sign_in == "password":
            return 401, "sign in first"
        return None if page.sessions.are_of(session, name) else (403, "this page was opened by somebody else")

    def _end_sign_ins(self, tokens: MutableMapping[str, str]) -> None:
        """Sign out everybody who has another password now, or is not in the file any more. ``tokens``: names by cookie.

        Gradio itself lets a sign-in last until the program ends.
        """
        now = _passwords(self.settings) if self.settings.users else self._passwords
        if now == self._passwords:
            return
        for token, name in list(tokens.items()):
            if self._passwords.get(clean_name(name)) != now.get(clean_name(name)):
                del tokens[token]
        self._passwords = now

    async def _refuse(self, send: Send, status: int, words: str) -> None:
        found = [(b"content-type", b"application/json"), (b"connection", b"close"), *self.headers]
        await send({"type": "http.response.start", "status": status, "headers": found})
        await send({"type": "http.response.body", "body": json.dumps({"detail": words}).encode()})


def _route(scope: Scope) -> str:
    """The path as Gradio's routes see it, without the prefix below which a proxy serves the page (GRADIO_ROOT_PATH)."""
    path, root = "/" + scope["path"].lstrip("/"), scope.get("root_path", "")
    return "/" + path.removeprefix(root).lstrip("/") if path.startswith(f"{root}/") else path


def _host(scope: Scope, header: bytes = b"host") -> str:
    """The name or address in a header, without scheme and port; empty where there is none."""
    return _name_in(next((value for name, value in scope["headers"] if name == header), b"").decode("latin-1"))


def _forwarded_hosts(scope: Scope) -> list[str]:
    """The names under which proxies were asked, each of which adds its own behind a comma."""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-host"]
    return [_name_in(one.strip()) for one in ",".join(found).split(",")]


def _name_in(text: str) -> str:
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


def _is_forged(scope: Scope) -> bool:
    """Whether the page of another site asks for this with the cookies of the person who looks at it.

    Links and frames lead here from anywhere; programs other than browsers send none of these headers.
    """
    sent = dict(scope["headers"])
    site = sent.get(b"sec-fetch-site")
    if site is not None:
        leads_here = scope["method"] in ("GET", "HEAD") and sent.get(b"sec-fetch-mode") == b"navigate"
        return site in ELSEWHERE and not leads_here
    # Older browsers, and pages without TLS. Behind a proxy the own name may stand in the second one.
    own = {_host(scope), *_forwarded_hosts(scope)} - {""}
    return b"origin" in sent and _host(scope, b"origin") not in own


def _user_name(app: Any, request: Request) -> str | None:
    """Who has signed in with a password, by Gradio's cookies."""
    names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
    token = next((request.cookies[name] for name in names if request.cookies.get(name)), None)
    return app.tokens.get(token) if token else None


def _passwords(settings: Settings) -> Mapping[str, str]:
    """The hashes of the users file by name; none where it cannot be read, which lets nobody in."""
    try:
        users = read_users(settings.users) if settings.users else {}
    except ConfigError:
        return {}
    return {name: user.password for name, user in users.items()}


def _cookie(scope: Scope, name: bytes, value: bytes, *, space: bool) -> tuple[bytes, bytes]:
    """A header of the answer; the sign-in's cookies only for the own site, and over TLS only where it came so."""
    if name.lower() != b"set-cookie" or not value.startswith(b"access-token-"):
        return name, value
    if not space:  # which is shown in a frame of another site
        value = value.replace(b"SameSite=none", b"SameSite=lax")
    proxy = dict(scope["headers"]).get(b"x-forwarded-proto", b"")
    safe = scope.get("scheme") == "https" or proxy.startswith(b"https")
    return name, value + b"; Secure" if safe and b"; Secure" not in value else value


def _length(scope: Scope) -> int:
    """The announced length; 0 where there is none or it is no number."""
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() and len(text) < 19 else 0
