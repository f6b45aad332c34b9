"""The picture of a report as a Plotly figure. Colours of text come from the style sheet, those of series from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized

import plotly.graph_objects as go

from mdqa.reports.base import Chart, Column, Report, Row, Value
from ui.views.charts import common_look, wrapped
from ui.views.heads import COLORBAR, SCALE
from ui.views.markup import plain

COLOURS = (
    *("#14857c", "#d97706", "#4f76d8", "#b4509a", "#7a8b1f", "#c2483d", "#3c9fc4", "#8a6bd1"),
    *("#a1762f", "#5f6b73"),
)
MARK = "#f2b43c"
GRID = "rgba(128, 140, 148, 0.25)"

BANDS = 3
"""Series up to which intervals are drawn around lines; with more of them they only stand in the hover."""

ERRORS = 24
"""Points up to which each has its interval."""


def report_figure(report: Report, group: str = "") -> go.Figure | None:
    """The figure of all rows or of one group's, or None where no row can be drawn."""
    chart = report.chart
    if chart is None:
        return None
    rows = [row for row in report.rows if group in ("", row.get("group"))]
    drawn = [row for row in rows if row.get(chart.x) is not None and _is_number(row.get(chart.y))]
    if chart.kind == "grid":
        drawn = [row for row in rows if None not in (row.get(chart.x), row.get(chart.y), row.get(chart.series))]
    if not drawn:
        return None
    if chart.kind == "grid":
        return _grid(report, chart, drawn)
    return _bars(report, chart, drawn) if chart.kind == "bars" else _over(report, chart, drawn)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def together(report: Report) -> bool:
    """Whether the groups of a report go into one picture and can still be told apart."""
    return len(report.groups) <= (BANDS if report.chart and report.chart.series in ("", "group") else 1)


def _series(chart: Chart, rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each colour; where rows of several groups are drawn, these are told apart too."""
    several = len({row.get("group") for row in rows}) > 1
    keys = list(dict.fromkeys(key for key in (chart.series, "group" if several else "") if key))
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(", ".join(str(row.get(key) or "") for key in keys), []).append(row)
    return found


class _Axis:
    """How numbers of a key are shown: shares in percent, others as they are."""

    def __init__(self, report: Report, key: str) -> None:
        column = next((column for column in report.columns if column.key == key), Column(key=key, title=key))
        self.scale = 100.0 if column.unit == "%" else 1.0
        self.digits = column.digits
        self.title = plain(report.heading(key))

    def value(self, row: Mapping[str, object], key: str) -> float | None:
        found = row.get(key)
        return round(self.scale * found, 6) if isinstance(found, int | float) else None

    def values(self, rows: Sequence[Row], key: str) -> list[float | None]:
        return [self.value(row, key) for row in rows]


def _interval(axis: _Axis, chart: Chart, row: Row) -> str:
    low, high = (axis.value(row, key) for key in (chart.low, chart.high))
    return "" if low is None or high is None else f" [{low:,.{axis.digits}f}, {high:,.{axis.digits}f}]"


def _spread(axis: _Axis, chart: Chart, rows: Sequence[Row]) -> dict[str, object] | None:
    """Error bars: how far the interval reaches above and below each value."""
    ends = [(axis.value(row, chart.y), axis.value(row, chart.low), axis.value(row, chart.high)) for row in rows]
    if not any(low is not None for _, low, _ in ends):
        return None
    up = [max(high - value, 0.0) if value is not None and high is not None else 0.0 for value, _, high in ends]
    down = [max(value - low, 0.0) if value is not None and low is not None else 0.0 for value, low, _ in ends]
    return {"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 3, "color": "#7d8a92"}


def _bars(report: Report, chart: Chart, rows: Sequence[Row]) -> go.Figure:
    """Bars to the right, one row per name: long names stay readable on a narrow page."""
    axis, series = _Axis(report, chart.y), _series(chart, rows)
    figure, known = go.Figure(), _names(row[chart.x] for row in rows)
    for (name, own), colour in zip(series.items(), _colours(len(series)), strict=True):
        names = [known[row[chart.x]] for row in own]
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=plain(name, 60),
                x=axis.values(own, chart.y),
                y=[wrapped(name) for name in names],
                error_x=_spread(axis, chart, own),
                marker={"color": colour},
                customdata=[[name, _interval(axis, chart, row)] for name, row in zip(names, own, strict=True)],
                hovertemplate=f"%{{customdata[0]}}<br>%{{x:,.{axis.digits}f}}%{{customdata[1]}}<extra></extra>",
            )
        )
    categories = len(dict.fromkeys(str(row[chart.x]) for row in rows))
    height = min(max(categories * (18 * len(series) + 16) + 90, 200), 900)
    common_look(figure, height, _legend(series))
    figure.update_layout(bargap=0.3, bargroupgap=0.08)
    figure.update_xaxes(title=axis.title, gridcolor=GRID, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False, ticklabelstandoff=6)
    return figure


def _names(values: Iterable[Value]) -> dict[Value, str]:
    """What each value is called: shortened, and numbered where others are called the same then."""
    found: dict[Value, str] = {}
    for value in dict.fromkeys(values):
        name, number = plain(value, 60), 1
        while name in found.values():
            number += 1
            name = f"{plain(value, 54)} ({number})"
        found[value] = name
    return found


def _over(report: Report, chart: Chart, rows: Sequence[Row]) -> go.Figure:
    """Lines or points over a number."""
    axis, across, series = _Axis(report, chart.y), _Axis(report, chart.x), _series(chart, rows)
    figure = go.Figure()
    for (name, own), colour in zip(series.items(), _colours(len(series)), strict=True):
        if chart.kind == "lines" and len(series) <= BANDS:
            _band(figure, chart, axis, own, colour)
        marked = [bool(chart.mark and row.get(chart.mark)) for row in own]
        figure.add_trace(
            go.Scatter(
                name=plain(name, 60),
                x=across.values(own, chart.x),
                y=axis.values(own, chart.y),
                mode="lines+markers" if chart.kind == "lines" else "markers",
                line={"color": colour, "width": 2},
                error_y=_spread(axis, chart, own) if chart.kind == "points" and len(own) <= ERRORS else None,
                marker={
                    "color": colour,
                    "opacity": 1,
                    "size": [13 if mark else 6 for mark in marked],
                    "line": {"color": MARK, "width": [2.5 if mark else 0 for mark in marked]},
                    "symbol": ["diamond" if mark else "circle" for mark in marked],
                },
                customdata=[[plain(name, 60), _interval(axis, chart, row)] for row in own],
                hovertemplate=(
                    f"%{{customdata[0]}}<br>{across.title} %{{x:,}}<br>%{{y:,.{axis.digits}f}}"
                    "%{customdata[1]}<extra></extra>"
                ),
            )
        )
    common_look(figure, 380, _legend(series))
    figure.update_xaxes(title=across.title, showgrid=False)
    figure.update_yaxes(title=axis.title, gridcolor=GRID, automargin=True)
    return figure


def _band(figure: go.Figure, chart: Chart, axis: _Axis, rows: Sequence[Row], colour: str) -> None:
    known = [row for row in rows if axis.value(row, chart.low) is not None and axis.value(row, chart.high) is not None]
    if len(known) < 2:
        return
    x = [row[chart.x] for row in known]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_trace(
        go.Scatter(
            x=[*x, *x[::-1]],
            y=[*axis.values(known, chart.high), *axis.values(known[::-1], chart.low)],
            fill="toself",
            fillcolor=f"rgba({red}, {green}, {blue}, 0.15)",
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _grid(report: Report, chart: Chart, rows: Sequence[Row]) -> go.Figure:
    axis = _Axis(report, chart.series)
    across, down = (list(dict.fromkeys(row[key] for row in rows)) for key in (chart.x, chart.y))
    cells = {(row[chart.x], row[chart.y]): axis.value(row, chart.series) for row in rows}
    figure = go.Figure(
        go.Heatmap(
            z=[[cells.get((x, y)) for x in across] for y in down],
            x=[plain(x) for x in across],
            y=[plain(y) for y in down],
            colorscale=SCALE,
            colorbar={**COLORBAR, "title": {"text": axis.title}},
            hovertemplate=f"%{{y}}, %{{x}}<br>%{{z:,.{axis.digits}f}}<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    common_look(figure, min(max(30 * len(down) + 120, 220), 640))
    figure.update_xaxes(title=plain(report.heading(chart.x)), type="category", showgrid=False)
    figure.update_yaxes(
        title=plain(report.heading(chart.y)), type="category", autorange="reversed", automargin=True, showgrid=False
    )
    return figure


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def _legend(series: Sized) -> int:
    """Names in the legend: a single series needs none."""
    return len(series) if len(series) > 1 else 0
