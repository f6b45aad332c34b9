"""Around every handler: who may call it, and what becomes of its errors.

Errors with a text for people are shown, all others become a reference for the log.
"""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from mdqa.errors import MdqaError, StorageError
from storage.runs import UnknownRun
from ui.logs import log
from ui.people import Role
from ui.views.markup import escape

SEES_RUNS: tuple[Role, ...] = ("analyst",)
"""Who may call a handler that says nothing else: everybody who may see runs. Admins may call all."""


class Said(gr.Error):
    """An error whose text is written for people and escaped. Gradio shows messages as HTML."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(escape(explained(problem)), print_exception=False)


def explained(problem: BaseException) -> str:
    """A sentence for people (plain text); the traceback of a fault of ours goes to the log under its reference."""
    if isinstance(problem, UnknownRun):
        return "There is no run under this address; it may have been deleted."
    if isinstance(problem, MdqaError) and not isinstance(problem, StorageError):  # those name paths of the server
        return str(problem)
    if isinstance(problem, gr.Error):
        return str(problem.message)
    reference = uuid.uuid4().hex[:8]
    log.error("reference %s", reference, exc_info=problem)
    return f"Something went wrong inside the program (reference {reference}); the details are in the program's log."


def guarded(handler: Callable[..., Any], roles: Sequence[Role] | None = SEES_RUNS) -> Callable[..., Any]:
    """The handler with its errors turned into a message on the page, and with the roles that may call it.

    ``roles`` beside admin; None: everybody, also before the sign-in. :class:`ui.page.Page` checks them at every call,
    however it arrives: what is hidden on the page, or "private" for Gradio, can be called by anybody all the same.
    """
    call = _explaining(handler)
    call.roles = None if roles is None else tuple(roles)  # type: ignore[attr-defined]
    return call


def _explaining(handler: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(handler):

        @functools.wraps(handler)
        async def flow(*values: Any, **more: Any) -> Any:
            try:
                async for update in handler(*values, **more):
                    yield update
            except Exception as problem:
                raise Said(problem) from None

        return flow

    if inspect.isgeneratorfunction(handler):

        @functools.wraps(handler)
        def stream(*values: Any, **more: Any) -> Any:
            try:
                yield from handler(*values, **more)
            except Exception as problem:
                raise Said(problem) from None

        return stream

    if inspect.iscoroutinefunction(handler):

        @functools.wraps(handler)
        async def answer(*values: Any, **more: Any) -> Any:
            try:
                return await handler(*values, **more)
            except Exception as problem:
                raise Said(problem) from None

        return answer

    @functools.wraps(handler)
    def call(*values: Any, **more: Any) -> Any:
        try:
            return handler(*values, **more)
        except Exception as problem:
            raise Said(problem) from None

    return call


QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "concurrency_limit": None}
"""Options of every listener: not in the API, no veil over the page, no waiting for other people's events."""
