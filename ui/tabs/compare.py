"""Compare: one question with several runs side by side, or one benchmark with several methods."""

from __future__ import annotations

import gradio as gr

from ui.components.compare_benchmark import build_compare_benchmark
from ui.components.compare_question import build_compare_question
from ui.context import Context


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    with gr.Tabs(elem_classes="mdqa-result-tabs", elem_id="mdqa-compare-tabs"):
        with gr.Tab("One question", id="question"):
            build_compare_question(context, page, tab)
        with gr.Tab("One benchmark", id="benchmark") as benchmark:
            build_compare_benchmark(context, [tab, benchmark])
