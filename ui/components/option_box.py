"""One option of a method or a calibration as a Gradio component."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ui.forms import FormField, spelled


def option_box(field: FormField) -> Any:
    """The Gradio component of an option; empty means "not set" where the option may be."""
    label, info = field.label, field.help or None
    if field.kind == "switch":
        return gr.Checkbox(bool(field.default), label=label, info=info)
    if field.kind == "choice":
        choices = [(spelled(choice), choice) for choice in field.choices]
        return gr.Dropdown(choices, value=field.default, label=label, info=info)
    if field.kind in ("whole", "number"):
        whole = field.kind == "whole"
        return gr.Number(
            field.default,
            label=label,
            info=info,
            precision=0 if whole else None,
            minimum=field.low,
            maximum=field.high,
            step=1 if whole else 0.05,
        )
    return gr.Textbox("" if field.default is None else str(field.default), label=label, info=info, max_length=1000)
