"""One benchmark: choose stored runs and entries, and see tables and pictures whose numbers lead to their questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr

from mdqa.comparison.entries import MOST_ENTRIES, Compared, choose, first_choice
from mdqa.comparison.markdown import TITLES
from mdqa.comparison.numbers import TESTED
from mdqa.comparison.overlap import Overlap, overlap
from mdqa.errors import InputError
from ui.benchmarking import Shelf, listed
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.reporting import Reading
from ui.views.benchmark import (
    COST_NAMES,
    MOST,
    NEWEST,
    NO_RUNS,
    NOTHING,
    PRESS,
    Gathered,
    Wish,
    cost_table,
    entry_choices,
    main_table,
    position_table,
    summary,
)
from ui.views.benchmark_figures import cost_figure, position_figure
from ui.views.benchmark_files import saved
from ui.views.listing import COME_INTO_VIEW, listing
from ui.views.markup import text
from ui.views.reports import SAVE, reading
from ui.views.right_where import key_line, right_where

METRIC, COST = "sub_em", "prefill_tokens_computed"


def build_compare_benchmark(context: Context, opened: Sequence[gr.Tab]) -> None:
    """Lay out and wire it. ``opened``: the tabs that bring it to the front."""
    shelf = Shelf()
    with gr.Row(elem_classes="mdqa-filters"):
        benchmark = gr.Dropdown(
            [("All benchmarks", "")], value="", label="Benchmark", scale=3, min_width=170, elem_id="mdqa-compare-data"
        )
        model = gr.Dropdown(
            [("All models", "")], value="", label="Model", scale=3, min_width=170, elem_id="mdqa-compare-model"
        )
        newest = gr.Number(NEWEST, label="Newest runs", minimum=1, maximum=MOST, precision=0, scale=1, min_width=110)
        press = gr.Button("Compare", variant="primary", scale=0, min_width=120, elem_id="mdqa-compare-make")
    with gr.Column(visible=False, elem_id="mdqa-compare-choice") as choice:
        entries = gr.Dropdown(
            [],
            label=f"Entries (up to {MOST_ENTRIES}; the others are set against the first)",
            multiselect=True,
            elem_id="mdqa-compare-entries",
        )
        with gr.Row(elem_classes="mdqa-filters"):
            metric = gr.Radio(
                [(TITLES[name], name) for name in (METRIC, *(name for name in TESTED if name != METRIC))],
                value=METRIC,
                label="Right means",
                scale=1,
                min_width=150,
                elem_id="mdqa-compare-metric",
            )
            cost = gr.Dropdown(
                [(words, name) for name, words in COST_NAMES.items()],
                value=COST,
                label="Cost",
                scale=2,
                min_width=170,
                elem_id="mdqa-compare-cost",
            )
            common = gr.Checkbox(
                value=True, label="Only questions that all entries answered", scale=2, min_width=200, container=True
            )
    head = gr.HTML(NOTHING, apply_default_css=False, elem_id="mdqa-compare-head")
    main = gr.HTML(apply_default_css=False, js_on_load=PRESS, elem_id="mdqa-compare-table")
    matrix = gr.HTML(apply_default_css=False, js_on_load=PRESS, elem_id="mdqa-compare-matrix")
    scatter_title = gr.HTML(apply_default_css=False)
    scatter = gr.Plot(show_label=False, container=False, visible=False, elem_id="mdqa-compare-scatter")
    points = gr.HTML(apply_default_css=False, js_on_load=PRESS, elem_id="mdqa-compare-points")
    places_title = gr.HTML(apply_default_css=False)
    places = gr.Plot(show_label=False, container=False, visible=False, elem_id="mdqa-compare-places")
    positions = gr.HTML(apply_default_css=False, js_on_load=PRESS, elem_id="mdqa-compare-positions")
    files = gr.HTML(apply_default_css=False, js_on_load=SAVE, elem_id="mdqa-compare-files")
    behind = gr.HTML(apply_default_css=False, js_on_load=PRESS + COME_INTO_VIEW, elem_id="mdqa-compare-listed")
    wish = gr.State(None)
    shown = [head, main, matrix, scatter_title, scatter, points, places_title, places, positions, files, behind]

    def look(data: str, name: str) -> list[Any]:
        data_sets, models = context.store.runs.benchmarks(), context.store.runs.models()
        return [
            gr.Dropdown([("All benchmarks", ""), *((d, d) for d in data_sets if d)], value=_kept(data, data_sets)),
            gr.Dropdown([("All models", ""), *((m, m) for m in models)], value=_kept(name, models)),
        ]

    def compared(
        made: Wish | None, keys: Sequence[str], over_common: bool, name: str
    ) -> tuple[Gathered, Compared, Overlap]:
        if made is None:
            raise InputError("nothing has been compared yet; press Compare")
        gathered = shelf.get(context, made)
        chosen = choose(gathered.found, keys, common=over_common)
        return gathered, chosen, overlap(chosen, name)

    def draw(made: Wish | None, keys: Sequence[str], over_common: bool, name: str, price: str) -> list[Any]:
        if price not in COST_NAMES:
            raise InputError(f"there is no cost {price!r}")
        gathered, chosen, found = compared(made, keys, over_common, name)
        report = chosen.report()
        by_place, by_cost = position_figure(chosen, found), cost_figure(chosen, report, found, price)
        return [
            summary(gathered, chosen),
            main_table(chosen, report, found, price),
            _title("Who is right where") + key_line(chosen) + right_where(chosen, found),
            _title("Accuracy and cost"),
            gr.Plot(by_cost, visible=by_cost is not None),
            cost_table(chosen, report, found, price),
            _title("Accuracy by position of the evidence"),
            gr.Plot(by_place, visible=by_place is not None),
            position_table(chosen, found),
            saved(gathered, chosen, report, found),
            "",
        ]

    def produce(
        data: str, name: str, count: float | None, over_common: bool, by: str, price: str
    ) -> Iterator[list[Any]]:
        made = Wish(data or "", name or "", int(count or 0))
        for step in shelf.gather(context, made):
            if isinstance(step, Reading):
                yield [gr.skip(), gr.skip(), gr.skip(), reading(step.done, step.total), *(gr.skip() for _ in shown[1:])]
                continue
            if not step.found.entries:
                yield [made, gr.Column(visible=False), gr.Dropdown([], value=[]), NO_RUNS, *_cleared()]
                continue
            keys = first_choice(step.found)
            picker = gr.Dropdown(entry_choices(step.found), value=keys)
            yield [made, gr.Column(visible=True), picker, *draw(made, keys, over_common, by, price)]

    def list_questions(made: Wish | None, keys: Sequence[str], over_common: bool, by: str, event: gr.EventData) -> str:
        _, chosen, found = compared(made, keys, over_common, by)
        number = getattr(event, "page", 0)
        page = number if isinstance(number, int) and not isinstance(number, bool) else 0
        return listing(listed(context, chosen, found, getattr(event, "cell", ""), page))

    gr.on([tab.select for tab in opened], guarded(look), [benchmark, model], [benchmark, model], **QUIET)
    press.click(
        guarded(produce), [benchmark, model, newest, common, metric, cost], [wish, choice, entries, *shown], **QUIET
    )
    options = [wish, entries, common, metric]
    gr.on([entries.input, common.input, metric.input, cost.input], guarded(draw), [*options, cost], shown, **QUIET)
    gr.on(
        [part.select for part in (main, matrix, points, positions, behind)],
        guarded(list_questions),
        options,
        behind,
        **QUIET,
    )


def _kept(value: str, offered: Sequence[str]) -> str:
    return value if value in offered else ""


def _title(words: str) -> str:
    return text("h3", words, "mdqa-compare-title")


def _cleared() -> list[Any]:
    """Values for everything below the head, where there is nothing to show."""
    gone = gr.Plot(value=None, visible=False)
    return ["", "", "", gone, "", "", gone, "", "", ""]
