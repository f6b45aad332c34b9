"""Under an answer: "What if". Documents off, moved, copied or edited, options changed, and the same asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import gradio as gr

from ui.actions import View, run_before
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.views.markup import message
from ui.views.whatif import what_if_form, what_would_change
from ui.whatif import Wishes, carried_out, fields_of, gone_since, read_wishes, shown, start

PARTS = ("run", "documents", "options")


@dataclass(frozen=True)
class WhatIf:
    """The components. ``form`` asks for a summary with each change (``input``) and for a run (``submit``)."""

    context: Context
    box: gr.Column
    form: gr.HTML
    words: gr.HTML
    problem: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.box, self.problem, self.form, self.words]

    def show(self, view: View) -> list[Any]:
        """Values for :attr:`outputs`: this run's documents and options; nothing to see as long as it works."""
        run = view.run
        controls, others = fields_of(run)
        if run.status == "running" or not (controls or others):
            return [gr.Column(visible=False), "", "", ""]
        values = {field.name: shown(run, field) for field in (*controls, *others)}
        gone = gone_since(view.before.question if view.before is not None else None, run.question)
        words = what_would_change((), ended=run.status == "ok")
        return [gr.Column(visible=True), "", what_if_form(run, controls, others, values, gone), words]

    def start(self, run_id: str, before: str, event: object) -> str:
        """Put the changed run in line; the new run's id. MdqaError where it cannot be done."""
        run = self.context.store.runs.get(run_id)
        return start(self.context, run, self._wishes(run_id, event), run_before(self.context, run, before))

    def summary(self, run_id: str, before: str, event: object) -> str:
        """What would be run, or why it cannot be."""
        run = self.context.store.runs.get(run_id)
        try:
            earlier = run_before(self.context, run, before)
            changed = carried_out(run, self._wishes(run_id, event), self.context.settings, earlier)
        except Exception as problem:  # whatever it is, it is said beside what was typed
            return message(explained(problem), "bad")
        return what_would_change(changed.words, ended=run.status == "ok")

    def _wishes(self, run_id: str, event: object) -> Wishes:
        return read_wishes({name: getattr(event, name, None) for name in PARTS}, run_id)


def build_what_if(context: Context, run: gr.Radio, before: gr.State) -> WhatIf:
    """Lay out and wire it; invisible until a run is shown. What "Run again" starts is wired by the page.

    ``run`` holds the id of the run in front, ``before`` the ids of earlier runs by those of later ones.
    """
    script = (files("ui") / "components" / "what_if.js").read_text(encoding="utf-8")
    with gr.Column(visible=False, elem_id="mdqa-whatif") as box:
        form = gr.HTML(apply_default_css=False, js_on_load=script)
        words = gr.HTML(apply_default_css=False, elem_id="mdqa-whatif-summary")
        problem = gr.HTML(apply_default_css=False, elem_id="mdqa-whatif-problem")
    what_if = WhatIf(context, box, form, words, problem)

    def changed(run_id: str, earlier: Mapping[str, str], event: gr.EventData) -> list[str]:
        return [what_if.summary(run_id, earlier.get(run_id, ""), event), ""]

    form.input(guarded(changed), [run, before], [words, problem], trigger_mode="always_last", **QUIET)
    return what_if
