"""One question: choose it and its runs, and see them side by side with the places that each document took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from mdqa.errors import InputError, MdqaError
from ui.comparing_runs import MOST_RUNS, first_runs, offered, read_address, run_label, runs_of, sides
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.views.compare import NOTHING_CHOSEN, question_list, side_by_side
from ui.views.markup import message, text
from ui.views.rank_changes import rank_figure, rank_table, ranked

PRESS = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-question]");
  if (button) trigger("select", { question: Number(button.dataset.question) });
});
"""

SET_ADDRESS = """
let shown = "";
watch("value", () => {
  const address = element.querySelector("[data-address]")?.dataset.address;
  if (!address || address === shown) return;
  shown = address;
  if (element.offsetParent) history.replaceState(null, "", address);
});
"""
"""Keeps the address of what is compared in the address bar while the tab is in front."""


class Comparing:
    """What the handlers do. ``LISTED`` and ``DRAWN``: how many components :meth:`look` and :meth:`draw` fill."""

    LISTED, DRAWN = 4, 4

    def __init__(self, context: Context) -> None:
        self._context = context

    def look(self, words: str, number: int, question: int | None) -> list[Any]:
        """A page of the list of questions: its rows, its number, and the buttons to the others."""
        found = offered(self._context, words or "", number)
        last = found.first + len(found.questions)
        return [
            question_list(found, question, bool((words or "").strip())),
            max(number, 0) if found.questions else 0,
            gr.Button(interactive=found.first > 0),
            gr.Button(interactive=last < found.total),
        ]

    def search(self, words: str, question: int | None) -> list[Any]:
        """The first page of what is found."""
        return self.look(words, 0, question)

    def turning(self, by: int) -> Callable[[str, int, int | None], list[Any]]:
        """The handler that turns ``by`` pages further."""
        return lambda words, now, question: self.look(words, now + by, question)

    def draw(self, ids: Sequence[str]) -> list[Any]:
        """Runs side by side: their columns, a title, the picture and the table of places."""
        if not ids:
            return [NOTHING_CHOSEN, "", gr.Plot(value=None, visible=False), ""]
        found = sides(self._context, ids)
        documents = ranked(found)
        figure = rank_figure(found, documents)
        address = text("span", "", "mdqa-hidden", data_address=f"?run={','.join(ids)}&tab=compare")
        return [
            side_by_side(found) + address,
            text("h3", "Where each document ends", "mdqa-compare-title"),
            gr.Plot(figure, visible=figure is not None),
            rank_table(found, documents),
        ]

    def press(self, words: str, number: int, event: gr.EventData) -> list[Any]:
        """The question that was pressed in the list."""
        question = getattr(event, "question", None)
        if isinstance(question, bool) or not isinstance(question, int):
            raise InputError("there is no such question; search for it again")
        return [*self._pick(question), *self.look(words, number, question)]

    def open_page(self, request: gr.Request) -> list[Any]:
        """The runs of the address, where it names this tab."""
        address = dict(request.query_params)
        nothing = [gr.skip() for _ in range(self.DRAWN + 2)]
        if address.get("tab") != "compare":
            return [*nothing, *(gr.skip() for _ in range(self.LISTED))]
        if not address.get("run"):
            return [*nothing, *self.look("", 0, None)]
        try:
            ids = read_address(address["run"])
            first = self._context.store.questions.of_run(ids[0]) if ids else None
            sides(self._context, ids)
        except MdqaError as problem:
            return [gr.skip(), message(explained(problem), "bad"), *nothing[2:], *self.look("", 0, None)]
        return [*self._pick(first or 0, ids), *self.look("", 0, first)]

    def _pick(self, question: int, ids: Sequence[str] = ()) -> list[Any]:
        """Runs of a question and those in front: ``ids``, else the newest of every method and model."""
        found = runs_of(self._context, question)
        value = list(ids) or first_runs(found)
        known = {row.id for row in found}
        missing = [self._context.store.runs.row(run_id) for run_id in value if run_id not in known]
        choices = [(run_label(row), row.id) for row in [*missing, *found]]
        return [gr.Dropdown(choices, value=value, visible=True), *self.draw(value), question]


def build_compare_question(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire it."""
    with gr.Row(elem_classes="mdqa-filters"):
        words = gr.Textbox(
            label="Search questions",
            placeholder="Words of a question, then Enter",
            max_length=200,
            elem_id="mdqa-compare-search",
        )
    questions = gr.HTML(apply_default_css=False, js_on_load=PRESS, elem_id="mdqa-compare-questions")
    with gr.Row(elem_classes="mdqa-pages"):
        before = gr.Button("← Back", size="sm", interactive=False)
        further = gr.Button("Next →", size="sm", interactive=False)
    runs = gr.Dropdown(
        [], label=f"Runs side by side (up to {MOST_RUNS})", multiselect=True, visible=False, elem_id="mdqa-compare-runs"
    )
    result = gr.HTML(NOTHING_CHOSEN, apply_default_css=False, js_on_load=SET_ADDRESS, elem_id="mdqa-compare-sides")
    ranks = gr.HTML(apply_default_css=False)
    picture = gr.Plot(show_label=False, container=False, visible=False, elem_id="mdqa-compare-ranks")
    rows = gr.HTML(apply_default_css=False, elem_id="mdqa-compare-documents")
    number, chosen = gr.State(0), gr.State(None)  # the page of the list, and the question in front
    listed, drawn = [questions, number, before, further], [result, ranks, picture, rows]
    everything = [runs, *drawn, chosen, *listed]

    verbs = Comparing(context)
    gr.on([words.submit, words.blur, tab.select], guarded(verbs.search), [words, chosen], listed, **QUIET)
    before.click(guarded(verbs.turning(-1)), [words, number, chosen], listed, **QUIET)
    further.click(guarded(verbs.turning(1)), [words, number, chosen], listed, **QUIET)
    questions.select(guarded(verbs.press), [words, number], everything, **QUIET)
    runs.input(guarded(verbs.draw), runs, drawn, **QUIET)
    page.load(guarded(verbs.open_page), None, everything, **QUIET)
