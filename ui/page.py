"""The page as Gradio serves it, with one gate that every event passes, whatever route it takes.

Gradio runs any listener for anybody who can reach the server: listeners that are "private", components that are
hidden and tabs that are not shown can all be called by number. So the gate looks at the person's role before anything
of the call is read, cleans what was sent, and lets no text of an exception out.
"""

from __future__ import annotations

import copy
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.utils import get_upload_folder

from mdqa.errors import InputError, MdqaError
from storage.encoding import clean_text
from ui.context import Context
from ui.guard import Said
from ui.logs import log, working_on
from ui.people import Forbidden, require, signed_in

MAX_DEPTH = 40
"""Lists in lists that a page may send; ours need five."""

BY_ITSELF = {"load", "tick", "change"}
"""Events that come without a person's doing, as the first choice of a tab does: where they are not allowed, nothing
happens and nothing is said."""


SESSIONS = 300
"""Open pages whose state Gradio keeps, each about 1 MB; of one that was left for longest it is forgotten."""
OWNED = 100_000
"""Open pages of which is known whose they are: many more, so that nobody takes over one that is in use."""
LONGEST = 64
"""Characters of the name that a page gives itself. They are kept: Gradio's are shorter, a stranger's might be huge."""


class Sessions:
    """Whose an open page is: that of the person who was the first to speak in it."""

    def __init__(self, most: int = OWNED) -> None:
        self._owners: OrderedDict[str, str | None] = OrderedDict()
        self._most = most

    def are_of(self, session: str, person: str | None) -> bool:
        """Whether this person may speak in the session; None is somebody who has no name."""
        if len(session) > LONGEST:
            return False
        owner = self._owners.setdefault(session, person)
        self._owners.move_to_end(session)
        while len(self._owners) > self._most:
            self._owners.popitem(last=False)
        return owner == person


class Page(gr.Blocks):
    """``gr.Blocks`` whose handlers run for the roles they were guarded with, and for nobody else."""

    def __init__(self, context: Context, **options: Any) -> None:
        self.context = context
        self.sessions = Sessions()
        super().__init__(**options)

    @property
    def expects_oauth(self) -> bool:
        """Whether Gradio is to offer its routes for signing in with a Hugging Face account."""
        return self.context.settings.sign_in == "huggingface"

    def queue(self, *arguments: Any, **options: Any) -> Page:
        """As in Gradio, without its statistics: nobody may see them, and they cost more than most handlers."""
        super().queue(*arguments, **options)
        self._queue.ANALYTICS_MAX_EVENTS = 0
        return self

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

    async def preprocess_data(self, block_fn: Any, *arguments: Any, **options: Any) -> list[Any]:
        """As in Gradio, with one error for whatever its components make of values that they never send."""
        try:
            return list(await super().preprocess_data(block_fn, *arguments, **options))
        except gr.Error:
            raise
        except Exception as problem:
            raise gr.Error(f"{type(problem).__name__}: {problem}") from None

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any) -> list[Any]:
        """As in Gradio, which makes every component of an answer anew, without those that stay as they are."""
        outputs = list(block_fn.outputs)
        if len(outputs) < 2 or not isinstance(predictions, list | tuple) or len(predictions) != len(outputs):
            return list(await super().postprocess_data(block_fn, predictions, state))
        new = [place for place, box in enumerate(outputs) if box.stateful or not _stays(predictions[place])]
        answer: list[Any] = [gr.skip() for _ in outputs]
        if new:
            part = copy.copy(block_fn)
            part.outputs = [outputs[place] for place in new]
            values = [predictions[place] for place in new]
            made = await super().postprocess_data(part, values if len(new) > 1 else values[0], state)
            for place, value in zip(new, made, strict=True):
                answer[place] = value
        return answer

    def _admit(self, handler: Any, request: gr.Request | None) -> None:
        """InputError or Forbidden where the handler is not for this person; one that names no roles is for nobody."""
        if not hasattr(handler, "roles"):
            log.error("%s is not guarded, so nobody may call it", _name(handler))
            raise Forbidden("this cannot be called")
        if handler.roles is not None:
            require(self.context, request, *handler.roles)
        session = getattr(request, "session_hash", None)
        if session and not self.sessions.are_of(session, signed_in(self.context.settings, request)):
            raise Forbidden("this page was opened by somebody else; reload it")

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

    InputError where they are nested too deeply to be ours, or name a file that nobody uploaded: Gradio would fetch
    addresses.
    """
    if depth > MAX_DEPTH:
        raise InputError("the page sent lists in lists without end; reload it")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if _is_file(value) and not _is_uploaded(value["path"]):
            raise InputError("the page sent a file that was not loaded here; load it again")
        return {cleaned(key, depth + 1): cleaned(item, depth + 1) for key, item in value.items()}
    return value


def _is_file(value: Mapping[str, Any]) -> bool:
    """Whether Gradio takes this for a file."""
    kind = value.get("meta")
    return "path" in value and isinstance(kind, dict) and kind.get("_type") == "gradio.FileData"


def _is_uploaded(path: object) -> bool:
    """Whether a path is below the folder that Gradio keeps uploaded files in; an address is not."""
    return Path(clean_text(str(path))).resolve().is_relative_to(Path(get_upload_folder()).resolve())


def _clean_event(event: gr.EventData | None) -> gr.EventData | None:
    """The event with a dictionary of clean values, which is what handlers look into."""
    if event is None:
        return None
    values = cleaned(event._data) if isinstance(event._data, dict) else {}
    return gr.EventData(event.target, values)


def _stays(value: Any) -> bool:
    return isinstance(value, dict) and value == gr.skip()


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
