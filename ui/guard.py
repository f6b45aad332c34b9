"""Around every handler: errors with a text for people are shown, all others become a reference for the log."""

from __future__ import annotations

import functools
import inspect
import logging
import uuid
from collections.abc import Callable
from typing import Any

import gradio as gr

from mdqa.errors import MdqaError, StorageError
from storage.runs import UnknownRun
from ui.views.markup import escape

log = logging.getLogger("mdqa.ui")


def explained(problem: BaseException) -> str:
    """A sentence for people (plain text); the traceback of a fault of ours goes to the log under its reference."""
    if isinstance(problem, UnknownRun):
        return "There is no run under this address; it may have been deleted."
    if isinstance(problem, MdqaError) and not isinstance(problem, StorageError):  # those name paths of the server
        return str(problem)
    reference = uuid.uuid4().hex[:8]
    log.error("reference %s", reference, exc_info=problem)
    return f"Something went wrong inside the program (reference {reference}); the details are in the program's log."


def guarded(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler with its errors turned into a message on the page. Gradio shows messages as HTML: escape them."""
    if inspect.isasyncgenfunction(handler):

        @functools.wraps(handler)
        async def flow(*values: Any, **more: Any) -> Any:
            try:
                async for update in handler(*values, **more):
                    yield update
            except gr.Error:
                raise
            except Exception as problem:
                raise gr.Error(escape(explained(problem)), print_exception=False) from None

        return flow

    if inspect.isgeneratorfunction(handler):

        @functools.wraps(handler)
        def stream(*values: Any, **more: Any) -> Any:
            try:
                yield from handler(*values, **more)
            except gr.Error:
                raise
            except Exception as problem:
                raise gr.Error(escape(explained(problem)), print_exception=False) from None

        return stream

    @functools.wraps(handler)
    def call(*values: Any, **more: Any) -> Any:
        try:
            return handler(*values, **more)
        except gr.Error:
            raise
        except Exception as problem:
            raise gr.Error(escape(explained(problem)), print_exception=False) from None

    return call


QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "concurrency_limit": None}
"""Options of every listener: not in the API, no veil over the page, no waiting for other people's events."""
