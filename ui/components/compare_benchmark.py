"""One benchmark: choose stored runs and entries, and see tables and pictures whose numbers lead to their questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Choice:
    """The components that say what is compared. ``wish``: what was gathered when Compare was pressed."""

    benchmark: gr.Dropdown
    model: gr.Dropdown
    newest: gr.Number
    press: gr.Button
    box: gr.Column
    entries: gr.Dropdown
    metric: gr.Radio
    cost: gr.Dropdown
    common: gr.Checkbox
    wish: gr.State

    @property
    def options(self) -> list[Any]:
        """What a handler needs to know which numbers are meant."""
        return [self.wish, self.entries, self.common, self.metric]


@dataclass(frozen=True)
class Drawn:
    """The components of a comparison: who is right where, cost, positions, files, questions behind a number."""

    head: gr.HTML
    main: gr.HTML
    matrix: gr.HTML
    scatter_title: gr.HTML
    scatter: gr.Plot
    points: gr.HTML
    places_title: gr.HTML
    places: gr.Plot
    positions: gr.HTML
    files: gr.HTML
    behind: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`Comparing.draw` fills, in its order."""
        above = [self.head, self.main, self.matrix, self.scatter_title, self.scatter, self.points]
        return [*above, self.places_title, self.places, self.positions, self.files, self.behind]

    @property
    def pressed(self) -> list[Any]:
        """Where a number can be pressed for its questions."""
        return [self.main, self.matrix, self.points, self.positions, self.behind]


class Comparing:
    """What the handlers do; what was read of the runs is kept on a shelf."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._shelf = Shelf()

    def look(self, data: str, name: str) -> list[Any]:
        """The benchmarks and models there are now."""
        runs = self._context.store.runs
        data_sets, models = runs.benchmarks(), runs.models()
        return [
            gr.Dropdown([("All benchmarks", ""), *((d, d) for d in data_sets if d)], value=_kept(data, data_sets)),
            gr.Dropdown([("All models", ""), *((m, m) for m in models)], value=_kept(name, models)),
        ]

    def draw(self, made: Wish | None, keys: Sequence[str], over_common: bool, name: str, price: str) -> list[Any]:
        """Tables and pictures: values for :attr:`Drawn.outputs`."""
        if price not in COST_NAMES:
            raise InputError(f"there is no cost {price!r}")
        gathered, chosen, found = self._compared(made, keys, over_common, name)
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
        self, data: str, name: str, count: float | None, over_common: bool, by: str, price: str
    ) -> Iterator[list[Any]]:
        """Read the runs, then wish, choice of entries and comparison; how far the reading is meanwhile."""
        made = Wish(data or "", name or "", int(count or 0))
        for step in self._shelf.gather(self._context, made):
            if isinstance(step, Reading):
                kept = [gr.skip() for _ in _cleared()]
                yield [gr.skip(), gr.skip(), gr.skip(), reading(step.done, step.total), *kept]
                continue
            if not step.found.entries:
                yield [made, gr.Column(visible=False), gr.Dropdown([], value=[]), NO_RUNS, *_cleared()]
                continue
            keys = first_choice(step.found)
            picker = gr.Dropdown(entry_choices(step.found), value=keys)
            yield [made, gr.Column(visible=True), picker, *self.draw(made, keys, over_common, by, price)]

    def questions(self, made: Wish | None, keys: Sequence[str], over_common: bool, by: str, event: gr.EventData) -> str:
        """The questions behind the number that was pressed."""
        _, chosen, found = self._compared(made, keys, over_common, by)
        number = getattr(event, "page", 0)
        page = number if isinstance(number, int) and not isinstance(number, bool) else 0
        return listing(listed(self._context, chosen, found, getattr(event, "cell", ""), page))

    def _compared(
        self, made: Wish | None, keys: Sequence[str], over_common: bool, name: str
    ) -> tuple[Gathered, Compared, Overlap]:
        if made is None:
            raise InputError("nothing has been compared yet; press Compare")
        gathered = self._shelf.get(self._context, made)
        chosen = choose(gathered.found, keys, common=over_common)
        return gathered, chosen, overlap(chosen, name)


def build_compare_benchmark(context: Context, opened: Sequence[gr.Tab]) -> None:
    """Lay out and wire it. ``opened``: the tabs that bring it to the front."""
    verbs, choice, drawn = Comparing(context), _build_choice(), _build_drawn()
    which = [choice.benchmark, choice.model]
    gr.on([tab.select for tab in opened], guarded(verbs.look), which, which, **QUIET)
    choice.press.click(
        guarded(verbs.produce),
        [*which, choice.newest, choice.common, choice.metric, choice.cost],
        [choice.wish, choice.box, choice.entries, *drawn.outputs],
        **QUIET,
    )
    gr.on(
        [choice.entries.input, choice.common.input, choice.metric.input, choice.cost.input],
        guarded(verbs.draw),
        [*choice.options, choice.cost],
        drawn.outputs,
        **QUIET,
    )
    gr.on([part.select for part in drawn.pressed], guarded(verbs.questions), choice.options, drawn.behind, **QUIET)


def _build_choice() -> Choice:
    with gr.Row(elem_classes="mdqa-filters"):
        benchmark = gr.Dropdown(
            [("All benchmarks", "")], value="", label="Benchmark", scale=3, min_width=170, elem_id="mdqa-compare-data"
        )
        model = gr.Dropdown(
            [("All models", "")], value="", label="Model", scale=3, min_width=170, elem_id="mdqa-compare-model"
        )
        newest = gr.Number(NEWEST, label="Newest runs", minimum=1, maximum=MOST, precision=0, scale=1, min_width=110)
        press = gr.Button("Compare", variant="primary", scale=0, min_width=120, elem_id="mdqa-compare-make")
    with gr.Column(visible=False, elem_id="mdqa-compare-choice") as box:
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
    return Choice(benchmark, model, newest, press, box, entries, metric, cost, common, gr.State(None))


def _build_drawn() -> Drawn:
    def part(name: str, content: str | None = None, **more: Any) -> gr.HTML:
        return gr.HTML(content, apply_default_css=False, elem_id=f"mdqa-compare-{name}", **more)

    def plot(name: str) -> gr.Plot:
        return gr.Plot(show_label=False, container=False, visible=False, elem_id=f"mdqa-compare-{name}")

    return Drawn(
        head=part("head", NOTHING),
        main=part("table", js_on_load=PRESS),
        matrix=part("matrix", js_on_load=PRESS),
        scatter_title=gr.HTML(apply_default_css=False),
        scatter=plot("scatter"),
        points=part("points", js_on_load=PRESS),
        places_title=gr.HTML(apply_default_css=False),
        places=plot("places"),
        positions=part("positions", js_on_load=PRESS),
        files=part("files", js_on_load=SAVE),
        behind=part("listed", js_on_load=PRESS + COME_INTO_VIEW),
    )


def _kept(value: str, offered: Sequence[str]) -> str:
    return value if value in offered else ""


def _title(words: str) -> str:
    return text("h3", words, "mdqa-compare-title")


def _cleared() -> list[Any]:
    """Values for everything below the head, where there is nothing to show."""
    gone = gr.Plot(value=None, visible=False)
    return ["", "", "", gone, "", "", gone, "", "", ""]
