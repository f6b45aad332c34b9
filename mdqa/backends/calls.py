"""Many requests to one server at once: so many at a time, each tried again when the line breaks, all stoppable.

And their replies as they come.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    Omit,
    Timeout,
)

from mdqa.backends.addresses import way_to
from mdqa.cancellation import CancelToken

T = TypeVar("T")
Call = Callable[[AsyncOpenAI], Awaitable[T]]
"""A request that is sent with the client it is given."""

LOOK_EVERY = 0.1
"""Seconds between two looks at the cancel token."""

CONNECT_SECONDS = 10.0

UNFINISHED = ("", "abort", "aborted", "cancelled", "error")
"""Why a reply may end that is none: the line broke, or the server stopped it."""

LONGEST_PAUSE = 120.0
"""Seconds; a server that asks for more patience is given up."""


class Broken(Exception):
    """A reply ended in the middle, or the server stopped it."""


class Unreadable(Exception):
    """What came is not what the protocol says."""


class Calls:
    """Sends calls to ``url``.

    Args:
        url: where the API begins. A redirect from there is not followed: it would carry the documents elsewhere.
        key: the bearer token, or empty. Nothing else that OpenAI's client finds in the environment is sent for it.
        limit: how many calls are on their way at once; the server queues and batches them as it likes.
        timeout: seconds of silence after which a reply is given up.
        attempts: how often a call is sent if the server is busy (429), fails (500 and above), cannot be reached or
            breaks off.
        wait: seconds before the second attempt, doubled before each further one; ``Retry-After`` goes first.
    """

    def __init__(
        self, url: str, key: str, *, limit: int = 64, timeout: float = 600.0, attempts: int = 4, wait: float = 0.5
    ) -> None:
        self._url, self._key, self._limit = url.rstrip("/"), key, limit
        self._attempts, self._wait = attempts, wait
        self._timeout = Timeout(timeout, connect=CONNECT_SECONDS)

    def run(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        """The results in order. The first failure, or a cancel, takes back what is on its way and is raised.

        Taking back closes the connection, by which the server knows that nobody waits any more.
        """
        return asyncio.run(self._run(calls, cancel))

    async def _run(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        gate = asyncio.Semaphore(self._limit)
        async with self._client() as client:

            async def send(call: Call[T]) -> T:
                async with gate:
                    for attempt in range(1, self._attempts):
                        try:
                            return await call(client)
                        except (Broken, APIConnectionError, APIStatusError) as problem:
                            pause = _pause(problem, self._wait * 2.0 ** (attempt - 1))
                            if pause is None:
                                raise
                        await asyncio.sleep(pause)
                    return await call(client)

            tasks = [asyncio.create_task(send(call)) for call in calls]
            try:
                waiting = set(tasks)
                while waiting:
                    cancel.check()
                    done, waiting = await asyncio.wait(waiting, timeout=LOOK_EVERY, return_when=asyncio.FIRST_EXCEPTION)
                    for task in done:
                        task.result()
                return [task.result() for task in tasks]
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _client(self) -> AsyncOpenAI:
        token = self._key or "none"  # the client insists on one; a server that wants none ignores it
        headers: dict[str, Any] = {
            "Authorization": f"Bearer {token}",
            "OpenAI-Organization": Omit(),
            "OpenAI-Project": Omit(),
        }
        return AsyncOpenAI(
            base_url=self._url,
            api_key=token,
            default_headers=headers,
            max_retries=0,  # it would also ask again after a timeout, and not when a reply breaks off
            timeout=self._timeout,
            http_client=DefaultAsyncHttpxClient(timeout=self._timeout, follow_redirects=False, **way_to(self._url)),
        )


class Reply:
    """A reply as it comes, piece by piece. Servers leave out what they do not know. ``usage``: what they counted."""

    def __init__(self) -> None:
        self.text, self.finish = "", ""
        self.usage: Any = None
        self._half = ""

    @property
    def unfinished(self) -> bool:
        """Whether this is not the whole reply."""
        return self.finish in UNFINISHED

    def take(self, piece: Any) -> None:
        """Add a piece of a stream, of either endpoint; Unreadable if it holds something else than text."""
        self.usage = getattr(piece, "usage", None) or self.usage
        for choice in getattr(piece, "choices", None) or ():
            new = getattr(choice, "text", None) or getattr(getattr(choice, "delta", None), "content", None) or ""
            if not isinstance(new, str):
                raise Unreadable
            self._add(new)
            self.finish = str(getattr(choice, "finish_reason", None) or self.finish)

    def _add(self, new: str) -> None:
        """A character beyond the first 65,536 may come in two halves; half of one alone is replaced."""
        new = self._half + new
        self._half = new[-1:] if "\ud800" <= new[-1:] <= "\udbff" else ""
        self.text += new.removesuffix(self._half).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Screen:
    """Shows a reply as it grows; one that is sent again after a break shows only what was not shown yet."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text, self._shown = on_text, ""

    def show(self, text: str) -> None:
        """Show what is new."""
        if len(text) > len(self._shown) and text.startswith(self._shown):
            self._on_text(text[len(self._shown) :])
            self._shown = text


def _pause(problem: Exception, wait: float) -> float | None:
    """Seconds until a call is worth another attempt; None if it is not. ``wait``: where the server does not say."""
    if isinstance(problem, APIStatusError):
        if problem.status_code not in (408, 409, 429) and problem.status_code < 500:
            return None
        asked = _asked(problem.response.headers)
        if asked is not None:
            return asked if asked <= LONGEST_PAUSE else None
    if isinstance(problem, APITimeoutError) and type(problem.__cause__).__name__ != "ConnectTimeout":
        return None  # it has the request, and would have no more time for a second one
    return wait * random.uniform(0.75, 1.0)  # so that not all come back at the same moment


def _asked(headers: Mapping[str, str]) -> float | None:
    """What a server asks for in ``Retry-After``, in seconds from now: a number or a date; None if it is neither."""
    value, part = headers.get("retry-after-ms", ""), 1000.0
    if not value:
        value, part = headers.get("retry-after", ""), 1.0
    try:
        seconds = float(value) / part
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else max(0.0, seconds)
