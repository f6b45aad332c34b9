"""A result's Documents tab: a page of cards, what is highlighted in their texts, a card that a link asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from mdqa.records import Head
from ui.actions import View, load_view
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.documents import CARDS, card_page, document_cards, token_heat

KEY_SENTENCES = ""

ASK_FOR_CARD = """
element.addEventListener("mdqa-card", (event) => trigger("select", { number: event.detail }));
"""
"""``scripts/page.js`` asks for a card that a link names and that stands on another page of cards."""


@dataclass(frozen=True)
class DocumentsPanel:
    """The components; :meth:`show` fills them for a run."""

    pages: gr.Dropdown
    highlight: gr.Dropdown
    cards: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.pages, self.highlight, self.cards]

    def show(self, view: View) -> list[Any]:
        """Values for :attr:`outputs`: the first page, with key sentences."""
        choices = highlights(view)
        return [
            _pages(view, 0),
            gr.Dropdown(choices=choices, value=KEY_SENTENCES, visible=len(choices) > 1),
            cards(view, 0, KEY_SENTENCES),
        ]


def build_documents_panel(context: Context, run: gr.Radio) -> DocumentsPanel:
    """Lay out and wire it; ``run`` holds the id of the run in front."""
    with gr.Row(elem_classes="mdqa-card-controls"):
        pages = gr.Dropdown([], label="Documents in their final order", visible=False, elem_id="mdqa-card-page")
        highlight = gr.Dropdown([], label="Highlight in the text", visible=False)
    shown = gr.HTML(apply_default_css=False, js_on_load=ASK_FOR_CARD, elem_id="mdqa-documents")

    def draw(run_id: str, first: int | None, chosen: str | None) -> str:
        return cards(load_view(context, run_id), first, chosen)

    def find(run_id: str, chosen: str | None, event: gr.EventData) -> list[Any]:
        view = load_view(context, run_id)
        first = card_page(view.run, getattr(event, "number", None))
        return [_pages(view, first), cards(view, first, chosen)]

    gr.on([pages.input, highlight.input], guarded(draw), [run, pages, highlight], shown, **QUIET)
    shown.select(guarded(find), [run, highlight], [pages, shown], **QUIET)
    return DocumentsPanel(pages, highlight, shown)


def cards(view: View, first: int | None, chosen: str | None) -> str:
    """One page of cards from number ``first`` (from 0) with the chosen highlight."""
    index, _, head = (chosen or "").partition(":")
    place = first if isinstance(first, int) and not isinstance(first, bool) else 0
    if not head or not index.isdigit() or int(index) >= len(view.maps):
        return document_cards(view.run, view.calls_by_index, first=place)
    heat = token_heat(view.maps[int(index)], read_head(head))
    note = f"Stronger colour: more attention of layer {head.replace('-', ', head ')} from the question."
    return document_cards(view.run, view.calls_by_index, heat, note, first=place)


def highlights(view: View) -> list[tuple[str, str]]:
    """Key sentences, and one entry per map and head with token weights."""
    found = [("Key sentences", KEY_SENTENCES)]
    for index, attention_map in enumerate(view.maps):
        for layer, head in attention_map.heat.heads if attention_map.heat else ():
            label = f"Token attention: {attention_map.title or attention_map.stage}, layer {layer} head {head}"
            found.append((label, f"{index}:{layer}-{head}"))
    return found


def _pages(view: View, first: int) -> Any:
    """The page picker; hidden where one page holds all."""
    n = len(view.run.question.documents)
    choices = [(f"{start + 1} to {min(start + CARDS, n)} of {n}", start) for start in range(0, max(n, 1), CARDS)]
    return gr.Dropdown(choices=choices, value=first, visible=len(choices) > 1)


def read_head(text: str | None) -> Head:
    """A head from its ``layer-head`` text; InputError for anything else."""
    layer, dash, head = (text or "").partition("-")
    if not (dash and layer.isascii() and head.isascii() and layer.isdigit() and head.isdigit()) or len(text or "") > 9:
        raise InputError(f"there is no head {text!r}")
    return int(layer), int(head)
