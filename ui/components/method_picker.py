"""Step 2: one or several methods, each with the form of its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import ConfigError
from mdqa.methods.base import MethodConfig
from ui.actions import MethodInfo, methods, read_config
from ui.components.option_box import option_box
from ui.guard import QUIET, guarded
from ui.views.markup import element, escape, text

FIRST_CHOICE = "duquad"


@dataclass(frozen=True)
class MethodPicker:
    """The components of step 2. ``forms``: per method, per option, its component."""

    infos: tuple[MethodInfo, ...]
    chosen: gr.CheckboxGroup
    forms: Mapping[str, Mapping[str, Any]]

    @property
    def inputs(self) -> set[Any]:
        """Everything a handler needs to know the methods and their options."""
        return {self.chosen, *(component for form in self.forms.values() for component in form.values())}

    @property
    def choices(self) -> list[Any]:
        """The events of options that may change what a method needs of the model."""
        boxes = (component for form in self.forms.values() for component in form.values())
        return [box.input for box in boxes if isinstance(box, gr.Checkbox | gr.Dropdown)]

    def configs(self, values: Mapping[Any, Any]) -> dict[str, MethodConfig]:
        """Checked configurations of the chosen methods in the picker's order; ConfigError names what is wrong."""
        chosen = values[self.chosen] or []
        if not chosen:
            raise ConfigError("choose at least one method")
        return {
            info.name: read_config(info.name, {name: values[box] for name, box in self.forms[info.name].items()})
            for info in self.infos
            if info.name in chosen
        }


def build_method_picker() -> MethodPicker:
    """Lay out and wire step 2; forms show only for chosen methods."""
    infos = methods()
    gr.HTML(text("h2", "2 · Method"), apply_default_css=False)
    first = [FIRST_CHOICE] if any(info.name == FIRST_CHOICE for info in infos) else [infos[0].name]
    chosen = gr.CheckboxGroup(
        [(info.title, info.name) for info in infos],
        value=first,
        label="Methods",
        info="Choose one, or several to run one after the other",
        elem_id="mdqa-methods",
    )
    summary = gr.HTML(_summaries(infos, first), apply_default_css=False)
    forms: dict[str, dict[str, Any]] = {}
    panels: list[gr.Accordion] = []
    for info in infos:
        label = f"{info.title}: options"
        with gr.Accordion(label, open=False, visible=info.name in first, elem_classes="mdqa-form") as panel:
            forms[info.name] = {field.name: option_box(field) for field in info.fields}
            if not info.fields:
                gr.HTML(text("p", "This method has no options.", "mdqa-note"), apply_default_css=False)
        panels.append(panel)

    def choose(names: Sequence[str]) -> list[Any]:
        return [_summaries(infos, names), *(gr.Accordion(visible=info.name in names) for info in infos)]

    chosen.change(guarded(choose), chosen, [summary, *panels], **QUIET)
    return MethodPicker(infos, chosen, forms)


def _summaries(infos: Sequence[MethodInfo], names: Sequence[str]) -> str:
    chosen = [info for info in infos if info.name in names]
    rows = (element("li", text("strong", info.title) + " " + escape(info.summary)) for info in chosen)
    return element("ul", "".join(rows), "mdqa-summaries")
