"""A run's page: answer, evidence flow, documents, decisions, heads, prompts; drawn from the store by the run's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import AttentionMap, Head
from ui.actions import View, load_view
from ui.components.decision_panel import DecisionPanel, build_decision_panel
from ui.components.queue_form import QueueForm, build_queue_form
from ui.components.rerun import Rerun, build_rerun
from ui.components.verdict import Verdict, build_verdict
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.documents import document_cards, token_heat
from ui.views.flow import evidence_flow
from ui.views.heads import head_distribution, head_map, heads_by_document, heads_intro, top_heads
from ui.views.markup import plain
from ui.views.prompts import PAGE, prompt_list
from ui.views.summary import change_line, result_head

KEY_SENTENCES = ""


@dataclass(frozen=True)
class ResultPanel:
    """The components of a result; ``show`` fills them for a run id. ``before``: earlier runs' ids by later ones'."""

    context: Context
    box: gr.Column
    run: gr.Radio
    before: gr.State
    head: gr.HTML
    verdict: Verdict
    queue: QueueForm
    rerun: Rerun
    flow: gr.HTML
    highlight: gr.Dropdown
    cards: gr.HTML
    decisions: DecisionPanel
    intro: gr.HTML
    map: gr.Dropdown
    document: gr.Dropdown
    layers: gr.Plot
    by_document: gr.Plot
    one_head: gr.Dropdown
    distribution: gr.Plot
    pages: gr.Dropdown
    prompts: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [
            self.head,
            *self.verdict.outputs,
            *self.queue.outputs,
            *self.rerun.outputs,
            self.flow,
            self.highlight,
            self.cards,
            *self.decisions.outputs,
            self.intro,
            self.map,
            self.document,
            self.layers,
            self.by_document,
            self.one_head,
            self.distribution,
            self.pages,
            self.prompts,
        ]

    def show(
        self, run_id: str, before: Mapping[str, str] | None = None, request: gr.Request | None = None
    ) -> list[Any]:
        """Values for :attr:`outputs`, as the visitor of ``request`` may see them; MdqaError if there is no such run."""
        view = load_view(self.context, run_id, (before or {}).get(run_id, ""))
        run = view.run
        return [
            result_head(
                run,
                method_title=view.title,
                correct=view.correct,
                vanilla=view.vanilla,
                retrieved=view.gold_reached,
                change=change_line(view.before, run) if view.before is not None else "",
            ),
            *self.verdict.show(run, request),
            *self.queue.show(run),
            *self.rerun.show(run),
            evidence_flow(run),
            gr.Dropdown(choices=_highlights(view), value=KEY_SENTENCES, visible=len(_highlights(view)) > 1),
            document_cards(run, view.calls_by_index),
            *self.decisions.show(view),
            heads_intro(run, view.maps, _no_maps(view)),
            *self._heads(view),
            *_prompt_pages(view),
        ]

    def _heads(self, view: View) -> list[Any]:
        if not view.maps:
            hidden = gr.Dropdown(choices=[], value=None, visible=False)
            gone = gr.Plot(value=None, visible=False)
            return [hidden, hidden, gone, gone, hidden, gone]
        titles = [(f"{m.title or m.stage} ({len(m.documents)} documents)", i) for i, m in enumerate(view.maps)]
        picker = gr.Dropdown(choices=titles, value=0, visible=True)
        return [picker, *map_parts(view, 0)]


def map_parts(view: View, index: int) -> list[Any]:
    """Document picker, both maps, head picker and the head's distribution for one attention map."""
    chosen = view.maps[index]
    documents = view.run.question.documents
    names = _document_choices(view, chosen)
    best = _default_document(view, chosen)
    heads = head_choices(chosen)
    first = heads[0][1] if heads else None
    return [
        gr.Dropdown(choices=names, value=best, visible=True),
        gr.Plot(head_map(chosen, documents, best), visible=True),
        gr.Plot(heads_by_document(chosen, documents), visible=True),
        gr.Dropdown(choices=heads, value=first, visible=True),
        gr.Plot(head_distribution(chosen, documents, read_head(first)), visible=True),
    ]


def _document_choices(view: View, chosen: AttentionMap) -> list[tuple[str, str]]:
    number = {document.id: i for i, document in enumerate(view.run.question.documents, 1)}
    names = []
    for document_id in chosen.documents:
        document = view.run.question.document(document_id)
        gold = " ★ gold" if document.gold else ""
        names.append((f"{number[document_id]}. {plain(document.title or document.text, 60)}{gold}", document_id))
    return names


def _default_document(view: View, chosen: AttentionMap) -> str:
    """The first gold document of the map, or its first document."""
    gold = [document_id for document_id in view.run.question.gold_ids if document_id in chosen.documents]
    return gold[0] if gold else chosen.documents[0]


def head_choices(chosen: AttentionMap) -> list[tuple[str, str]]:
    """All heads of a map, those the stage worked with first and marked."""
    first = top_heads(chosen)
    layers, heads, _ = chosen.mass.shape
    rest = [(layer, head) for layer in range(layers) for head in range(heads) if (layer, head) not in first]
    marked = set(chosen.retrieval_heads)
    return [
        (f"layer {layer}, head {head}" + (" (retrieval head)" if (layer, head) in marked else ""), f"{layer}-{head}")
        for layer, head in [*first, *rest]
    ]


def read_head(text: str | None) -> Head:
    """A head from its ``layer-head`` text; InputError for anything else."""
    try:
        layer, head = (int(part) for part in (text or "").split("-"))
    except ValueError:
        raise InputError(f"there is no head {text!r}") from None
    return layer, head


def _highlights(view: View) -> list[tuple[str, str]]:
    """Key sentences, and one entry per map and head with token weights."""
    found = [("Key sentences", KEY_SENTENCES)]
    for index, attention_map in enumerate(view.maps):
        for layer, head in attention_map.heat.heads if attention_map.heat else ():
            label = f"Token attention: {attention_map.title or attention_map.stage}, layer {layer} head {head}"
            found.append((label, f"{index}:{layer}-{head}"))
    return found


def _no_maps(view: View) -> str:
    if view.run.status == "running":
        return "The run is still working."
    if view.run.backend and view.run.backend not in ("hf", "scripted"):
        return f"The backend {view.run.backend} does not show attention; choose a model that runs through transformers."
    if view.run.attention_summary:
        return "They were not kept: this run came with a result file of the command line, which holds their means only."
    return f"{view.title} did not look at attention in this run."


def _prompt_pages(view: View) -> list[Any]:
    starts = range(0, max(len(view.calls), 1), PAGE)
    choices = [(f"calls {start + 1} to {min(start + PAGE, len(view.calls))}", start) for start in starts]
    numbers = {document.id: i for i, document in enumerate(view.run.question.documents, 1)}
    return [
        gr.Dropdown(choices=choices, value=0, visible=len(choices) > 1),
        prompt_list(view.calls, 0, numbers, made=view.run.cost.llm_calls),
    ]


def build_result_panel(context: Context) -> ResultPanel:
    """Lay out and wire a result; it is invisible until a run is shown."""
    with gr.Column(visible=False, elem_id="mdqa-result") as box:
        run = gr.Radio([], label="Run", visible=False, elem_id="mdqa-run-choice")
        before = gr.State({})
        head = gr.HTML(apply_default_css=False)
        verdict = build_verdict(context)
        queue = build_queue_form(context)
        rerun = build_rerun()
        with gr.Tabs(elem_classes="mdqa-result-tabs"):
            with gr.Tab("Flow", id="flow"):
                flow = gr.HTML(apply_default_css=False, elem_id="mdqa-flow")
            with gr.Tab("Documents", id="documents"):
                highlight = gr.Dropdown([], label="Highlight in the text", visible=False)
                cards = gr.HTML(apply_default_css=False, elem_id="mdqa-documents")
            with gr.Tab("Decisions", id="decisions"):
                made = build_decision_panel(context, run)
            with gr.Tab("Heads", id="heads"):
                intro = gr.HTML(apply_default_css=False)
                chosen_map = gr.Dropdown([], label="Attention map", visible=False)
                document = gr.Dropdown([], label="Layers by heads: mass on this document", visible=False)
                layers = _plot("mdqa-head-map")
                by_document = _plot("mdqa-head-documents")
                one_head = gr.Dropdown([], label="One head: mass on each document by position", visible=False)
                distribution = _plot("mdqa-head-one")
            with gr.Tab("Prompts", id="prompts"):
                pages = gr.Dropdown([], label="Page", visible=False)
                prompts = gr.HTML(apply_default_css=False, elem_id="mdqa-prompts")
    panel = ResultPanel(
        context,
        box,
        run,
        before,
        head,
        verdict,
        queue,
        rerun,
        flow,
        highlight,
        cards,
        made,
        intro,
        chosen_map,
        document,
        layers,
        by_document,
        one_head,
        distribution,
        pages,
        prompts,
    )
    _wire(panel)
    return panel


def _plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, visible=False, elem_id=name)


def _wire(panel: ResultPanel) -> None:
    context = panel.context

    def choose_run(run_id: str, before: Mapping[str, str], request: gr.Request) -> list[Any]:
        return panel.show(run_id, before, request)

    def choose_highlight(run_id: str, value: str) -> str:
        view = load_view(context, run_id)
        index, _, head = (value or "").partition(":")
        if not head or not index.isdigit() or int(index) >= len(view.maps):
            return document_cards(view.run, view.calls_by_index)
        heat = token_heat(view.maps[int(index)], read_head(head))
        note = f"Darker: more attention of layer {head.replace('-', ', head ')} from the question."
        return document_cards(view.run, view.calls_by_index, heat, note)

    def choose_map(run_id: str, index: int) -> list[Any]:
        view = load_view(context, run_id)
        return map_parts(view, _within(index, len(view.maps)))

    def choose_document(run_id: str, index: int, document_id: str) -> Any:
        view = load_view(context, run_id)
        chosen = view.maps[_within(index, len(view.maps))]
        if document_id not in chosen.documents:
            raise InputError("the map does not hold this document")
        return head_map(chosen, view.run.question.documents, document_id)

    def choose_head(run_id: str, index: int, head: str) -> Any:
        view = load_view(context, run_id)
        chosen = view.maps[_within(index, len(view.maps))]
        layer, number = read_head(head)
        if not (0 <= layer < chosen.mass.shape[0] and 0 <= number < chosen.mass.shape[1]):
            raise InputError(f"the map has no layer {layer}, head {number}")
        return head_distribution(chosen, view.run.question.documents, (layer, number))

    def choose_page(run_id: str, start: int) -> str:
        view = load_view(context, run_id)
        numbers = {document.id: i for i, document in enumerate(view.run.question.documents, 1)}
        return prompt_list(view.calls, max(int(start or 0), 0), numbers)

    run, chosen_map = panel.run, panel.map
    after_map = [panel.document, panel.layers, panel.by_document, panel.one_head, panel.distribution]
    run.input(guarded(choose_run), [run, panel.before], panel.outputs, **QUIET)
    panel.highlight.input(guarded(choose_highlight), [run, panel.highlight], panel.cards, **QUIET)
    chosen_map.input(guarded(choose_map), [run, chosen_map], after_map, **QUIET)
    panel.document.input(guarded(choose_document), [run, chosen_map, panel.document], panel.layers, **QUIET)
    panel.one_head.input(guarded(choose_head), [run, chosen_map, panel.one_head], panel.distribution, **QUIET)
    panel.pages.input(guarded(choose_page), [run, panel.pages], panel.prompts, **QUIET)


def _within(index: object, length: int) -> int:
    """A valid position; InputError otherwise."""
    if not isinstance(index, int) or not 0 <= index < length:
        raise InputError("the run has no such attention map")
    return index


def run_choices(titles: Sequence[tuple[str, str]]) -> Any:
    """The radio that switches between runs that were started together; hidden for a single one."""
    return gr.Radio(choices=list(titles), value=titles[0][1] if titles else None, visible=len(titles) > 1)
