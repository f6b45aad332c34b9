"""A result's Studies tab: leave one out and position sweep of the run in front, started, followed and looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import RunResult
from mdqa.studies.leave_one_out import EFFECTS, LeaveOneOut
from storage.runs import UnknownRun
from ui.actions import methods, title_of
from ui.components.sweep_form import SweepForm, build_sweep_form
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.people import visitor
from ui.studying import (
    StudyView,
    estimate_leave_one_out,
    find,
    go_on,
    load_study,
    start_leave_one_out,
    start_sweep,
    stop,
    studies_of,
    study_state,
)
from ui.views.leave_one_out import (
    EFFECT_WORDS,
    change_table,
    correlation_line,
    correlation_table,
    findings,
    predictor_choices,
    scatter,
)
from ui.views.markup import empty, message, text
from ui.views.position_sweep import ONE_QUESTION, measure_choices, sweep_figure, sweep_findings, sweep_table
from ui.views.studies import StudyState, estimate_line, member_note, progress_view, spent_line

TAB = "studies"

LEAVING = (
    "Every document is switched off once and the rest runs again with the same options and seed: which documents does "
    "the answer rest on, which one misleads, and do they get the attention?"
)

NOTHING = empty("No study of this run yet", "Start one above; it goes on when you close the page.")

STEPS = 20
"""How often at most the result of a working study is drawn anew; between these only its progress is."""


@dataclass(frozen=True)
class Studies:
    """The components; :meth:`show` fills them for a run.

    ``chosen`` holds the id of the study in front in the browser, so that it also works after a restart.
    """

    context: Context
    tabs: gr.Tabs
    member: gr.HTML
    forms: gr.Column
    leave: gr.Button
    estimate: gr.HTML
    sweep: SweepForm
    problem: gr.HTML
    which: gr.Dropdown
    chosen: gr.Textbox
    progress: gr.HTML
    controls: gr.Row
    halt: gr.Button
    again: gr.Button
    timer: gr.Timer
    drawn: gr.State
    findings: gr.HTML
    axes: gr.Row
    measure: gr.Dropdown
    effect: gr.Dropdown
    plot: gr.Plot
    note: gr.HTML
    table: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        forms = [self.member, self.forms, self.leave, self.estimate, *self.sweep.outputs, self.problem]
        return [self.tabs, *forms, self.which, self.chosen, *self.study]

    @property
    def following(self) -> list[Any]:
        """What a look at a working study fills."""
        return [self.progress, self.controls, self.halt, self.again, self.timer, self.drawn]

    @property
    def study(self) -> list[Any]:
        """What another study fills, in the order of :meth:`draw`."""
        return [*self.following, self.findings, self.axes, self.measure, self.effect, self.plot, self.note, self.table]

    def show(self, run: RunResult, request: gr.Request | None = None) -> list[Any]:
        """Values for :attr:`outputs`. The study that the address names comes to the front, else the newest."""
        choices = studies_of(self.context, run)
        ids = [study_id for _, study_id in choices]
        asked = str(dict(request.query_params).get("study", "")) if request is not None else ""
        chosen = asked if asked in ids else (ids[0] if ids else "")
        estimate = estimate_leave_one_out(self.context, run)
        member = self.context.store.studies.with_member(run.id)
        return [
            gr.Tabs(selected=TAB) if asked in ids else gr.skip(),
            member_note(member.base, member.id) if member is not None else "",
            gr.Column(visible=run.status == "ok"),
            gr.Button(interactive=not estimate.obstacle),
            estimate_line(estimate),
            *self.sweep.show(run),
            "",
            _choices(choices, chosen),
            chosen,
            *self.draw(chosen),
        ]

    def draw(self, study_id: str) -> list[Any]:
        """Values for :attr:`study`: progress and result; nothing for an empty id."""
        if not study_id:
            hidden = gr.Dropdown(choices=[], value=None, visible=False)
            still = ["", gr.Row(visible=False), gr.Button(), gr.Button(), gr.Timer(active=False), -1]
            return [*still, NOTHING, gr.Row(visible=False), hidden, hidden, gr.Plot(visible=False), "", ""]
        view = load_study(self.context, study_id)
        return [*_following(view.state), *_result(view)]

    def picture(self, study_id: str, measure: str, effect: str) -> list[Any]:
        """Plot and note for another measure."""
        return _picture(load_study(self.context, study_id), measure, effect)


def _choices(choices: Sequence[tuple[str, str]], chosen: str) -> Any:
    return gr.Dropdown(choices=list(choices), value=chosen or None, visible=len(choices) > 1)


def _following(state: StudyState) -> list[Any]:
    left = state.total - state.done + state.failed
    words = "Try the failed ones again" if state.done == state.total else f"Go on ({left} left)"
    return [
        progress_view(state),
        gr.Row(visible=not state.finished or left > 0),
        gr.Button(visible=not state.finished, interactive=not state.stopping),
        gr.Button(words, visible=state.finished and left > 0),
        gr.Timer(active=not state.finished),
        state.done,
    ]


def _result(view: StudyView) -> list[Any]:
    question, result = view.base.question, view.result
    titles = {info.name: info.title for info in methods()}
    if isinstance(result, LeaveOneOut):
        words, picks = findings(result, view.base), predictor_choices(result)
        effects = [(EFFECT_WORDS[name], name) for name in EFFECTS if name == "answer" or question.answers]
        rows = change_table(result, view.base) + correlation_table(result)
    else:
        words, picks = sweep_findings(result, question, titles, view.document), measure_choices(result)
        effects, rows = [], sweep_table(result, view.base.id, titles)
    first = picks[0][1] if picks else ""
    effect = effects[0][1] if effects else ""
    return [
        words + spent_line(view.cost, view.runs),
        gr.Row(visible=bool(picks)),
        gr.Dropdown(choices=picks, value=first or None, visible=bool(picks)),
        gr.Dropdown(choices=effects, value=effect or None, visible=len(effects) > 1),
        *_picture(view, first, effect),
        rows,
    ]


def _picture(view: StudyView, measure: str, effect: str) -> list[Any]:
    if isinstance(view.result, LeaveOneOut):
        effect = effect if effect in EFFECTS else EFFECTS[0]
        figure = scatter(view.result, view.base.question.documents, measure, effect)
        note = correlation_line(view.result, measure, effect)
    else:
        titles = {method: title_of(method) for method in view.result.methods}
        figure, note = sweep_figure(view.result, measure, titles), text("p", ONE_QUESTION, "mdqa-note")
    return [gr.Plot(figure, visible=figure is not None), note]


def build_studies(context: Context, run: gr.Radio, tabs: gr.Tabs) -> Studies:
    """Lay out and wire the tab; ``run`` holds the id of the run in front, ``tabs`` are those the tab is one of."""
    member = gr.HTML(apply_default_css=False)
    with gr.Column(visible=False, elem_classes="mdqa-studies") as forms:
        with gr.Row(elem_classes="mdqa-study-forms"):
            with gr.Column(min_width=280, elem_classes="mdqa-study-form"):
                gr.HTML(text("h3", "Leave one out") + text("p", LEAVING, "mdqa-note"), apply_default_css=False)
                estimate = gr.HTML(apply_default_css=False, elem_id="mdqa-leave-estimate")
                leave = gr.Button("Leave out each document", elem_id="mdqa-leave")
            with gr.Column(min_width=280, elem_classes="mdqa-study-form"):
                sweep = build_sweep_form(context, run)
        problem = gr.HTML(apply_default_css=False, elem_id="mdqa-study-problem")
    which = gr.Dropdown([], label="Studies of this run", visible=False, elem_id="mdqa-study-which")
    chosen = gr.Textbox(visible=False)
    progress = gr.HTML(apply_default_css=False, elem_id="mdqa-study-progress")
    with gr.Row(visible=False, elem_classes="mdqa-pages") as controls:
        halt = gr.Button("Stop", variant="stop", size="sm", elem_id="mdqa-study-stop")
        again = gr.Button("Go on", size="sm", elem_id="mdqa-study-again")
    found = gr.HTML(NOTHING, apply_default_css=False, elem_id="mdqa-study-findings")
    with gr.Row(visible=False, elem_classes="mdqa-pair") as axes:
        measure = gr.Dropdown([], label="Drawn", elem_id="mdqa-study-measure")
        effect = gr.Dropdown([], label="Effect of leaving it out", visible=False, elem_id="mdqa-study-effect")
    plot = gr.Plot(show_label=False, container=False, visible=False, elem_id="mdqa-study-plot")
    note = gr.HTML(apply_default_css=False)
    table = gr.HTML(apply_default_css=False, elem_id="mdqa-study-table")
    panel = Studies(
        context, tabs, member, forms, leave, estimate, sweep, problem, which, chosen, progress, controls, halt, again,
        gr.Timer(1.0, active=False), gr.State(-1), found, axes, measure, effect, plot, note, table,
    )  # fmt: skip
    _wire(panel, run)
    return panel


def _wire(panel: Studies, run: gr.Radio) -> None:
    context = panel.context

    def begun(run_id: str, start: Any, request: gr.Request | None) -> list[Any]:
        """What stands after a start: nothing but the reason where it was refused."""
        try:
            study_id = start(visitor(context, request).name)
        except Exception as problem:  # whatever it is, nothing may look started that is not
            return [message(explained(problem), "bad"), gr.skip(), gr.skip(), *(gr.skip() for _ in panel.study)]
        base = context.store.runs.get(run_id)
        return ["", _choices(studies_of(context, base), study_id), study_id, *panel.draw(study_id)]

    def press_leave(run_id: str, request: gr.Request) -> list[Any]:
        return begun(run_id, lambda who: start_leave_one_out(context, run_id, who), request)

    def press_sweep(
        run_id: str, document: str | None, where: str, typed: str, names: list[str], request: gr.Request
    ) -> list[Any]:
        wish = panel.sweep.wish(document, where, typed, names)
        return begun(run_id, lambda who: start_sweep(context, run_id, wish, who), request)

    def press_again(run_id: str, study_id: str, request: gr.Request) -> list[Any]:
        return begun(run_id, lambda who: go_on(context, study_id, who), request)

    def press_stop(study_id: str) -> Any:
        stop(context, study_id)
        return gr.Button(interactive=False)

    def look(study_id: str, drawn: int) -> list[Any]:
        """Progress; the result is drawn anew now and then, and at the end."""
        try:
            state = study_state(context, find(context, study_id))
        except (InputError, UnknownRun):  # it was deleted meanwhile; a message every second would be too many
            return panel.draw("")
        if state.finished or state.done - drawn >= max(1, state.total // STEPS):
            return panel.draw(study_id)
        now = _following(state)
        return [*now[:-1], gr.skip(), *(gr.skip() for _ in panel.study[len(now) :])]

    def choose(study_id: str) -> list[Any]:
        return [study_id, *panel.draw(study_id)]

    started = [panel.problem, panel.which, panel.chosen, *panel.study]
    panel.leave.click(guarded(press_leave), run, started, **QUIET)
    panel.sweep.button.click(guarded(press_sweep), [run, *panel.sweep.inputs], started, **QUIET)
    panel.again.click(guarded(press_again), [run, panel.chosen], started, **QUIET)
    panel.halt.click(guarded(press_stop), panel.chosen, panel.halt, **QUIET)
    panel.which.input(guarded(choose), panel.which, [panel.chosen, *panel.study], **QUIET)
    panel.timer.tick(guarded(look), [panel.chosen, panel.drawn], panel.study, **QUIET)
    gr.on(
        [panel.measure.input, panel.effect.input],
        guarded(panel.picture),
        [panel.chosen, panel.measure, panel.effect],
        [panel.plot, panel.note],
        **QUIET,
    )
