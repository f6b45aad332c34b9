"""All heads of an attention map as fields that can be pressed, and one head: in numbers and on the tokens.

A grid of our own and no Plotly figure: each field is a button with a name, reached by click, touch or arrow keys. 32
layers of 32 heads are about 130 kB.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdqa.records import AttentionMap, Document, Head
from ui.views.documents import token_heat
from ui.views.markup import count, details, element, empty, escape, number, short, text

LEVELS = 9
"""Steps of colour from no mass to the map's largest."""

HEATED = 3
"""Documents whose tokens are shown for a head: those on which most of its attention falls."""

PRESS_HEAD = """
const fields = () => [...element.querySelectorAll("[data-head]")];
const said = (field) => {
  const line = element.querySelector("[data-said]");
  if (line && field) line.textContent = field.title;
};
element.addEventListener("click", (event) => {
  const field = event.target.closest("[data-head]");
  if (!field) return;
  for (const other of fields()) {
    other.ariaSelected = String(other === field);
    other.tabIndex = other === field ? 0 : -1;
  }
  said(field);
  trigger("select", { head: field.dataset.head });
});
element.addEventListener("mouseover", (event) => said(event.target.closest("[data-head]")));
element.addEventListener("focusin", (event) => said(event.target.closest("[data-head]")));
element.addEventListener("keydown", (event) => {
  const field = event.target.closest("[data-head]");
  if (!field) return;
  const [layer, head] = field.dataset.head.split("-").map(Number);
  const last = Number(element.querySelector("[data-heads]").dataset.heads) - 1;
  const steps = {
    ArrowLeft: [layer, head - 1], ArrowRight: [layer, head + 1], Home: [layer, 0],
    ArrowUp: [layer - 1, head], ArrowDown: [layer + 1, head], End: [layer, last],
  };
  if (!steps[event.key]) return;
  event.preventDefault();
  const next = element.querySelector(`[data-head="${steps[event.key].join("-")}"]`);
  if (!next) return;
  field.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
"""
"""One stop for the Tab key; arrows move between the fields, click, Enter and Space press one."""


def head_grid(attention_map: AttentionMap, documents: Sequence[Document], document_id: str, chosen: Head) -> str:
    """Layers (rows) by heads (columns), coloured by the mass on one document, retrieval heads ringed."""
    mass = attention_map.mass[:, :, attention_map.documents.index(document_id)]  # (layers, heads)
    layers, heads = mass.shape
    top = max(float(mass.max()), 1e-4)
    level = np.ceil(np.clip(mass / top, 0.0, 1.0) * LEVELS).astype(int)
    ringed = set(attention_map.retrieval_heads)
    rows = [_heading(heads)]
    for layer in range(layers):
        fields = "".join(
            _field(layer, head, float(mass[layer, head]), int(level[layer, head]), (layer, head) in ringed, chosen)
            for head in range(heads)
        )
        rows.append(f'<div role="row"><span role="rowheader" class="layer">{layer}</span>{fields}</div>')
    name = _name(documents, document_id)
    label = f"Attention mass on document {name}: {layers} layers by {heads} heads. Arrow keys move, Enter chooses."
    grid = element("div", "".join(rows), "mdqa-head-grid", role="grid", aria_label=label, data_heads=heads)
    box = element("div", grid, "mdqa-scroll tall")
    said = text("p", "Press a head for what it looks at.", "mdqa-note", data_said="")
    return element("div", _key(top, bool(ringed)) + box + said + _left_out(attention_map), "mdqa-heads-map")


def _left_out(attention_map: AttentionMap) -> str:
    ran = attention_map.mass.shape[0]
    if attention_map.model_layers <= ran:
        return ""
    words = (
        f"The stage needed layers 0 to {ran - 1}; the model's other {attention_map.model_layers - ran} were not run."
    )
    return text("p", words, "mdqa-note")


def _heading(heads: int) -> str:
    inner = "".join(f'<span role="columnheader">{head}</span>' for head in range(heads))
    return f'<div role="row" class="numbers"><span role="columnheader" class="layer">layer</span>{inner}</div>'


def _field(layer: int, head: int, mass: float, level: int, ringed: bool, chosen: Head) -> str:
    here = (layer, head) == chosen
    ring, note = (" ring", ", retrieval head") if ringed else ("", "")
    return (
        f'<button type="button" role="gridcell" class="m{level}{ring}" data-head="{layer}-{head}" '
        f'tabindex="{0 if here else -1}" aria-selected="{"true" if here else "false"}" '
        f'title="layer {layer}, head {head}: mass {number(mass, 4)}{note}"></button>'
    )


def _key(top: float, ringed: bool) -> str:
    """The colours' meaning: from nothing to the largest mass."""
    steps = "".join(f'<i class="m{level}"></i>' for level in range(0, LEVELS + 1, 3))
    ring = '<span class="item"><span class="key ring"></span>used by the stage</span>' if ringed else ""
    scale = element("span", steps, "mdqa-head-scale", aria_hidden="true")
    return element("p", f"mass 0 {scale} {number(top, 4)} {ring}", "mdqa-legend")


def _name(documents: Sequence[Document], document_id: str) -> str:
    for index, document in enumerate(documents, 1):
        if document.id == document_id:
            return f"{index}. {short(document.title or document.text, 60)}" + (" (gold)" if document.gold else "")
    return document_id


def head_facts(attention_map: AttentionMap, documents: Sequence[Document], document_id: str, head: Head) -> str:
    """One head in words: its mass on the chosen document, its rank there among all heads, what it prefers."""
    mass = attention_map.mass[head[0], head[1]]  # (documents,)
    index = attention_map.documents.index(document_id)
    own = float(mass[index])
    column = attention_map.mass[:, :, index]
    rank = 1 + int((column > own).sum())
    best = int(np.argmax(mass))
    total = float(mass.sum())
    words = (
        f"Layer {head[0]}, head {head[1]} puts {number(own, 4)} on {_name(documents, document_id)}: rank {count(rank)} "
        f"of {count(column.size)} heads. Most of its mass, {number(float(mass[best]), 4)}, is on "
        f"{_name(documents, attention_map.documents[best])}; {number(total, 4)} on all documents together"
        + ("" if attention_map.pool == "sum" else " (means over a document's tokens)")
        + "."
    )
    used = " It is one of the heads that the stage worked with." if head in attention_map.retrieval_heads else ""
    return text("p", words + used, "mdqa-note", dir="auto")


def head_tokens(attention_map: AttentionMap, documents: Sequence[Document], head: Head, *, method: str = "") -> str:
    """The documents on which most of a head's attention falls, token by token; or why there is none and what to do."""
    title = text("h3", f"Tokens under layer {head[0]}, head {head[1]}")
    heat = token_heat(attention_map, head)
    if not heat:
        return element("section", title + empty("Not kept for this head", _why(attention_map, method)), "mdqa-part")
    order = np.argsort(-attention_map.mass[head[0], head[1]], kind="stable")[:HEATED]
    parts = []
    for place, index in enumerate(order.tolist()):
        document_id = attention_map.documents[index]
        mass = number(float(attention_map.mass[head[0], head[1], index]), 4)
        summary = escape(f"{_name(documents, document_id)}: mass {mass}")
        body = element("div", heat[document_id], "mdqa-text", dir="auto")
        parts.append(details(summary, body, "mdqa-more", opened=place == 0))
    note = text(
        "p",
        "Stronger colour: more attention from the question, beside the strongest token of all documents.",
        "mdqa-note",
    )
    return element("section", title + note + "".join(parts), "mdqa-part", data_testid="head-tokens")


def _why(attention_map: AttentionMap, method: str) -> str:
    kept = attention_map.heat.heads if attention_map.heat else ()
    if kept:
        listed = "; ".join(f"layer {layer}, head {head}" for layer, head in kept[:8])
        more = f" and {count(len(kept) - 8)} more" if len(kept) > 8 else ""
        way = " Run again with a larger K1 or K2 to keep more of the profile's heads." if method == "cafe" else ""
        return f"A run keeps tokens only for the heads it works with: {listed}{more}.{way}"
    return (
        "This stage looks at all heads together and keeps the mass per document only. CAFE keeps the tokens of its "
        "retrieval heads: run it on the same question."
    )
