"""Reports: choose one and the stored runs it is made from; its picture, its table, and both forms to save."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from mdqa.registry import METHODS
from mdqa.reports.base import Report
from ui.actions import title_of
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.reporting import MOST, NEWEST, Reading, Wish, make, offered, offered_reports, stored_models
from ui.views.figures import report_figure, together
from ui.views.reports import NOTHING, SAVE, about, entry, reading, report_head, report_table

ALL_MODELS = ("All models", "")


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    reports = offered_reports()
    methods = [("All methods", ""), *((title_of(name), name) for name in METHODS)]
    with gr.Row(elem_classes="mdqa-filters"):
        name = gr.Dropdown(
            [(entry(report), report.name) for report in reports],
            value=reports[0].name,
            label="Report",
            scale=6,
            min_width=220,
            elem_id="mdqa-report-name",
        )
        method = gr.Dropdown(methods, value="", label="Method", scale=2, min_width=140)
        model = gr.Dropdown([ALL_MODELS], value="", label="Model", scale=2, min_width=140, elem_id="mdqa-report-model")
        newest = gr.Number(NEWEST, label="Newest runs", minimum=1, maximum=MOST, precision=0, scale=1, min_width=110)
        press = gr.Button("Make", variant="primary", scale=0, min_width=110, elem_id="mdqa-report-make")
    what = gr.HTML(about(reports[0]), apply_default_css=False, elem_id="mdqa-report-about")
    head = gr.HTML(NOTHING, apply_default_css=False, elem_id="mdqa-report-head")
    group = gr.Dropdown([], label="Runs in the picture", visible=False, elem_id="mdqa-report-group")
    picture = gr.Plot(show_label=False, container=False, visible=False, elem_id="mdqa-report-picture")
    rows = gr.HTML(apply_default_css=False, js_on_load=SAVE, elem_id="mdqa-report-table")
    made = gr.State(None)
    shown = [head, group, picture, rows, made]

    def look(now: str) -> Any:
        models = stored_models(context)
        return gr.Dropdown([ALL_MODELS, *((m, m) for m in models)], value=now if now in models else "")

    def draw(report: Report | None, chosen: str | None) -> Any:
        figure = report_figure(report, chosen or "") if report is not None else None
        return gr.Plot(figure, visible=figure is not None)

    def produce(name: str, method: str, model: str, newest: float | None) -> Iterator[list[Any]]:
        wish = Wish(name, method or "", model or "", int(newest or 0))
        for step in make(context, wish):
            if isinstance(step, Reading):
                yield [reading(step.done, step.total), *(gr.skip() for _ in shown[1:])]
                continue
            first = "" if together(step) else step.groups[0]
            yield [report_head(step), _groups(step, first), draw(step, first), report_table(step), step]

    tab.select(guarded(look), model, model, **QUIET)
    page.load(guarded(look), model, model, **QUIET)
    name.input(guarded(lambda chosen: about(offered(chosen))), name, what, **QUIET)
    group.input(guarded(draw), [made, group], picture, **QUIET)
    press.click(guarded(produce), [name, method, model, newest], shown, **QUIET)


def _groups(report: Report, first: str) -> Any:
    """The picker of what is drawn: there where one picture of all would be too full."""
    groups = [(group, group) for group in report.groups]
    return gr.Dropdown([("All", ""), *groups], value=first, visible=len(groups) > 1 and report.chart is not None)
