"""Why a run did what it did: the route, what other treatments would have done, the scores, the voices.

DuQUAD's agents, judge and DocScores stand in the place of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import RunResult
from ui.actions import View, load_view
from ui.comparing import ALL, LABELS, SHARED, offers
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.assessment import PRESS_CELL, score_table
from ui.views.duquad import duquad_panel, views_of
from ui.views.reply import CLOSE_REPLY, reply_view
from ui.views.routing import decisions
from ui.views.treatments import treatments_panel
from ui.views.voices import voices


@dataclass(frozen=True)
class DecisionPanel:
    """The components; :meth:`show` fills them for a run. ``buttons``: one per value of the option ``compare``."""

    route: gr.HTML
    treatments: gr.HTML
    row: gr.Row
    buttons: Mapping[str, gr.Button]
    problem: gr.HTML
    scores: gr.HTML
    reply: gr.HTML
    said: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [
            self.route,
            self.treatments,
            self.row,
            *self.buttons.values(),
            self.problem,
            self.scores,
            self.reply,
            self.said,
        ]

    def show(self, view: View) -> list[Any]:
        """Values for :attr:`outputs`."""
        run = view.run
        offered = offers(run)
        open_ = {offer.compare for offer in offered}
        return [
            decisions(run),
            treatments_panel(run, offered),
            gr.Row(visible=bool(offered)),
            *(gr.Button(visible=name in open_) for name in self.buttons),
            "",
            duquad_panel(run, view.calls_by_index) or score_table(run, view.calls_by_index),
            "",
            voices(run) if views_of(run) is None else "",
        ]


def build_decision_panel(context: Context, run: gr.Radio) -> DecisionPanel:
    """Lay out and wire it; ``run`` holds the id of the run in front. What the buttons start is wired by the page."""
    route = gr.HTML(apply_default_css=False, elem_id="mdqa-decisions")
    treatments = gr.HTML(apply_default_css=False, elem_id="mdqa-treatments")
    with gr.Row(visible=False, elem_classes="mdqa-offers") as row:
        buttons = {name: gr.Button(LABELS[name], size="sm", elem_id=f"mdqa-compare-{name}") for name in (SHARED, ALL)}
    problem = gr.HTML(apply_default_css=False)
    scores = gr.HTML(apply_default_css=False, js_on_load=PRESS_CELL, elem_id="mdqa-scores")
    reply = gr.HTML(apply_default_css=False, js_on_load=CLOSE_REPLY, elem_id="mdqa-reply")
    said = gr.HTML(apply_default_css=False, elem_id="mdqa-voices")

    def press(run_id: str, event: gr.EventData) -> str:
        return reply_to(context, run_id, event)

    scores.select(guarded(press), run, reply, **QUIET)
    return DecisionPanel(route, treatments, row, buttons, problem, scores, reply, said)


def reply_to(context: Context, run_id: str, event: object) -> str:
    """The reply behind a score that was pressed; InputError if the run has no such call."""
    view = load_view(context, run_id)
    calls, index = view.calls_by_index, getattr(event, "call", None)
    if isinstance(index, bool) or not isinstance(index, int) or index not in calls:
        raise InputError("the run has no such model call")
    return reply_view(view.run, calls[index], calls, _document(view.run, getattr(event, "document", "")))


def _document(run: RunResult, document_id: object) -> str:
    """A document of the run, or nothing."""
    return document_id if isinstance(document_id, str) and document_id in run.question.document_ids else ""
