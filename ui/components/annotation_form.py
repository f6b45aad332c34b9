"""The annotator's form: one HTML component, filled and driven by its script, and one endpoint behind it.

The script talks to the endpoint by plain HTTP calls instead of Gradio's event stream: such a call either comes back
with "saved" or it does not, and can be made again with the same token until it does, also after the server was
restarted. Everything that is typed is kept in the browser's tab until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import gradio as gr

from mdqa.errors import InputError, MdqaError, StorageError
from ui.annotating import Feedback, Stale, alive, flag, queue_cards, save, sheet, skip, undo
from ui.context import Context
from ui.guard import explained, guarded
from ui.people import ROLES, require
from ui.views.annotation import queue_list, sheet_view, shell

ENDPOINT = "annotate"

Order = Mapping[str, Any]
"""What the script sends: ``do`` names the verb, the rest are its values. See :data:`VERBS`."""


@dataclass(frozen=True)
class Desk:
    """Who orders, and what it is about."""

    context: Context
    who: str
    order: Order

    def text(self, name: str) -> str:
        """A text of the order; InputError if it is something else."""
        value = self.order.get(name, "")
        if not isinstance(value, str):
            raise InputError("is no text; reload the page", place=name)
        return value

    def seconds(self, name: str) -> float:
        """A number of the order, 0 where there is none."""
        value = self.order.get(name, 0)
        plain = isinstance(value, int | float) and not isinstance(value, bool) and -1e9 < value < 1e9
        return float(value) if plain else 0.0

    def numbers(self, name: str) -> list[int]:
        """Whole numbers of the order; InputError if they are something else."""
        value = self.order.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
            raise InputError("is no list of numbers; reload the page", place=name)
        return value

    def next(self, done: str, said: str = "", feedback: Feedback | None = None) -> dict[str, Any]:
        """The answer after something was ``done`` for good: what comes next.

        A fault in finding that does not take back what was done.
        """
        try:
            return _shown(self.context, self.text("queue"), self.who, feedback) | {"done": done, "said": said}
        except Exception as fault:
            return {"done": done, "said": f"{said} The next item cannot be shown: {explained(fault)}"}


def build_annotation_form(context: Context) -> gr.HTML:
    """Lay out and wire it; empty until it is looked at. Its ``select`` says that something was kept."""
    script = (files("ui") / "components" / "annotation_form.js").read_text(encoding="utf-8")
    box = gr.HTML(shell(), apply_default_css=False, js_on_load=script, elem_id="mdqa-annotate")

    def annotate(order: dict[str, Any], request: gr.Request) -> dict[str, Any]:
        return answer(context, order, request)

    # Outside the queue, so that a save waits for nobody's run. Not "private": those cannot be called by name.
    gr.api(guarded(annotate, roles=ROLES), api_name=ENDPOINT, queue=False, api_visibility="undocumented")
    return box


def answer(context: Context, order: Order, request: gr.Request | None) -> dict[str, Any]:
    """Carry out an order. ``done`` in the answer: it is safe on disk. ``refused``: it never will be, and why.

    ``fault``: it was not kept for a reason of ours; the same order can be given again.
    """
    who = ""
    order = order if isinstance(order, dict) else {}
    try:
        who = require(context, request, *ROLES).name
        verb = VERBS.get(str(order.get("do", "")))
        if verb is None:
            raise InputError(f"there is nothing called {str(order.get('do', ''))[:40]!r} to do")
        return verb(Desk(context, who, order))
    except Stale as problem:  # say so, and go on with what is open
        return Desk(context, who, order).next("", explained(problem)) | {"refused": True, "stale": True}
    except Exception as problem:
        mine = isinstance(problem, MdqaError) and not isinstance(problem, StorageError)
        return {"refused" if mine else "fault": True, "said": explained(problem)}


def _shown(context: Context, queue: str, who: str, feedback: Feedback | None = None) -> dict[str, Any]:
    found = sheet(context, queue, who, feedback)
    return {"html": sheet_view(found), "token": found.item.token if found.item else ""}


def _queues(desk: Desk) -> dict[str, Any]:
    return {"done": "queues", "html": queue_list(queue_cards(desk.context, desk.who)), "token": ""}


def _open(desk: Desk) -> dict[str, Any]:
    return _shown(desk.context, desk.text("queue"), desk.who) | {"done": "open"}


def _save(desk: Desk) -> dict[str, Any]:
    feedback = save(
        desk.context,
        desk.who,
        desk.text("token"),
        desk.text("mark"),
        evidence=desk.numbers("evidence"),
        note=desk.text("note"),
        seconds=desk.seconds("seconds"),
        idle_seconds=desk.seconds("idle"),
    )
    return desk.next("save", "Saved.", feedback)


def _skip(desk: Desk) -> dict[str, Any]:
    active, idle = desk.seconds("seconds"), desk.seconds("idle")
    skip(desk.context, desk.who, desk.text("token"), desk.text("reason"), seconds=active, idle_seconds=idle)
    return desk.next("skip", "Skipped.")


def _flag(desk: Desk) -> dict[str, Any]:
    flag(desk.context, desk.who, desk.text("token"), desk.text("reason"), desk.text("key"))
    return {"done": "flag", "said": "Flagged. The item is still yours to decide."}


def _undo(desk: Desk) -> dict[str, Any]:
    if undo(desk.context, desk.who, desk.text("queue"), desk.text("key")):
        return desk.next("undo", "Taken back.")
    return {"done": "undo", "said": "There is nothing to take back."}


def _alive(desk: Desk) -> dict[str, Any]:
    alive(desk.context, desk.who, desk.text("token"))
    return {"done": "alive"}


VERBS: Mapping[str, Callable[[Desk], dict[str, Any]]] = {
    "queues": _queues,
    "open": _open,
    "save": _save,
    "skip": _skip,
    "flag": _flag,
    "undo": _undo,
    "alive": _alive,
}
