"""One question: choose it and its runs, and see them side by side with the places that each document took."""

from __future__ import annotations

from collections.abc import Sequence
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

    def look(text_: str, page_number: int, question: int | None) -> list[Any]:
        found = offered(context, text_ or "", page_number)
        last = found.first + len(found.questions)
        return [
            question_list(found, question, bool((text_ or "").strip())),
            max(page_number, 0) if found.questions else 0,
            gr.Button(interactive=found.first > 0),
            gr.Button(interactive=last < found.total),
        ]

    def turn(by: int) -> Any:
        return guarded(lambda text_, now, question: look(text_, now + by, question))

    def draw(ids: Sequence[str]) -> list[Any]:
        if not ids:
            return [NOTHING_CHOSEN, "", gr.Plot(value=None, visible=False), ""]
        found = sides(context, ids)
        documents = ranked(found)
        figure = rank_figure(found, documents)
        address = text("span", "", "mdqa-hidden", data_address=f"?run={','.join(ids)}&tab=compare")
        return [
            side_by_side(found) + address,
            text("h3", "Where each document ends", "mdqa-compare-title"),
            gr.Plot(figure, visible=figure is not None),
            rank_table(found, documents),
        ]

    def pick(question: int, ids: Sequence[str] = ()) -> list[Any]:
        """Runs of a question and those in front: ``ids``, else the newest of every method and model."""
        found = runs_of(context, question)
        value = list(ids) or first_runs(found)
        known = {row.id for row in found}
        missing = [context.store.runs.row(run_id) for run_id in value if run_id not in known]
        choices = [(run_label(row), row.id) for row in [*missing, *found]]
        return [gr.Dropdown(choices, value=value, visible=True), *draw(value), question]

    def press(text_: str, page_number: int, event: gr.EventData) -> list[Any]:
        question = getattr(event, "question", None)
        if isinstance(question, bool) or not isinstance(question, int):
            raise InputError("there is no such question; search for it again")
        return [*pick(question), *look(text_, page_number, question)]

    def open_page(request: gr.Request) -> list[Any]:
        """The runs of the address, where it names this tab."""
        address = dict(request.query_params)
        nothing = [gr.skip() for _ in (runs, *drawn, chosen)]
        if address.get("tab") != "compare":
            return [*nothing, *(gr.skip() for _ in listed)]
        if not address.get("run"):
            return [*nothing, *look("", 0, None)]
        try:
            ids = read_address(address["run"])
            first = context.store.questions.of_run(ids[0]) if ids else None
            sides(context, ids)
        except MdqaError as problem:
            return [gr.skip(), message(explained(problem), "bad"), *nothing[2:], *look("", 0, None)]
        return [*pick(first or 0, ids), *look("", 0, first)]

    search = [words, number, chosen]
    gr.on(
        [words.submit, words.blur, tab.select],
        guarded(lambda text_, question: look(text_, 0, question)),
        [words, chosen],
        listed,
        **QUIET,
    )
    before.click(turn(-1), search, listed, **QUIET)
    further.click(turn(1), search, listed, **QUIET)
    questions.select(guarded(press), [words, number], [runs, *drawn, chosen, *listed], **QUIET)
    runs.input(guarded(draw), runs, drawn, **QUIET)
    page.load(guarded(open_page), None, [runs, *drawn, chosen, *listed], **QUIET)
