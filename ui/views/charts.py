"""The common look of all Plotly figures: see-through, in the page's font; the style sheet colours text and lines."""

from __future__ import annotations

import plotly.graph_objects as go

LINE = 22
"""Pixels of a line of a legend."""


def common_look(figure: go.Figure, height: int, legend: int = 0, *, upright: bool = False) -> None:
    """Give a figure the look of the others.

    Args:
        figure: is changed.
        height: of the picture in pixels, without its legend.
        legend: names in the legend above the picture; 0 for none.
        upright: a line for every name, for long ones.
    """
    lines = legend if upright else (legend + 2) // 3
    figure.update_layout(
        height=height + LINE * lines,
        margin={"l": 58, "r": 14, "t": 12, "b": 52},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 12, "family": "IBM Plex Sans, system-ui, sans-serif"},
        hoverlabel={"bgcolor": "#1d2327", "bordercolor": "#1d2327", "font": {"color": "#ffffff", "size": 12}},
        showlegend=legend > 0,
        legend={
            "orientation": "v" if upright else "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
        },
        dragmode=False,
    )
    figure.update_xaxes(zeroline=False, fixedrange=True)
    figure.update_yaxes(zeroline=False, fixedrange=True)


def wrapped(name: str, width: int = 22) -> str:
    """A long name on several lines of about ``width`` characters, for labels of figures; words stay whole."""
    lines = [""]
    for word in name.split():
        lines = [*lines[:-1], f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < width else [*lines, word]
    return "<br>".join(line for line in lines if line)
