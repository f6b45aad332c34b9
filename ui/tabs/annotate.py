"""Annotate: deciding item after item, blind; below it, for analysts and admins, the queues themselves."""

from __future__ import annotations

import gradio as gr

from ui.components.annotation_form import build_annotation_form
from ui.components.queue_manager import build_queue_manager
from ui.context import Context


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    form = build_annotation_form(context)
    build_queue_manager(context, page, tab, form)
