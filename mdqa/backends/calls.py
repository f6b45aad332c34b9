"""Many requests to one server at once: so many at a time, each tried again when the line breaks, all stoppable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from openai import AsyncOpenAI, Timeout

from mdqa.cancellation import CancelToken

T = TypeVar("T")
Call = Callable[[AsyncOpenAI], Awaitable[T]]
"""A request that is sent with the client it is given."""

LOOK_EVERY = 0.1
"""Seconds between two looks at the cancel token."""

CONNECT_SECONDS = 10.0


class Broken(Exception):
    """A reply ended in the middle. What fails before a reply begins is tried again by the client itself."""


class Calls:
    """Sends calls to ``url``.

    Args:
        url: where the API begins.
        key: the bearer token, or empty.
        limit: how many calls are on their way at once; the server queues and batches them as it likes.
        timeout: seconds of silence after which a reply is given up.
        attempts: how often a call is sent if the server is busy (429), fails (500 and above) or cannot be reached.
            The client waits longer before each, and as long as ``Retry-After`` says.
    """

    def __init__(self, url: str, key: str, *, limit: int = 64, timeout: float = 600.0, attempts: int = 4) -> None:
        self._url, self._key, self._limit, self._attempts = url.rstrip("/"), key, limit, attempts
        self._timeout = Timeout(timeout, connect=CONNECT_SECONDS)

    def run(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        """The results in order. The first failure, or a cancel, takes back what is on its way and is raised.

        Taking back closes the connection, by which the server knows that nobody waits any more.
        """
        return asyncio.run(self._run(calls, cancel))

    async def _run(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        gate = asyncio.Semaphore(self._limit)
        async with AsyncOpenAI(
            base_url=self._url,
            api_key=self._key or "none",  # the client insists on one; a server that wants none ignores it
            organization=None,
            project=None,
            timeout=self._timeout,
            max_retries=self._attempts - 1,
        ) as client:

            async def send(call: Call[T]) -> T:
                async with gate:
                    for _ in range(self._attempts - 1):
                        try:
                            return await call(client)
                        except Broken:
                            continue
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
