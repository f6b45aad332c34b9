"""Attention in Plotly figures: scores of layers by heads, heads by documents, one head over the documents.

All heads of a run's map are fields to press instead: see ``head_grid``.

Colours of text and lines come from the style sheet; figures stay far below 1 MB (values rounded to 4 decimals).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mdqa.records import AttentionMap, Document, Head, RunResult
from ui.views.charts import common_look
from ui.views.markup import element, empty, message, plain, text

TOP_HEADS = 16
FRAMED = 40
"""Documents up to which cells of a map stand apart; with more of them the gaps would be wider than the cells."""

SCALE = [[0.0, "#eef4f3"], [0.15, "#c5e0dc"], [0.4, "#7fbdb5"], [0.7, "#2f8f86"], [1.0, "#0b4f4a"]]
COLORBAR = {"title": {"text": "mass"}, "thickness": 10, "outlinewidth": 0, "nticks": 5}
RING = "#d97706"
ACCENT = "#14857c"
GOLD = "#d97706"


def heads_intro(run: RunResult, maps: Sequence[AttentionMap], reason: str = "") -> str:
    """What the head maps show, or why there are none and how to get them."""
    if not maps:
        return element(
            "div",
            empty("No attention maps", reason or "This method did not look at attention in this run.")
            + message("CAFE and DuQUAD's contrast signal look at attention; they need a model run by transformers."),
            data_testid="no-heads",
        )
    return text(
        "p",
        "Mass: the share of a head's attention that the question's tokens put on a document. First every head of the "
        "layers that were run, for one document; ringed are the heads the stage worked with. Press one for its mass "
        "on every document and its tokens. At the end the stage's heads over all documents (L3 H2 is layer 3, head 2).",
        "mdqa-note",
    )


def _layout(figure: go.Figure, height: int, x: str, y: str) -> go.Figure:
    common_look(figure, height)
    figure.update_xaxes(title=x, showgrid=False)
    figure.update_yaxes(title=y, showgrid=False)
    return figure


def rounded(values: np.ndarray) -> list[list[float]]:
    """A matrix as lists with 4 decimals, which keeps a figure's JSON small."""
    return [[round(float(v), 4) for v in row] for row in np.asarray(values)]


def _names(attention_map: AttentionMap, documents: Sequence[Document]) -> list[str]:
    by_id = {document.id: (number, document) for number, document in enumerate(documents, 1)}
    names = []
    for document_id in attention_map.documents:
        number, document = by_id.get(document_id, (0, None))
        title = (document.title or document.text) if document else document_id
        names.append(f"{number}. {plain(title, 34)}" + (" ★" if document and document.gold else ""))
    return names


def layers_by_heads(
    values: np.ndarray,
    ringed: Sequence[Head],
    *,
    what: str,
    low: float = 0.0,
    ranks: np.ndarray | None = None,
) -> go.Figure:
    """One number per head, (layers, heads), as a map from ``low`` up with some heads ringed.

    ``what`` is said beside the colours and in the hover, with each head's rank if ``ranks`` is given.
    """
    place = "<br>rank %{customdata}" if ranks is not None else ""
    figure = go.Figure(
        go.Heatmap(
            z=rounded(values),
            customdata=None if ranks is None else ranks.tolist(),
            colorscale=SCALE,
            zmin=low,
            zmax=max(float(values.max()), low + 1e-4),
            colorbar={**COLORBAR, "title": {"text": what}},
            hovertemplate=f"layer %{{y}}, head %{{x}}<br>{what} %{{z:.4f}}{place}<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    if ringed:
        known = [round(float(values[layer, head]), 4) for layer, head in ringed]
        places = [0 if ranks is None else int(ranks[layer, head]) for layer, head in ringed]
        words = f"{what} %{{customdata[0]}}" + ("<br>rank %{customdata[1]}" if ranks is not None else "")
        figure.add_trace(
            go.Scatter(
                x=[head for _, head in ringed],
                y=[layer for layer, _ in ringed],
                mode="markers",
                marker={"symbol": "circle-open", "size": 13, "color": RING, "line": {"width": 2.5}},
                customdata=list(zip(known, places, strict=True)),
                hovertemplate=f"retrieval head: layer %{{y}}, head %{{x}}<br>{words}<extra></extra>",
            )
        )
    height = int(min(max(15 * values.shape[0] + 90, 240), 640))
    _layout(figure, height, "head", "layer")
    figure.update_xaxes(dtick=max(1, values.shape[1] // 16), tick0=0)
    figure.update_yaxes(dtick=max(1, values.shape[0] // 15), tick0=0)
    return figure


def top_heads(attention_map: AttentionMap, limit: int = TOP_HEADS) -> tuple[Head, ...]:
    """The retrieval heads, or without any the heads with the largest mass on a single document."""
    if attention_map.retrieval_heads:
        return tuple(h for h in attention_map.retrieval_heads if h[0] < attention_map.mass.shape[0])[:limit]
    best = attention_map.mass.max(axis=2)  # (layers, heads)
    order = np.argsort(-best, axis=None, kind="stable")[:limit]
    return tuple((int(i // best.shape[1]), int(i % best.shape[1])) for i in order)


def heads_by_document(attention_map: AttentionMap, documents: Sequence[Document]) -> go.Figure:
    """The heads the stage worked with (rows) by documents in prompt order (columns)."""
    heads = top_heads(attention_map)
    rows = np.array([attention_map.mass[layer, head] for layer, head in heads])  # (heads, documents)
    names = _names(attention_map, documents)
    labels = [str(name.split(".")[0]) + ("★" if name.endswith("★") else "") for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=rounded(rows),
            x=labels,
            y=[f"L{layer} H{head}" for layer, head in heads],
            customdata=[names] * len(heads),
            colorscale=SCALE,
            zmin=0,
            zmax=max(float(rows.max()), 1e-4),
            colorbar=COLORBAR,
            hovertemplate="%{y}<br>%{customdata}<br>mass %{z:.4f}<extra></extra>",
            xgap=1 if len(labels) <= FRAMED else 0,
            ygap=1,
        )
    )
    _layout(
        figure, int(min(max(26 * len(heads) + 110, 200), 560)), "document (number as given, in prompt order)", "head"
    )
    # Plotly turns labels that do not fit, and on a narrow page they would still stand on each other.
    figure.update_xaxes(type="category", nticks=20 if len(labels) <= FRAMED else 9)
    figure.update_yaxes(autorange="reversed", title_standoff=6)
    figure.update_layout(margin_l=80)
    return figure


def head_distribution(attention_map: AttentionMap, documents: Sequence[Document], head: Head) -> go.Figure:
    """One head: its mass on every document by position in the prompt; gold documents in the gold colour."""
    names = _names(attention_map, documents)
    mass = [round(float(v), 4) for v in attention_map.mass[head[0], head[1]]]
    figure = go.Figure(
        go.Bar(
            x=list(range(1, len(mass) + 1)),
            y=mass,
            customdata=names,
            marker={"color": [GOLD if name.endswith("★") else ACCENT for name in names]},
            hovertemplate="position %{x}<br>%{customdata}<br>mass %{y:.4f}<extra></extra>",
        )
    )
    _layout(figure, 240, "position in the prompt (gold documents in orange)", f"mass, L{head[0]} H{head[1]}")
    if len(mass) <= FRAMED:
        figure.update_xaxes(dtick=max(1, len(mass) // 20), tick0=1)
    else:
        figure.update_xaxes(nticks=9, tickangle=0)  # more of them would stand on each other on a narrow page
    return figure
