"""Pictures of a comparison over a benchmark: accuracy by position of the evidence, and accuracy against cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from mdqa.comparison.entries import Compared
from mdqa.comparison.markdown import DIGITS, TITLES
from mdqa.comparison.overlap import Overlap
from ui.views.benchmark import COST_NAMES, on_front
from ui.views.charts import common_look
from ui.views.figures import COLOURS, GRID, MARK
from ui.views.markup import plain

LABEL = 46
"""Characters of an entry's label in a picture."""

BESIDE = ("top right", "bottom right", "top left", "bottom left")
"""Where an entry's number stands at its point, so that entries at one place can be told apart."""


def position_figure(compared: Compared, found: Overlap) -> go.Figure | None:
    """Accuracy (percent) with 95% intervals over the position of the evidence; None without two positions."""
    if len(found.positions) < 2:
        return None
    figure = go.Figure()
    spread = _offsets(len(compared.entries), found)
    for place, entry in enumerate(compared.entries):
        known = [(at.position, at.entries[place]) for at in found.positions]
        points = [(position, interval) for position, interval in known if interval is not None]
        if not points:
            continue
        means = [_percent(interval["mean"]) for _, interval in points]
        colour = COLOURS[place % len(COLOURS)]
        figure.add_trace(
            go.Scatter(
                name=_name(place, entry.label),
                x=[position + spread[place] for position, _ in points],
                y=means,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": 7},
                error_y=_bars([interval for _, interval in points], 100, colour),
                customdata=[[position, interval["n"], _ends(interval)] for position, interval in points],
                hovertemplate=f"{_name(place, entry.label)}<br>gold at %{{customdata[0]}}: %{{y:.1f}} "
                "%{customdata[2]}<br>n = %{customdata[1]}<extra></extra>",
            )
        )
    common_look(figure, 380, len(compared.entries), upright=True)
    ticks = [at.position for at in found.positions]
    figure.update_xaxes(title="position of the evidence", tickvals=ticks if len(ticks) <= 20 else None, showgrid=False)
    figure.update_yaxes(title=f"{TITLES[found.metric]} (%)", gridcolor=GRID, rangemode="tozero", automargin=True)
    return figure


def cost_figure(compared: Compared, report: Mapping[str, Any], found: Overlap, cost: str) -> go.Figure | None:
    """Accuracy against cost per question, intervals both ways, the Pareto front as a line; None without a point."""
    rows = report["entries"]
    drawn = [place for place, row in enumerate(rows) if row["cost"][cost] and row[found.metric]]
    if not drawn:
        return None
    figure, front, digits = go.Figure(), on_front(report, found.metric, cost), DIGITS.get(cost, 0)
    best = sorted((rows[place]["cost"][cost]["mean"], _percent(rows[place][found.metric]["mean"])) for place in front)
    if len(best) > 1:
        figure.add_trace(
            go.Scatter(
                name="Pareto front",
                x=[x for x, _ in best],
                y=[y for _, y in best],
                mode="lines",
                line={"color": "#7d8a92", "width": 1.5, "dash": "dot", "shape": "hv"},
                hoverinfo="skip",
            )
        )
    for place in drawn:
        price, accuracy = rows[place]["cost"][cost], rows[place][found.metric]
        colour, name = COLOURS[place % len(COLOURS)], _name(place, compared.entries[place].label)
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[price["mean"]],
                y=[_percent(accuracy["mean"])],
                mode="markers+text",
                text=[str(place + 1)],
                textposition=BESIDE[place % len(BESIDE)],
                error_x=_bars([price], 1, colour),
                error_y=_bars([accuracy], 100, colour),
                marker={
                    "color": colour,
                    "size": 13,
                    "opacity": 1,
                    "line": {"color": MARK if place in front else colour, "width": 2.5},
                },
                customdata=[[_ends(accuracy), _ends(price, 1, digits), accuracy["n"]]],
                hovertemplate=f"{name}<br>{TITLES[found.metric]} %{{y:.1f}} %{{customdata[0]}}<br>{COST_NAMES[cost]} "
                f"%{{x:,.{digits}f}} %{{customdata[1]}}<br>n = %{{customdata[2]}}<extra></extra>",
            )
        )
    common_look(figure, 400, len(drawn) + 1, upright=True)
    figure.update_xaxes(title=f"{COST_NAMES[cost].lower()} per question", gridcolor=GRID, rangemode="tozero")
    span = _span([rows[place][found.metric] for place in drawn])
    figure.update_yaxes(title=f"{TITLES[found.metric]} (%)", gridcolor=GRID, automargin=True, range=span)
    return figure


def _span(shares: list[Any]) -> list[float] | None:
    """Ends of an axis in percent where the shares lie so near each other that noise would fill it; else None."""
    ends = [_percent(one[end]) for one in shares for end in ("low", "mean", "high") if one[end] is not None]
    low, high = min(ends), max(ends)
    return [max(low - 10, -1.5), min(high + 10, 101.5)] if high - low < 5 else None


def _name(place: int, label: str) -> str:
    return f"{place + 1}. {plain(label, LABEL)}"


def _percent(value: float) -> float:
    return round(100 * value, 6)


def _offsets(entries: int, found: Overlap) -> list[float]:
    """How far each entry is moved sideways so that intervals at one position do not lie on each other."""
    positions = [at.position for at in found.positions]
    nearest = min(b - a for a, b in pairwise(positions))
    step = min(0.06 * nearest, 0.012 * (positions[-1] - positions[0]))
    return [step * (place - (entries - 1) / 2) for place in range(entries)]


def _bars(intervals: list[Any], scale: float, colour: str) -> dict[str, object]:
    """Error bars from the means to the ends of their intervals."""
    up = [scale * (one["high"] - one["mean"]) if one["high"] is not None else 0.0 for one in intervals]
    down = [scale * (one["mean"] - one["low"]) if one["low"] is not None else 0.0 for one in intervals]
    return {"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 3, "color": colour}


def _ends(interval: Mapping[str, Any], scale: float = 100, digits: int = 1) -> str:
    if interval["low"] is None:
        return ""
    return f"[{scale * interval['low']:,.{digits}f}, {scale * interval['high']:,.{digits}f}]"
