"""Where each document ends in the final order of several runs: lines from one to the next, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mdqa.records import Document, RunResult
from ui.views.charts import common_look, wrapped
from ui.views.compare import Side
from ui.views.figures import GRID
from ui.views.ledger import fates
from ui.views.markup import badge, element, escape, number, plain, plural, short, table, text

AS_GIVEN = 30
"""Documents up to which the picture begins with the order in which they were given."""

NUMBERED = 30
"""Rows up to which a document's number stands at its marks."""

TALL = 16
"""Documents from which on the table scrolls in a box of its own."""

LOST, KEPT, GOLD = "#9aa5ac", "#2a9d93", "#d99a1e"


@dataclass(frozen=True)
class Standing:
    """What became of a document in a run: its rank from 1, or the stage that dropped it; ``place`` counts all."""

    rank: int | None
    place: int
    stage: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Ranked:
    """A document with its number as it was given, and one standing per run: None where the run did not have it."""

    document: Document
    number: int
    standings: tuple[Standing | None, ...]

    @property
    def best(self) -> int | None:
        """The best rank in any run."""
        return min((s.rank for s in self.standings if s is not None and s.rank is not None), default=None)


def standings(run: RunResult) -> dict[str, Standing]:
    """The final order of a run's documents: those that reached the answer, then the others by how far they got.

    Empty for a run without a ledger.
    """
    found: dict[str, Standing] = {}
    for place, fate in enumerate(fates(run) if run.stages else (), 1):
        if fate.reached:
            found[fate.document.id] = Standing(1 + sum(s.rank is not None for s in found.values()), place)
            continue
        stage = run.stages[fate.dropped].title if fate.dropped is not None else ""
        found[fate.document.id] = Standing(None, place, stage, fate.reason)
    return found


def ranked(sides: Sequence[Side]) -> list[Ranked]:
    """All documents of the runs, those with the best rank first, then those that no run kept."""
    known: dict[str, tuple[int, Document]] = {}
    for side in sides:
        for place, document in enumerate(side.run.question.documents, 1):
            known.setdefault(document.id, (place, document))
    found = [standings(side.run) for side in sides]
    rows = [Ranked(document, place, tuple(own.get(name) for own in found)) for name, (place, document) in known.items()]
    return sorted(rows, key=lambda row: (row.best is None, row.best or 0, row.number))


def rank_figure(sides: Sequence[Side], rows: Sequence[Ranked]) -> go.Figure | None:
    """Documents as lines between the final orders; below the line those that were dropped. None without two orders."""
    if len(rows) < 2 or sum(any(row.standings[i] for row in rows) for i in range(len(sides))) < 2:
        return None
    given = len(rows) <= AS_GIVEN
    kept = max([row.best or 0 for row in rows] + [s.rank or 0 for row in rows for s in row.standings if s is not None])
    deepest = max(kept, len(rows) if given else 0)
    zone = max(3.0, 0.3 * deepest)
    places = {row.document.id: deepest + 1.6 + zone * _share(row, rows) for row in rows}
    names = (["As given"] if given else []) + [side.label for side in sides]
    figure = go.Figure()
    for words, colour, width, chosen in (
        ("dropped everywhere", LOST, 1.0, [r for r in rows if r.best is None and not r.document.gold]),
        ("reached an answer", KEPT, 1.8, [r for r in rows if r.best is not None and not r.document.gold]),
        ("★ gold", GOLD, 3.2, [r for r in rows if r.document.gold]),
    ):
        if chosen:
            lines = [_line(row, sides, given=given, low=places[row.document.id]) for row in chosen]
            figure.add_trace(_trace(words, colour, width, lines, numbered=len(rows) <= NUMBERED))
    _frame(figure, names, deepest, zone)
    return figure


@dataclass(frozen=True)
class _Line:
    """A document's points, from column to column; ``y`` is None where the run did not have it."""

    number: int
    y: list[float | None]
    dropped: list[bool]
    hover: list[str]


def _share(row: Ranked, rows: Sequence[Ranked]) -> float:
    """Where a document lies in the zone of the dropped ones, 0 to 1: in the order in which they were given."""
    numbers = sorted(other.number for other in rows)
    return numbers.index(row.number) / max(len(numbers) - 1, 1)


def _line(row: Ranked, sides: Sequence[Side], *, given: bool, low: float) -> _Line:
    title = (
        f"{row.number}. {plain(row.document.title or row.document.text, 60)}{' ★ gold' if row.document.gold else ''}"
    )
    y: list[float | None] = [float(row.number)] if given else []
    hover = [f"{title}<br>given as number {row.number}"] if given else []
    dropped = [False] if given else []
    for side, standing in zip(sides, row.standings, strict=True):
        y.append(None if standing is None else float(standing.rank) if standing.rank is not None else low)
        hover.append(f"{title}<br>{plain(side.label, 40)}: {plain(_words(standing), 140)}")
        dropped.append(standing is not None and standing.rank is None)
    return _Line(row.number, y, dropped, hover)


def _trace(words: str, colour: str, width: float, lines: Sequence[_Line], *, numbered: bool) -> go.Scatter:
    """Lines of one kind as one trace, with gaps between them: 200 documents stay quick to draw."""
    x: list[float | None] = []
    y: list[float | None] = []
    hover, symbols, marks = [], [], []
    for line in lines:
        x += [*map(float, range(len(line.y))), None]
        y += [*line.y, None]
        hover += [*line.hover, ""]
        symbols += [*("x-thin-open" if gone else "circle" for gone in line.dropped), "circle"]
        marks += [*("" if gone else str(line.number) for gone in line.dropped), ""]
    return go.Scatter(
        name=words,
        x=x,
        y=y,
        mode="lines+markers+text" if numbered else "lines+markers",
        text=marks if numbered else None,
        textposition="middle center",
        textfont={"size": 10},
        line={"color": colour, "width": width},
        opacity=1,
        marker={
            "color": colour,
            "size": 17 if numbered else 6,
            "symbol": symbols,
            "line": {"color": colour, "width": 1.6},
        },
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
        connectgaps=False,
    )


def _frame(figure: go.Figure, names: Sequence[str], deepest: int, zone: float) -> None:
    step = max(1, round(deepest / 12))
    ticks = list(range(1, deepest + 1, step))
    figure.add_hline(y=deepest + 0.9, line={"color": LOST, "width": 1, "dash": "dot"})
    figure.add_annotation(
        x=0,
        xref="paper",
        y=deepest + 1.0,
        yanchor="top",
        xanchor="left",
        text="dropped",
        showarrow=False,
        font={"size": 11},
    )
    common_look(figure, round(min(max(21 * (deepest + zone) + 130, 300), 900)))
    figure.update_layout(margin={"l": 46, "r": 16, "t": 12, "b": 60}, showlegend=True, legend_y=1.01)
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=[wrapped(plain(name, 42), 11) for name in names],
        range=[-0.35, len(names) - 0.65],
        tickangle=0,
        tickfont={"size": 10.5},
        showgrid=False,
    )
    figure.update_yaxes(
        title="rank in the final order",
        tickvals=ticks,
        range=[deepest + zone + 2.2, 0.2],
        gridcolor=GRID,
    )


def _words(standing: Standing | None) -> str:
    if standing is None:
        return "not among its documents"
    if standing.rank is not None:
        return f"rank {standing.rank}"
    where = f"dropped at {standing.stage}" if standing.stage else "dropped"
    return f"{where}: {standing.reason}" if standing.reason else where


def rank_table(sides: Sequence[Side], rows: Sequence[Ranked]) -> str:
    """Every document with its rank in each run, or the stage that dropped it; changes are against the first run."""
    if not rows:
        return text("p", "These runs were asked without documents.", "mdqa-note")
    cells = []
    for row in rows:
        title = text("span", short(row.document.title or row.document.text, 70), dir="auto")
        gold = " " + badge("★ gold", "gold") if row.document.gold else ""
        first = row.standings[0]
        others = (_cell(one, first if place else None) for place, one in enumerate(row.standings))
        cells.append([str(row.number), title + gold, *others])
    note = text(
        "p",
        f"{plural(len(rows), 'document')}, best ranks first. ▲ and ▼: places up and down against the first run.",
        "mdqa-note",
    )
    grid = table(["#", "Document", *(side.label for side in sides)], cells, "ranks")
    return note + (element("div", grid, "mdqa-scroll tall framed", tabindex="0") if len(rows) > TALL else grid)


def _cell(standing: Standing | None, first: Standing | None) -> str:
    if standing is None:
        return text("span", "not given", "mdqa-quiet")
    if standing.rank is None:
        words = f"× {short(standing.stage, 40)}" if standing.stage else "× dropped"
        return text("span", words, "mdqa-quiet", title=standing.reason or None)
    moved = ""
    if first is not None and first.rank is not None and first.rank != standing.rank:
        by = first.rank - standing.rank
        moved = " " + text("span", f"{'▲' if by > 0 else '▼'}{number(abs(by), 0)}", "mdqa-quiet")
    elif first is not None and first.rank is None:
        moved = " " + text("span", "new", "mdqa-quiet")
    return escape(f"✓ {standing.rank}") + moved
