"""History: the stored runs, paged and filtered by the database; every row leads to the run's own address."""

from __future__ import annotations

from typing import Any

import gradio as gr

from mdqa.registry import METHODS
from ui.actions import PAGE, history, title_of
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.queueing import queued
from ui.views.history import history_list
from ui.views.summary import STATUS


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    titles = {name: title_of(name) for name in METHODS}
    methods = [("All methods", ""), *((title, name) for name, title in titles.items())]
    states = [("All states", ""), *((word, status) for status, (word, _) in STATUS.items())]
    with gr.Row(elem_classes="mdqa-filters"):
        words = gr.Textbox(label="Search in question and answer", scale=3, max_length=200, elem_id="mdqa-search")
        method = gr.Dropdown(methods, value="", label="Method", scale=1)
        status = gr.Dropdown(states, value="", label="State", scale=1)
    rows = gr.HTML(apply_default_css=False, elem_id="mdqa-history")
    number = gr.State(0)
    with gr.Row(elem_classes="mdqa-pages"):
        newer = gr.Button("← Newer", interactive=False, size="sm")
        older = gr.Button("Older →", interactive=False, size="sm")
        again = gr.Button("Refresh", size="sm")

    def look(text: str, method: str, status: str, page_number: int) -> list[Any]:
        found, total, first = history(context, text=text or "", method=method, status=status, page=page_number)
        return [
            history_list(found, total, first, titles, queued(context, [row.id for row in found])),
            first // PAGE,
            gr.Button(interactive=first > 0),
            gr.Button(interactive=first + len(found) < total),
        ]

    def turn(by: int) -> Any:
        return guarded(lambda text, method, status, now: look(text, method, status, now + by))

    def first_page(text: str, method: str, status: str) -> list[Any]:
        return look(text, method, status, 0)

    filters, shown = [words, method, status], [rows, number, newer, older]
    gr.on(
        [words.submit, words.blur, method.input, status.input, again.click, page.load],
        guarded(first_page),
        filters,
        shown,
        **QUIET,
    )
    newer.click(turn(-1), [*filters, number], shown, **QUIET)
    older.click(turn(1), [*filters, number], shown, **QUIET)
    tab.select(guarded(first_page), filters, shown, **QUIET)
