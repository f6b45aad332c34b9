"""Under an answer: whether the person who looks finds it right; what they say goes into the log of labels."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.records import RunResult
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.judging import Judgement, can_be_judged, judge, judgement
from ui.people import visitor
from ui.views.markup import message, plural, text

CHOICES = [("Yes", "yes"), ("No", "no")]
RIGHT = {"yes": True, "no": False}


@dataclass(frozen=True)
class Verdict:
    """The components. ``form`` is the token of the form as it stands: a new one whenever it is drawn.

    ``run`` holds the id of the run in the browser, so that a verdict also arrives after a restart of the server.
    """

    context: Context
    box: gr.Row
    run: gr.Textbox
    choice: gr.Radio
    back: gr.Button
    note: gr.HTML
    form: gr.State

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.box, self.run, *self.drawn]

    @property
    def drawn(self) -> list[Any]:
        """What changes with a verdict."""
        return [self.choice, self.back, self.note, self.form]

    def show(self, run: RunResult, request: gr.Request | None) -> list[Any]:
        """Values for :attr:`outputs`; nothing to see for a run without an answer."""
        open_ = can_be_judged(run.status)
        said = judgement(self.context, run.id, _who(self.context, request)) if open_ else Judgement()
        return [gr.Row(visible=open_), run.id, *_draw(said)]


def build_verdict(context: Context) -> Verdict:
    """Lay out and wire it; invisible until a run is shown."""
    with gr.Row(visible=False, elem_id="mdqa-verdict") as box:
        run = gr.Textbox(visible=False)
        choice = gr.Radio(CHOICES, label="Is this answer right?", min_width=0, elem_id="mdqa-verdict-choice")
        back = gr.Button("Take back", size="sm", scale=0, min_width=0, visible=False, elem_id="mdqa-verdict-back")
        note = gr.HTML(apply_default_css=False, elem_id="mdqa-verdict-note")
    form = gr.State("")
    verdict = Verdict(context, box, run, choice, back, note, form)

    def say(run_id: str, value: str | None, token: str, request: gr.Request) -> list[Any]:
        """Keep it and show what is kept; after a fault what was kept before, with the reason."""
        who, problem = "", ""
        try:
            who = _who(context, request)
            judge(context, run_id, RIGHT.get(value or ""), who, token or uuid.uuid4().hex)
        except Exception as fault:  # whatever it is, no choice may look kept that is not
            problem = message(explained(fault), "bad")
        try:
            said = judgement(context, run_id, who) if who else Judgement()
        except Exception as fault:
            said, problem = Judgement(), problem or message(explained(fault), "bad")
        return _draw(said, problem)

    def take_back(run_id: str, token: str, request: gr.Request) -> list[Any]:
        return say(run_id, None, token, request)

    choice.input(guarded(say), [run, choice, form], verdict.drawn, **QUIET)
    back.click(guarded(take_back), [run, form], verdict.drawn, **QUIET)
    return verdict


def _who(context: Context, request: gr.Request | None) -> str:
    return visitor(context, request).name


def _draw(said: Judgement, problem: str = "") -> list[Any]:
    value = None if said.own is None else "yes" if said.own else "no"
    note = problem or text("span", _words(said), "mdqa-quiet", role="status")
    return [gr.Radio(value=value), gr.Button(visible=said.own is not None), note, uuid.uuid4().hex]


def _words(said: Judgement) -> str:
    others = plural(said.others, "other person", "other people")
    if said.own is None:
        return f"{others} judged it" if said.others else ""
    if said.others_right is None or not said.others:
        return "Kept"
    return f"Kept · {others}: {said.others_right} yes, {said.others - said.others_right} no"
