"""A run's page: answer, evidence flow, documents, decisions, heads, prompts; drawn from the store by the run's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.differences.comparing import differences
from ui.actions import View, load_view
from ui.components.decision_panel import DecisionPanel, build_decision_panel
from ui.components.documents_panel import DocumentsPanel, build_documents_panel
from ui.components.head_panel import HeadPanel, build_head_panel
from ui.components.queue_form import QueueForm, build_queue_form
from ui.components.studies import TAB, Studies, build_studies
from ui.components.verdict import Verdict, build_verdict
from ui.components.what_if import WhatIf, build_what_if
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.diagnosis import diagnosis_line
from ui.views.differences import differences_panel
from ui.views.flow import evidence_flow
from ui.views.lesson import lesson
from ui.views.prompts import PAGE, prompt_list
from ui.views.summary import result_head


@dataclass(frozen=True)
class ResultPanel:
    """The components of a result; ``show`` fills them for a run id. ``before``: earlier runs' ids by later ones'."""

    context: Context
    box: gr.Column
    run: gr.Radio
    before: gr.State
    head: gr.HTML
    verdict: Verdict
    queue: QueueForm
    changed: gr.HTML
    what_if: WhatIf
    flow: gr.HTML
    documents: DocumentsPanel
    decisions: DecisionPanel
    heads: HeadPanel
    studies: Studies
    pages: gr.Dropdown
    prompts: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [
            self.head,
            *self.verdict.outputs,
            *self.queue.outputs,
            self.changed,
            *self.what_if.outputs,
            self.flow,
            *self.documents.outputs,
            *self.decisions.outputs,
            *self.heads.outputs,
            *self.studies.outputs,
            self.pages,
            self.prompts,
        ]

    def show(
        self, run_id: str, before: Mapping[str, str] | None = None, request: gr.Request | None = None
    ) -> list[Any]:
        """Values for :attr:`outputs`, as the visitor of ``request`` may see them; MdqaError if there is no such run."""
        view = load_view(self.context, run_id, (before or {}).get(run_id, ""))
        run = view.run
        return [
            result_head(
                run,
                method_title=view.title,
                correct=view.correct,
                vanilla=view.vanilla,
                retrieved=view.gold_reached,
            )
            + diagnosis_line(run, view.calls)
            + lesson(run),
            *self.verdict.show(run, request),
            *self.queue.show(run),
            _changed(view),
            *self.what_if.show(view),
            evidence_flow(run),
            *self.documents.show(view),
            *self.decisions.show(view),
            *self.heads.show(view),
            *self.studies.show(run, request),
            *_prompt_pages(view),
        ]


def _changed(view: View) -> str:
    """What is different from the run before; nothing for a run that repeats none, or is not done."""
    if view.before is None or view.run.status == "running":
        return ""
    return differences_panel(differences(view.before, view.run), view.calls)


def _prompt_pages(view: View) -> list[Any]:
    starts = range(0, max(len(view.calls), 1), PAGE)
    choices = [(f"calls {start + 1} to {min(start + PAGE, len(view.calls))}", start) for start in starts]
    numbers = {document.id: i for i, document in enumerate(view.run.question.documents, 1)}
    return [
        gr.Dropdown(choices=choices, value=0, visible=len(choices) > 1),
        prompt_list(view.calls, 0, numbers, made=view.run.cost.llm_calls),
    ]


def build_result_panel(context: Context) -> ResultPanel:
    """Lay out and wire a result; it is invisible until a run is shown."""
    with gr.Column(visible=False, elem_id="mdqa-result") as box:
        run = gr.Radio([], label="Run", visible=False, elem_id="mdqa-run-choice")
        before = gr.State({})
        head = gr.HTML(apply_default_css=False)
        verdict = build_verdict(context)
        queue = build_queue_form(context)
        changed = gr.HTML(apply_default_css=False, elem_id="mdqa-changed")
        what_if = build_what_if(context, run, before)
        with gr.Tabs(elem_classes="mdqa-result-tabs", overflow_behavior="wrap") as tabs:
            with gr.Tab("Flow", id="flow"):
                flow = gr.HTML(apply_default_css=False, elem_id="mdqa-flow")
            with gr.Tab("Documents", id="documents"):
                documents = build_documents_panel(context, run)
            with gr.Tab("Decisions", id="decisions"):
                made = build_decision_panel(context, run)
            with gr.Tab("Heads", id="heads"):
                heads = build_head_panel(context, run)
            with gr.Tab("Studies", id=TAB):
                studies = build_studies(context, run, tabs)
            with gr.Tab("Prompts", id="prompts"):
                pages = gr.Dropdown([], label="Page", visible=False)
                prompts = gr.HTML(apply_default_css=False, elem_id="mdqa-prompts")
    panel = ResultPanel(
        context,
        box,
        run,
        before,
        head,
        verdict,
        queue,
        changed,
        what_if,
        flow,
        documents,
        made,
        heads,
        studies,
        pages,
        prompts,
    )
    _wire(panel)
    return panel


def _wire(panel: ResultPanel) -> None:
    context = panel.context

    def choose_run(run_id: str, before: Mapping[str, str], request: gr.Request) -> list[Any]:
        return panel.show(run_id, before, request)

    def choose_page(run_id: str, start: int) -> str:
        view = load_view(context, run_id)
        numbers = {document.id: i for i, document in enumerate(view.run.question.documents, 1)}
        return prompt_list(view.calls, max(int(start or 0), 0), numbers)

    run = panel.run
    run.input(guarded(choose_run), [run, panel.before], panel.outputs, **QUIET)
    panel.pages.input(guarded(choose_page), [run, panel.pages], panel.prompts, **QUIET)


def run_choices(titles: Sequence[tuple[str, str]]) -> Any:
    """The radio that switches between runs that were started together; hidden for a single one."""
    return gr.Radio(choices=list(titles), value=titles[0][1] if titles else None, visible=len(titles) > 1)
