"""The form of a calibration: questions, method and model, options, name; read on the server as a wish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ui.components.option_box import option_box
from ui.components.question_input import FILE_TYPES
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.planning import CalibrationInfo, Wish, calibrations, load_files, plan, takes_verdicts
from ui.profiles import MAX_NAME
from ui.views.calibration import Plan, plan_view
from ui.views.markup import text
from ui.views.preview import problems

SPLIT_CHOICES = [
    ("The calibration half", "calibration"),
    ("The held-out half", "held-out"),
    ("All questions", "all"),
]
JUDGING = (
    "Majority of what people said under stored answers of this model: MADARA with treatment nf, the same question and "
    "documents"
)
QUESTIONS, HELD_OUT, SEED = 30, 20, 42


@dataclass(frozen=True)
class CalibrationForm:
    """The components of the form. ``boxes``: per method, per option, its component."""

    context: Context
    infos: tuple[CalibrationInfo, ...]
    files: gr.File
    loaded: gr.State
    notes: gr.HTML
    split: gr.Radio
    limit: gr.Number
    held_out: gr.Number
    method: gr.Radio
    model: gr.Dropdown
    name: gr.Textbox
    seed: gr.Number
    labels: gr.Checkbox
    replace: gr.Checkbox
    boxes: Mapping[str, Mapping[str, Any]]
    preview: gr.HTML
    said: gr.HTML

    @property
    def inputs(self) -> set[Any]:
        """Everything a handler needs to know what is wished for."""
        return {self.loaded, *self.watched, *(box for form in self.boxes.values() for box in form.values())}

    @property
    def watched(self) -> list[Any]:
        """The components, beside the files and options, whose change changes the plan."""
        return [
            self.split,
            self.limit,
            self.held_out,
            self.method,
            self.model,
            self.name,
            self.seed,
            self.labels,
            self.replace,
        ]

    def wish(self, values: Mapping[Any, Any]) -> Wish:
        """What the form says."""
        method = values[self.method]
        return Wish(
            method=method,
            model=values[self.model],
            files=values[self.loaded],
            split=values[self.split],
            limit=values[self.limit],
            held_out=values[self.held_out] or 0,
            name=values[self.name] or "",
            seed=values[self.seed],
            replace=bool(values[self.replace]),
            labels=bool(values[self.labels]) and takes_verdicts(method),
            options={name: values[box] for name, box in self.boxes.get(method, {}).items()},
        )

    def plan(self, values: Mapping[Any, Any]) -> str:
        """What it would do, as HTML."""
        return plan_view(plan(self.context, self.wish(values)))


def build_calibration_form(context: Context) -> CalibrationForm:
    """Lay out and wire the form; the plan below it follows every change."""
    infos = calibrations()
    first = infos[0]
    gr.HTML(text("h2", "1 · Questions"), apply_default_css=False)
    files = gr.File(
        label="Question files (.jsonl, .json, .csv, .gz)",
        file_count="multiple",
        file_types=FILE_TYPES,
        height=150,
        elem_id="mdqa-calibration-files",
    )
    loaded = gr.State(())
    notes = gr.HTML(apply_default_css=False)
    split = gr.Radio(
        SPLIT_CHOICES,
        value="calibration",
        label="Part of the files",
        info="Halves are told apart by the questions' ids; what is held out can be reported on",
    )
    with gr.Row(elem_classes="mdqa-pair"):
        limit = gr.Number(QUESTIONS, label="Questions", precision=0, minimum=1, step=1, info="Of all files in turn")
        held_out = gr.Number(
            HELD_OUT,
            label="Held-out questions",
            precision=0,
            minimum=0,
            step=1,
            info="To measure on; 0 for none",
            visible=first.measures,
        )
    gr.HTML(text("h2", "2 · Method and model"), apply_default_css=False)
    method = gr.Radio(
        [(info.title, info.name) for info in infos], value=first.name, label="Method", elem_id="mdqa-calibration-method"
    )
    model = gr.Dropdown(
        [(card.name, card.id) for card in context.models],
        value=context.model,
        label="Language model",
        elem_id="mdqa-calibration-model",
    )
    labels = gr.Checkbox(
        False,
        label="People's verdicts where there are no gold answers",
        info=JUDGING,
        visible=first.judged,
        elem_id="mdqa-calibration-labels",
    )
    boxes: dict[str, dict[str, Any]] = {}
    panels: list[gr.Accordion] = []
    for info in infos:
        with gr.Accordion(
            f"{info.title}: options of the calibration", open=False, visible=info is first, elem_classes="mdqa-form"
        ) as panel:
            boxes[info.name] = {field.name: option_box(field) for field in info.fields}
        panels.append(panel)
    gr.HTML(text("h2", "3 · Profile"), apply_default_css=False)
    with gr.Row(elem_classes="mdqa-pair"):
        name = gr.Textbox(
            label="Name",
            max_length=MAX_NAME,
            scale=2,
            placeholder="For example my-corpus",
            elem_id="mdqa-calibration-name",
        )
        seed = gr.Number(SEED, label="Seed", precision=0, minimum=0, maximum=2**31 - 1, step=1, scale=1)
    replace = gr.Checkbox(False, label="Replace a profile of this name")
    preview = gr.HTML(plan_view(Plan(first.title)), apply_default_css=False, elem_id="mdqa-plan")
    said = gr.HTML(apply_default_css=False, elem_id="mdqa-calibration-said")
    form = CalibrationForm(
        context,
        infos,
        files,
        loaded,
        notes,
        split,
        limit,
        held_out,
        method,
        model,
        name,
        seed,
        labels,
        replace,
        boxes,
        preview,
        said,
    )
    _wire(form, panels)
    return form


def _wire(form: CalibrationForm, panels: Sequence[gr.Accordion]) -> None:
    context = form.context

    def upload(paths: Sequence[str] | None) -> tuple[Any, ...]:
        loaded = load_files(paths or (), context)
        refused = [entry for file in loaded for entry in file.refused]
        notices = [entry for file in loaded for entry in file.notices]
        others = any(file.questions for file in loaded)
        return loaded, problems(refused, others=others) + problems(notices, used=True)

    def choose_method(name: str) -> list[Any]:
        measures = any(info.name == name and info.measures for info in form.infos)
        judged = any(info.name == name and info.judged for info in form.infos)
        panels = (gr.Accordion(visible=info.name == name) for info in form.infos)
        return [gr.Number(visible=measures), gr.Checkbox(visible=judged), *panels]

    boxes = [*form.watched, *(box for boxes in form.boxes.values() for box in boxes.values())]
    loading = form.files.change(guarded(upload), form.files, [form.loaded, form.notes], **QUIET)
    loading.then(guarded(form.plan), form.inputs, form.preview, **QUIET)
    form.method.change(guarded(choose_method), form.method, [form.held_out, form.labels, *panels], **QUIET)
    gr.on(
        [box.change for box in boxes],
        guarded(form.plan),
        form.inputs,
        form.preview,
        trigger_mode="always_last",
        **QUIET,
    )
    # What was said of the last attempt goes as soon as something is changed; the browser does that alone.
    gr.on([form.files.change, *(box.input for box in boxes)], None, None, form.said, js="() => ''", **QUIET)
