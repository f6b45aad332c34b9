"""The page as Gradio serves it, with one gate that every event passes, whatever route it takes.

Gradio runs any listener for anybody who can reach the server: listeners that are "private", components that are
hidden and tabs that are not shown can all be called by number. So the gate looks at the person's role before anything
of the call is read, cleans what was sent, and lets no text of an exception out.
"""

from __future__ import annotations

import uuid
from typing import Any

import gradio as gr

from mdqa.errors import InputError, MdqaError
from storage.encoding import clean_text
from ui.context import Context
from ui.guard import Said
from ui.logs import log, working_on
from ui.people import Forbidden, require

MAX_DEPTH = 40
"""Lists in lists that a page may send; ours need five."""

BY_ITSELF = {"load", "tick", "change"}
"""Events that come without a person's doing, as the first choice of a tab does: where they are not allowed, nothing
happens and nothing is said."""


class Page(gr.Blocks):
    """``gr.Blocks`` whose handlers run for the roles they were guarded with, and for nobody else."""

    def __init__(self, context: Context, **options: Any) -> None:
        self.context = context
        super().__init__(**options)

    @property
    def expects_oauth(self) -> bool:
        """Whether Gradio is to offer its routes for signing in with a Hugging Face account."""
        return self.context.settings.sign_in == "huggingface"

    async def process_api(  # type: ignore[override]
        self,
        block_fn: Any,
        inputs: list[Any],
        state: Any = None,
        request: gr.Request | list[gr.Request] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """As in Gradio, behind the gate. Every step of a handler that answers in steps comes through here too."""
        listener = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        with working_on(request=more.get("event_id") or uuid.uuid4().hex):
            try:
                for one in request if isinstance(request, list) else [request]:
                    self._admit(listener.fn, one)
            except MdqaError as problem:
                if self._by_itself(listener):
                    return _nothing(len(listener.outputs))
                raise Said(problem) from None
            try:
                inputs, more["event_data"] = cleaned(inputs), _clean_event(more.get("event_data"))
                return await super().process_api(listener, inputs, state, request, **more)
            except Said:
                raise
            except gr.Error as problem:  # Gradio's own, about values that its components refuse
                log.warning("%s: %s", _name(listener.fn), ascii(str(problem))[:500])
                raise Said(InputError("the page sent a value that is not possible here; reload it")) from None
            except Exception as problem:
                raise Said(problem) from None

    def _admit(self, handler: Any, request: gr.Request | None) -> None:
        """InputError or Forbidden where the handler is not for this person; one that names no roles is for nobody."""
        if not hasattr(handler, "roles"):
            log.error("%s is not guarded, so nobody may call it", _name(handler))
            raise Forbidden("this cannot be called")
        if handler.roles is not None:
            require(self.context, request, *handler.roles)

    def _by_itself(self, listener: Any) -> bool:
        """Whether the event, or the one that it follows, is none that a person causes."""
        while listener.trigger_after is not None:
            listener = self.fns[listener.trigger_after]
        return any(
            event in BY_ITSELF or (event == "select" and isinstance(self.blocks.get(target), gr.Tab))
            for target, event in listener.targets
        )


def cleaned(value: Any, depth: int = 0) -> Any:
    """JSON values whose texts can be stored and sent: no NUL, U+FFFD for lone surrogates.

    InputError where they are nested too deeply to be ours.
    """
    if depth > MAX_DEPTH:
        raise InputError("the page sent lists in lists without end; reload it")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {cleaned(key, depth + 1): cleaned(item, depth + 1) for key, item in value.items()}
    return value


def _clean_event(event: gr.EventData | None) -> gr.EventData | None:
    """The event with a dictionary of clean values, which is what handlers look into."""
    if event is None:
        return None
    values = cleaned(event._data) if isinstance(event._data, dict) else {}
    return gr.EventData(event.target, values)


def _nothing(outputs: int) -> dict[str, Any]:
    """What Gradio answers for a handler that leaves all its outputs as they are."""
    return {
        "data": [gr.skip() for _ in range(outputs)],
        "is_generating": False,
        "iterator": None,
        "duration": 0.0,
        "average_duration": 0.0,
        "render_config": None,
        "changed_state_ids": [],
        "used_cache": None,
    }


def _name(handler: Any) -> str:
    return f"{getattr(handler, '__module__', '?')}.{getattr(handler, '__qualname__', handler)}"
