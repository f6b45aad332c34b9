"""A position sweep as a page shows it: a curve per method and a row per run."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from mdqa.records import Question
from mdqa.studies.position_sweep import MEASURES, Point, PositionSweep
from ui.views.figures import COLOURS
from ui.views.ledger import signal_words
from ui.views.markup import badge, count, details, element, escape, message, number, plain, seconds, short, table, text
from ui.views.studies import chart_layout, document_name, run_link, state_cell, tally_line

ONE_QUESTION = (
    "One run per point: a single question has no interval, and what it shows may be chance. For many questions use "
    "python -m mdqa evaluate --positions, which has them."
)

DASHES = ("solid", "dash", "dot", "dashdot")

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")


def sweep_findings(found: PositionSweep, question: Question, titles: Mapping[str, str], document: str) -> str:
    """What was moved, and at which positions each method was right."""
    names = " · ".join(document_name(question.documents, name) for name in found.moved)
    what = "the gold document" + ("s" if len(found.moved) > 1 else "") if not document else "the chosen document"
    lines = [text("p", f"Moved: {what}, {names}.", "mdqa-note", dir="auto")]
    for method in found.methods:
        done = [point for point in found.curve(method) if point.outcome.correct is not None]
        if done:
            right = [str(point.position) for point in done if point.outcome.correct]
            places = "at no position" if not right else "at position " + ", ".join(right)
            every = "at every position" if len(right) == len(done) and len(done) > 1 else places
            words = f"{titles.get(method, method)} is right {every} ({len(right)} of {len(done)})."
            lines.append(message(words, "good" if len(right) == len(done) else "info"))
    return "".join(lines) + tally_line(found.tally)


def measure_choices(found: PositionSweep) -> list[tuple[str, str]]:
    """Words and name of what can be drawn."""
    return [(MEASURES[name], name) for name in found.measures()]


def sweep_figure(found: PositionSweep, measure: str, titles: Mapping[str, str]) -> go.Figure | None:
    """The measure over the position, a curve per method; None where no run has it."""
    if measure not in found.measures():
        return None
    figure = go.Figure()
    for index, method in enumerate(found.methods):
        points = [(p.position, p.value(measure), p) for p in found.curve(method)]
        known = [(position, value, point) for position, value, point in points if value is not None]
        colour = COLOURS[index % len(COLOURS)]
        figure.add_trace(
            go.Scatter(
                name=plain(titles.get(method, method), 40),
                x=[position for position, _, _ in known],
                y=[round(value, 5) for _, value, _ in known],
                customdata=[[plain(point.outcome.answer or "no answer", 80)] for _, _, point in known],
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": DASHES[index % len(DASHES)]},  # curves may lie on each other
                marker={"color": colour, "size": max(15 - 3 * index, 7), "symbol": SYMBOLS[index % len(SYMBOLS)]},
                hovertemplate="%{fullData.name}<br>position %{x}<br>%{y:.4g}<br>%{customdata[0]}<extra></extra>",
            )
        )
    chart_layout(
        figure, 320, "position of the moved documents (1 is first)", plain(MEASURES[measure], 60), len(found.methods)
    )
    if measure in ("sub_em", "f1"):
        figure.update_yaxes(range=[-0.06, 1.06])
    if measure == "rank":
        figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(dtick=1 if max(found.positions, default=1) <= 24 else None)
    return figure


def sweep_table(found: PositionSweep, base: str, titles: Mapping[str, str]) -> str:
    """A row per run, method by method."""
    answers = any(point.outcome.correct is not None for point in found.points)
    headers = [
        "Method",
        "Position",
        "Run",
        "Answer",
        *(["Right", "F1"] if answers else []),
        "Kept, by stage",
        "Attention",
    ]
    headers += ["Tokens computed / sent", "Time"]
    rows = [
        [
            escape(titles.get(point.method, point.method)),
            text("span", str(point.position), "mdqa-number") + (badge("as given") if point.same else ""),
            run_link(point.outcome, base),
            *_outcome(point, answers),
        ]
        for point in found.points
    ]
    return table(headers, rows, "study")


def _outcome(point: Point, answers: bool) -> list[str]:
    outcome = point.outcome
    if outcome.state != "ok":
        return [state_cell(outcome), *(["–"] * (6 if answers else 4))]
    cells = [text("span", f"“{short(outcome.answer, 100)}”" if outcome.answer else "no answer", "said", dir="auto")]
    if answers:
        right = "–" if outcome.correct is None else badge("✓", "good") if outcome.correct else badge("×", "bad")
        cells += [right, text("span", number(outcome.f1, 2), "mdqa-number")]
    cost = outcome.cost
    return [
        *cells,
        _stages(point),
        text("span", number(point.attention, 4), "mdqa-number"),
        text("span", f"{count(cost.prefill_tokens_computed)} / {count(cost.prompt_tokens)}", "mdqa-number"),
        text("span", seconds(cost.seconds), "mdqa-number"),
    ]


def _stages(point: Point) -> str:
    if not point.stages:
        return text("span", "no stages", "mdqa-quiet")
    last = point.stages[-1]
    items = "".join(
        text(
            "li",
            f"{stage.title}: {stage.kept} of {stage.came} kept"
            + (
                f", rank {stage.rank} of {stage.of} by {signal_words(stage.signal)} ({number(stage.score)})"
                if stage.rank is not None
                else ""
            ),
        )
        for stage in point.stages
    )
    words = "reached the answer" if last.kept else "did not reach the answer"
    return details(escape(words), element("ul", items, "mdqa-shifts"), "mdqa-raw")
