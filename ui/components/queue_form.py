"""Under an answer: the button that sends the run to an annotation queue, and where it is already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import RunResult
from storage.queues import QueueItem
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.people import visitor
from ui.queueing import places, proposed, queue_names, send, stands_out, take_out
from ui.views.queued import TAKE_OUT, queued_in

SEND = "Send to the annotation queue"


@dataclass(frozen=True)
class QueueForm:
    """The components. ``run`` holds the id of the run in the browser, so that it also works after a restart."""

    context: Context
    box: gr.Row
    run: gr.Textbox
    button: gr.Button
    queue: gr.Dropdown
    note: gr.Textbox
    status: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.box, self.run, self.button, self.queue, self.note, self.status]

    def show(self, run: RunResult) -> list[Any]:
        """Values for :attr:`outputs`; nothing to see as long as the run works. A disagreement stands out."""
        found = places(self.context, run.id)
        return [
            gr.Row(visible=run.status != "running"),
            run.id,
            gr.Button(variant="primary" if stands_out(run, found) else "secondary"),
            gr.Dropdown(choices=queue_names(self.context, run), value=proposed(run)),
            "",
            queued_in(found),
        ]


def build_queue_form(context: Context) -> QueueForm:
    """Lay out and wire it; invisible until a run is shown."""
    with gr.Row(visible=False, elem_id="mdqa-queue") as box:
        run = gr.Textbox(visible=False)
        queue = gr.Dropdown([], label="Queue", allow_custom_value=True, min_width=0, elem_id="mdqa-queue-name")
        note = gr.Textbox(label="Note (optional)", max_lines=1, max_length=2000, min_width=0, elem_id="mdqa-queue-note")
        button = gr.Button(SEND, size="sm", scale=0, min_width=0, elem_id="mdqa-queue-send")
        status = gr.HTML(apply_default_css=False, js_on_load=TAKE_OUT, elem_id="mdqa-queue-status")

    def press(run_id: str, name: str | None, words: str | None, request: gr.Request) -> list[Any]:
        def work(who: str) -> str:
            if send(context, run_id, name or "", who, words or ""):
                return f"Sent to “{name}”."
            return f"It is in “{name}” already; nothing was changed."

        return _done(context, run_id, request, work, words or "")

    def out(run_id: str, words: str | None, event: gr.EventData, request: gr.Request) -> list[Any]:
        name = getattr(event, "queue", "")

        def work(who: str) -> str:
            if not isinstance(name, str):
                raise InputError("that is no name of a queue", place="Queue")
            return f"Taken out of “{name}”." if take_out(context, run_id, name, who) else f"It is not in “{name}”."

        return _done(context, run_id, request, work, words or "")

    drawn = [button, note, status]
    gr.on([button.click, note.submit], guarded(press), [run, queue, note], drawn, **QUIET)
    status.select(guarded(out), [run, note], drawn, **QUIET)
    return QueueForm(context, box, run, button, queue, note, status)


def _done(
    context: Context, run_id: str, request: gr.Request | None, work: Callable[[str], str], words: str
) -> list[Any]:
    """Button, note box and status after ``work``: what happened, or why it did not; then what is kept is shown.

    After a fault the note that was typed stays.
    """
    kind, found, again = "info", list[QueueItem](), gr.Button()
    try:
        said, words = work(visitor(context, request).name), ""
    except Exception as fault:  # whatever it is, nothing may look sent that is not
        said, kind = explained(fault), "bad"
    try:
        found, run = places(context, run_id), context.store.runs.get(run_id)
        again = gr.Button(variant="primary" if stands_out(run, found) else "secondary")
    except Exception as fault:
        said, kind = said if kind == "bad" else explained(fault), "bad"
    return [again, words, queued_in(found, said, kind)]
