"""A result's Heads tab: every head as a field to press, and what the pressed one looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import AttentionMap, Head
from ui.actions import View, load_view
from ui.components.documents_panel import read_head
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.head_grid import PRESS_HEAD, head_facts, head_grid, head_tokens
from ui.views.heads import head_distribution, heads_by_document, heads_intro, top_heads
from ui.views.markup import plain


@dataclass(frozen=True)
class HeadPanel:
    """The components; :meth:`show` fills them for a run. ``head``: the pressed head, offered with the stage's own."""

    intro: gr.HTML
    map: gr.Dropdown
    document: gr.Dropdown
    grid: gr.HTML
    head: gr.Dropdown
    facts: gr.HTML
    distribution: gr.Plot
    tokens: gr.HTML
    by_document: gr.Plot

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.intro, self.map, *self.after_map]

    @property
    def after_map(self) -> list[Any]:
        """What another attention map fills, in the order of :func:`map_parts`."""
        return [self.document, self.grid, *self.after_head, self.by_document]

    @property
    def after_head(self) -> list[Any]:
        """What another head fills, in the order of :func:`head_parts`."""
        return [self.head, self.facts, self.distribution, self.tokens]

    def show(self, view: View) -> list[Any]:
        """Values for :attr:`outputs`."""
        intro = heads_intro(view.run, view.maps, _no_maps(view))
        if not view.maps:
            hidden = gr.Dropdown(choices=[], value=None, visible=False)
            gone = gr.Plot(value=None, visible=False)
            return [intro, hidden, hidden, "", hidden, "", gone, "", gone]
        titles = [(f"{m.title or m.stage} ({len(m.documents)} documents)", i) for i, m in enumerate(view.maps)]
        return [intro, gr.Dropdown(choices=titles, value=0, visible=True), *map_parts(view, 0)]


def map_parts(view: View, index: int) -> list[Any]:
    """Document picker, all heads, the first head, and the stage's heads over documents, for one attention map."""
    chosen = view.maps[index]
    documents = view.run.question.documents
    document = _default_document(view, chosen)
    head = top_heads(chosen)[0]
    return [
        gr.Dropdown(choices=_document_choices(view, chosen), value=document, visible=True),
        head_grid(chosen, documents, document, head),
        *head_parts(view, index, document, head),
        gr.Plot(heads_by_document(chosen, documents), visible=True),
    ]


def head_parts(view: View, index: int, document: str, head: Head) -> list[Any]:
    """Head picker, what the head does in numbers, its distribution, its tokens."""
    chosen, documents = view.maps[index], view.run.question.documents
    return [
        gr.Dropdown(choices=head_choices(chosen, head), value=f"{head[0]}-{head[1]}", visible=True),
        head_facts(chosen, documents, document, head),
        gr.Plot(head_distribution(chosen, documents, head), visible=True),
        head_tokens(chosen, documents, head, method=view.run.method),
    ]


def head_choices(chosen: AttentionMap, head: Head) -> list[tuple[str, str]]:
    """The heads that the stage worked with, and the pressed one where it is another."""
    first = top_heads(chosen)
    marked = set(chosen.retrieval_heads)
    every = first if head in first else (*first, head)
    return [
        (
            f"layer {layer}, head {number}" + (" (retrieval head)" if (layer, number) in marked else ""),
            f"{layer}-{number}",
        )
        for layer, number in every
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


def _no_maps(view: View) -> str:
    if view.run.status == "running":
        return "The run is still working."
    if view.run.backend and view.run.backend not in ("hf", "scripted"):
        return f"The backend {view.run.backend} does not show attention; choose a model that runs through transformers."
    if view.run.attention_summary:
        return "They were not kept: this run came with a result file of the command line, which holds their means only."
    return f"{view.title} did not look at attention in this run."


def build_head_panel(context: Context, run: gr.Radio) -> HeadPanel:
    """Lay out and wire it; ``run`` holds the id of the run in front."""
    intro = gr.HTML(apply_default_css=False)
    chosen_map = gr.Dropdown([], label="Attention map", visible=False)
    document = gr.Dropdown([], label="Layers by heads: mass on this document", visible=False)
    grid = gr.HTML(apply_default_css=False, js_on_load=PRESS_HEAD, elem_id="mdqa-head-map")
    one_head = gr.Dropdown([], label="One head: mass on each document by position", visible=False, elem_id="mdqa-head")
    facts = gr.HTML(apply_default_css=False, elem_id="mdqa-head-facts")
    distribution = _plot("mdqa-head-one")
    tokens = gr.HTML(apply_default_css=False, elem_id="mdqa-head-tokens")
    by_document = _plot("mdqa-head-documents")
    panel = HeadPanel(intro, chosen_map, document, grid, one_head, facts, distribution, tokens, by_document)

    def choose_map(run_id: str, index: int) -> list[Any]:
        view = load_view(context, run_id)
        return map_parts(view, _within(view, index))

    def choose_document(run_id: str, index: int, document_id: str, head: str) -> list[Any]:
        view = load_view(context, run_id)
        chosen = view.maps[_within(view, index)]
        place = _head(chosen, head)
        _check_document(chosen, document_id)
        documents = view.run.question.documents
        return [
            head_grid(chosen, documents, document_id, place),
            head_facts(chosen, documents, document_id, place),
        ]

    def press(run_id: str, index: int, document_id: str, event: gr.EventData) -> list[Any]:
        """The grid marks the pressed field itself: drawn again it would lose the keyboard's place."""
        view = load_view(context, run_id)
        chosen = view.maps[_within(view, index)]
        _check_document(chosen, document_id)
        return head_parts(view, index, document_id, _head(chosen, getattr(event, "head", None)))

    def choose_head(run_id: str, index: int, document_id: str, head: str) -> list[Any]:
        view = load_view(context, run_id)
        chosen = view.maps[_within(view, index)]
        _check_document(chosen, document_id)
        place = _head(chosen, head)
        return [
            head_grid(chosen, view.run.question.documents, document_id, place),
            *head_parts(view, index, document_id, place),
        ]

    chosen_map.input(guarded(choose_map), [run, chosen_map], panel.after_map, **QUIET)
    document.input(guarded(choose_document), [run, chosen_map, document, one_head], [grid, facts], **QUIET)
    grid.select(guarded(press), [run, chosen_map, document], panel.after_head, **QUIET)
    one_head.input(guarded(choose_head), [run, chosen_map, document, one_head], [grid, *panel.after_head], **QUIET)
    return panel


def _plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, visible=False, elem_id=name)


def _within(view: View, index: object) -> int:
    """A valid position among the run's maps; InputError otherwise."""
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(view.maps):
        raise InputError("the run has no such attention map")
    return index


def _check_document(chosen: AttentionMap, document_id: object) -> None:
    if document_id not in chosen.documents:
        raise InputError("the map does not hold this document")


def _head(chosen: AttentionMap, head: object) -> Head:
    """A head of the map; InputError names one that it does not have."""
    layer, number = read_head(head if isinstance(head, str) else None)
    if not (layer < chosen.mass.shape[0] and number < chosen.mass.shape[1]):
        raise InputError(f"the map has no layer {layer}, head {number}")
    return layer, number
