"""Under an answer: the options that its method offers to be changed, and a button that asks the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from mdqa.errors import ConfigError
from mdqa.records import RunResult
from ui.actions import methods
from ui.components.option_box import option_box
from ui.forms import FormField
from ui.views.markup import details, facts, text

DECIMALS = 4
"""Decimals of a number as it is shown; one that nobody touches stays what it was in the run."""


@dataclass(frozen=True)
class Rerun:
    """The components. ``forms``: per method that offers options, per option, its box; ``fields``: what it is."""

    box: gr.Column
    forms: Mapping[str, Mapping[str, Any]]
    fields: Mapping[str, Mapping[str, FormField]]
    button: gr.Button
    explained: gr.HTML
    problem: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """The boxes of all methods' options."""
        return [box for form in self.forms.values() for box in form.values()]

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.box, self.problem, self.explained, *self.inputs]

    @property
    def triggers(self) -> list[Any]:
        """The events that ask for a new run: the button, and Enter in a box."""
        written = (box for box in self.inputs if isinstance(box, gr.Number | gr.Textbox))
        return [self.button.click, *(box.submit for box in written)]

    def show(self, run: RunResult) -> list[Any]:
        """Values for :attr:`outputs`: the options of this run; nothing to see where there are none, or not yet."""
        fields = self.fields.get(run.method, {}) if run.status != "running" else {}
        boxes = [
            gr.update(value=_shown(run, fields[name]), visible=True)
            if fields and method == run.method
            else gr.update(visible=False)
            for method, form in self.forms.items()
            for name in form
        ]
        return [gr.Column(visible=bool(fields)), "", _explained(fields), *boxes]

    def changes(self, run: RunResult, values: Mapping[Any, Any]) -> dict[str, Any]:
        """The options whose boxes differ from the run; ConfigError if none does."""
        fields = self.fields.get(run.method, {})
        given = {name: values[self.forms[run.method][name]] for name in fields}
        found = {name: value for name, value in given.items() if value != _shown(run, fields[name])}
        if not found:
            raise ConfigError("no option differs from the run that is shown; change at least one")
        return found


def build_rerun() -> Rerun:
    """Lay out the options of every method that offers some; invisible until a run is shown."""
    fields = {info.name: {field.name: field for field in info.controls} for info in methods() if info.controls}
    with gr.Column(visible=False, elem_id="mdqa-rerun") as box:
        gr.HTML(text("h3", "Run again with"), apply_default_css=False)
        with gr.Row(elem_classes="mdqa-controls"):
            forms = {method: {name: _box(field) for name, field in own.items()} for method, own in fields.items()}
            button = gr.Button("Run again", elem_id="mdqa-again", scale=0, min_width=110)
        problem = gr.HTML(apply_default_css=False)
        explained = gr.HTML(apply_default_css=False)
    return Rerun(box, forms, fields, button, explained, problem)


def _box(field: FormField) -> Any:
    """The option's box. Its limits are checked by the configuration, whose message names the option."""
    if field.kind not in ("whole", "number"):
        return option_box(replace(field, help=""))  # what it does is said below, once for all boxes
    return gr.Number(field.default, label=field.label, step=1 if field.kind == "whole" else 0.1, min_width=84)


def _explained(fields: Mapping[str, FormField]) -> str:
    if not fields:
        return ""
    return details("What these options do", facts({f.label: f.help for f in fields.values()}), "mdqa-more")


def _shown(run: RunResult, field: FormField) -> Any:
    value = run.config.get(field.name, field.default)
    return round(value, DECIMALS) if isinstance(value, float) else value
