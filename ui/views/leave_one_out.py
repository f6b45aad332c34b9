"""Leave one out as a page shows it: a row per document with what its absence changed, and effect over attention."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from mdqa.records import Document, RunResult
from mdqa.studies.leave_one_out import ATTENTION, Correlation, LeaveOneOut, Predictor, Row, Shift
from ui.views.heads import ACCENT, GOLD
from ui.views.ledger import signal_words
from ui.views.markup import badge, details, element, escape, message, number, plain, plural, short, table, text
from ui.views.studies import (
    chart_layout,
    correct_marks,
    document_name,
    run_link,
    signed,
    state_cell,
    tally_line,
)

EFFECT_WORDS = {
    "answer": "Answer changed (1 − F1 of both)",
    "f1": "F1 lost (below 0: it misled)",
}
"""The effects, short enough for an axis on a narrow page."""

NOISE = 1e-6
"""Changes of a score up to this are no change."""

NAMED = 6
"""Documents that a sentence names; of more it says how many."""


def findings(found: LeaveOneOut, run: RunResult) -> str:
    """What came out, in sentences: without which documents the answer changes, is right, is wrong."""
    compared = [row for row in found.rows if row.same is not None]
    if not compared:
        return tally_line(found.tally)
    changed = [row for row in compared if not row.same]
    lines = []
    if changed:
        lines.append(f"The answer changes without {_named(changed)}.")
    else:
        lines.append(f"The answer stays the same without any one of {plural(len(compared), 'document')}.")
    if found.base.correct is False and (better := [row for row in compared if row.without.correct]):
        lines.append(f"It becomes right without {_named(better)}: this is what misled the model.")
    if found.base.correct and (worse := [row for row in compared if row.without.correct is False]):
        lines.append(f"It becomes wrong without {_named(worse)}: the right answer rests on this.")
    for words, what in (("route", "route_changed"), ("judge's side", "judge_changed")):
        other = [row for row in compared if getattr(row, what)]
        if other:
            lines.append(f"The {words} changes without {_named(other)}.")
    kind = "good" if any(line.startswith("It becomes right") for line in lines) else "info"
    return (
        message(" ".join(lines), kind) + tally_line(found.tally) + text("p", _answer_line(run), "mdqa-note", dir="auto")
    )


def _answer_line(run: RunResult) -> str:
    return f"With all {plural(len(run.question.documents), 'document')}: “{short(run.answer, 160)}”"


def _named(rows: Sequence[Row]) -> str:
    if len(rows) > NAMED:
        return f"each of {len(rows)} documents (the table has them)"
    names = [f"document {row.number}" + (" ★" if row.document.gold else "") for row in rows]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def change_table(found: LeaveOneOut, base: RunResult) -> str:
    """A row per document, in the order in which they were given."""
    most = max((row.attention for row in found.rows if row.attention is not None), default=0.0)
    headers = ["Left out", "Run"]
    headers += ["Attention"] if found.mass is not None else []
    headers += ["Answer without it", "Right", "F1"] if base.question.answers else ["Answer without it"]
    headers += ["Others' scores"]
    rows = []
    for row in found.rows:
        cells = [_document(row), run_link(row.without, base.id)]
        cells += [_attention(row, most)] if found.mass is not None else []
        rows.append([*cells, *_compared(row, found, base)])
    return table(headers, rows, "study")


def _document(row: Row) -> str:
    star = text("span", " ★", "star", title="gold") if row.document.gold else ""
    title = short(row.document.title or row.document.text, 60)
    return element("span", escape(f"{row.number}. {title}") + star, "name", dir="auto")


def _attention(row: Row, most: float) -> str:
    if row.attention is None:
        return text("span", "not looked at", "mdqa-quiet")
    share = 100 * row.attention / most if most > 0 else 0.0
    bar = element("span", f'<i style="left:0;width:{share:.1f}%"></i>', "mdqa-bar", aria_hidden="true")
    return element("span", bar + text("span", number(row.attention, 4), "mdqa-number"), "mass")


def _compared(row: Row, found: LeaveOneOut, base: RunResult) -> list[str]:
    """Answer, right or wrong, F1 and the others' scores; of a member without an answer its state."""
    with_answers = bool(base.question.answers)
    if row.same is None:
        return [state_cell(row.without), *(["–", "–"] if with_answers else []), "–"]
    marks = [badge("same answer") if row.same else badge("changed", "warn")]
    if row.route_changed:
        marks.append(badge(f"route: {found.base.route or '–'} → {row.without.route or '–'}", "warn"))
    if row.judge_changed:
        marks.append(badge(f"judge: {found.base.judge or '–'} → {row.without.judge or '–'}", "warn"))
    said = "" if row.same else text("span", f"“{short(row.without.answer, 120) or '–'}”", "said", dir="auto")
    cells = [element("span", "".join(marks), "mdqa-badges") + said]
    if with_answers:
        change = row.f1_change
        cells += [
            correct_marks(found.base.correct, row.without.correct),
            text("span", "–" if change is None else signed(change), "mdqa-number"),
        ]
    return [*cells, _shifts(row, base)]


def _shifts(row: Row, base: RunResult) -> str:
    """The headline signal, and all of them on demand."""
    known = [shift for shift in row.shifts if shift.n]
    if not known:
        return text("span", "no scores", "mdqa-quiet")
    head = known[0]
    words = f"up to {number(head.largest)}, {signal_words(head.signal)}" if _differs(head) else "unchanged"
    items = "".join(text("li", _shift_words(shift, base)) for shift in known)
    return details(escape(words), element("ul", items, "mdqa-shifts"), "mdqa-raw")


def _differs(shift: Shift) -> bool:
    """Whether a change is one, and not what the order of additions makes of floating point."""
    return shift.largest is not None and shift.largest > NOISE


def _shift_words(shift: Shift, base: RunResult) -> str:
    lost = f", {plural(shift.lost, 'score')} came or went" if shift.lost else ""
    about = f"{shift.title}, {signal_words(shift.signal)}: "
    if not _differs(shift):
        return f"{about}unchanged for {plural(shift.n, 'document')}{lost}"
    ids = base.question.document_ids
    place = f" (document {ids.index(shift.document) + 1})" if shift.document in ids else ""
    return (
        f"{about}at most {number(shift.largest)}{place}, mean {number(shift.mean, 4)} over "
        f"{plural(shift.n, 'document')}{lost}"
    )


def predictor_words(found: LeaveOneOut, predictor: Predictor) -> str:
    """What a predictor is, for people."""
    if predictor.name != ATTENTION:
        return f"{predictor.stage}: {signal_words(predictor.signal)}"
    heads = found.mass.heads if found.mass is not None else 0
    return f"Attention mass ({predictor.stage}, {plural(heads, 'retrieval head') if heads else 'mean of all heads'})"


def predictor_choices(found: LeaveOneOut) -> list[tuple[str, str]]:
    """Words and name of every predictor, attention first."""
    return [(predictor_words(found, predictor), predictor.name) for predictor in found.predictors]


def scatter(
    found: LeaveOneOut, documents: Sequence[Document], predictor: str, effect: str = "answer"
) -> go.Figure | None:
    """The effect of leaving a document out over what it got before; None where no document has both."""
    chosen = next((known for known in found.predictors if known.name == predictor), None)
    rows = [
        row for row in found.rows if chosen is not None and effect in row.effects and row.document.id in chosen.values
    ]
    if chosen is None or not rows:
        return None
    figure = go.Figure(
        go.Scatter(
            x=[round(chosen.values[row.document.id], 6) for row in rows],
            y=[round(row.effects[effect], 4) for row in rows],
            text=[str(row.number) for row in rows],
            customdata=[
                [document_name(documents, row.document.id), plain(row.without.answer or "no answer", 80)]
                for row in rows
            ],
            mode="markers+text",
            textposition="top center",
            marker={
                "size": 11,
                "color": [GOLD if row.document.gold else ACCENT for row in rows],
                "symbol": ["circle-open" if row.same else "circle" for row in rows],
                "line": {"width": 2},
            },
            hovertemplate="%{customdata[0]}<br>before: %{x:.4g}<br>effect: %{y:.2f}<br>without it: %{customdata[1]}"
            "<extra></extra>",
        )
    )
    title = "Attention mass" if chosen.name == ATTENTION else plain(signal_words(chosen.signal), 40)
    chart_layout(figure, 320, f"{title} ({plain(chosen.stage, 24)})", EFFECT_WORDS[effect])
    figure.update_yaxes(range=[-0.06, 1.14] if effect == "answer" else [-1.14, 1.14])
    return figure


LEGEND = (
    "One point per document, with its number. Filled: the answer changes without it; hollow: it stays. Gold documents "
    "have the gold colour."
)


def correlation_line(found: LeaveOneOut, predictor: str, effect: str = "answer") -> str:
    """The rank correlation of the picture, or why there is none."""
    if not any(known.name == predictor for known in found.predictors):
        return message(
            "This run did not look at attention, and no score of it can be set against the effect."
            if not found.predictors
            else "This run did not look at attention; choose one of its scores.",
        )
    return text("p", _correlation_words(found.correlation(predictor, effect)) + " " + LEGEND, "mdqa-note")


def _correlation_words(found: Correlation) -> str:
    if found.rho is None:
        return f"Rank correlation undefined (n = {found.n}): {found.why}."
    return (
        f"Spearman's rank correlation {signed(found.rho)} over n = {found.n} documents of this one question; it says "
        "nothing about other questions."
    )


def correlation_table(found: LeaveOneOut) -> str:
    """Every predictor against every effect, on demand; empty without predictors."""
    if not found.predictors:
        return ""
    effects = list(dict.fromkeys(correlation.effect for correlation in found.correlations))
    rows = []
    for predictor in found.predictors:
        cells = [escape(predictor_words(found, predictor))]
        for effect in effects:
            correlation = found.correlation(predictor.name, effect)
            shown = "undefined" if correlation.rho is None else signed(correlation.rho)
            cells.append(text("span", f"{shown} (n = {correlation.n})", "mdqa-number", title=correlation.why or None))
        rows.append(cells)
    headers = ["Number of a document", *("Answer changed" if effect == "answer" else "F1 lost" for effect in effects)]
    return details("All rank correlations", table(headers, rows, "study"), "mdqa-more")
