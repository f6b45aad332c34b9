"""The evidence flow: every document on the left, its way through the stages, and what reached the answer."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from mdqa.records import Document, RunResult, Stage
from mdqa.scoring.losses import own_stages
from ui.views.ledger import STEERED, final_stage
from ui.views.markup import count, details, element, empty, escape, short, table, text

WIDTH = 730
"""Width in pixels that the picture aims at; many stages make it wider and it scrolls."""
LEFT = 46
TOP = 74


@dataclass(frozen=True)
class _Node:
    x: float
    y: float
    kind: str  # start, kept, dropped, answer
    hover: str
    ringed: bool = False


def evidence_flow(run: RunResult) -> str:
    """The picture (SVG, hover gives the reason) and the same as a table for those who cannot use it."""
    run = run.model_copy(update={"stages": own_stages(run.stages)})
    if not run.stages:
        return empty("No stage has finished", "The picture appears as soon as the method has worked on documents.")
    steering = any(STEERED in stage.scores for stage in run.stages)
    ring = '<span class="key towards"></span>steered towards ' if steering else ""
    legend = (
        '<p class="mdqa-legend"><span class="key kept"></span>passed on <span class="key gold"></span>gold '
        f'(holds the evidence) <span class="key dropped">×</span>dropped {ring}<span class="hint">Hover or focus a '
        "mark for the reason.</span></p>"
    )
    return element("div", legend + _svg(run) + details("The same as a table", _table(run), "mdqa-more"), "mdqa-flow")


def _svg(run: RunResult) -> str:
    documents = run.question.documents
    last = final_stage(run.stages)
    row = max(7.0, min(26.0, 900 / max(len(documents), 1)))
    column = _column_width(run)
    width, height = 2 * LEFT + column * (len(run.stages) + 1), TOP + row * len(documents) + 18
    parts = [_headers(run, column)]
    paths = [(document, _path(run, index, document, row, column, last)) for index, document in enumerate(documents)]
    for document, nodes in paths:
        parts.append(_lines(nodes, document))
    for index, (document, nodes) in enumerate(paths):
        parts.extend(_mark(node, document, row, index + 1) for node in nodes)
    label = f"Evidence flow of {len(documents)} documents through {len(run.stages)} stages"
    body = "".join(parts)
    svg = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
    return element("div", svg, "mdqa-scroll", tabindex="0")


def _column_width(run: RunResult) -> float:
    return min(max((WIDTH - 2 * LEFT) / (len(run.stages) + 1), 86.0), 170.0)


def _headers(run: RunResult, column: float) -> str:
    titles = [("Documents", f"{count(len(run.question.documents))} given")]
    for stage in run.stages:
        titles.append((stage.title, f"{len(stage.kept)} of {len(stage.documents)} kept"))
    last = final_stage(run.stages)
    reached = len(last.kept) if last else 0
    titles.append(("Reached the answer", f"{reached} of {count(len(run.question.documents))}"))
    out = []
    for index, (title, note) in enumerate(titles):
        x = LEFT + index * column
        room = column if 0 < index < len(titles) - 1 else min(column, 2 * LEFT)  # the outer ones stand near an edge
        lines = _wrapped(title, int(room / 6.6))
        for line, words in enumerate(lines, 3 - len(lines)):
            y = 14 + 13 * line
            out.append(f'<text class="head" x="{x:.0f}" y="{y}" text-anchor="middle">{escape(words)}</text>')
        out.append(f'<text class="note" x="{x:.0f}" y="{TOP - 18}" text-anchor="middle">{escape(note)}</text>')
    return "".join(out)


def _wrapped(title: str, characters: int) -> list[str]:
    """At most three lines of about ``characters`` each."""
    lines = textwrap.wrap(title, max(characters, 8), max_lines=3, placeholder="…")
    return lines or [""]


def _path(run: RunResult, index: int, document: Document, row: float, column: float, last: Stage | None) -> list[_Node]:
    name = f"{index + 1}. {short(document.title or document.text, 70)}" + (" (gold)" if document.gold else "")
    nodes = [_Node(LEFT, TOP + row * index, "start", name)]
    for position, stage in enumerate(run.stages, 1):
        if document.id not in stage.documents:
            continue
        reason = stage.reasons.get(document.id, "")
        if document.id in stage.kept:
            place, kind = stage.kept.index(document.id), "kept"
            hover = f"{name}\n{stage.title}: passed on as number {place + 1}"
        else:
            gone = [d for d in stage.documents if d not in stage.kept]
            place, kind = len(stage.kept) + gone.index(document.id), "dropped"
            hover = f"{name}\n{stage.title}: dropped"
        hover += f"\n{short(reason, 240)}" if reason else ""
        towards = stage.scores.get(STEERED, {}).get(document.id)
        ringed = towards is not None and bool(towards.value)
        nodes.append(_Node(LEFT + position * column, TOP + row * place, kind, hover, ringed))
    if last is not None and document.id in last.kept:
        place = last.kept.index(document.id)
        hover = f"{name}\nreached the answer as number {place + 1}"
        nodes.append(_Node(LEFT + (len(run.stages) + 1) * column, TOP + row * place, "answer", hover))
    return nodes


def _lines(nodes: list[_Node], document: Document) -> str:
    """From each mark back to the last one where the document was passed on (branches run side by side)."""
    out, source = [], nodes[0]
    for node in nodes[1:]:
        middle = (source.x + node.x) / 2
        kind = "gold" if document.gold else node.kind
        out.append(
            f'<path class="way {kind} {"out" if node.kind == "dropped" else ""}" d="M{source.x:.0f},{source.y:.1f} '
            f'C{middle:.0f},{source.y:.1f} {middle:.0f},{node.y:.1f} {node.x:.0f},{node.y:.1f}"/>'
        )
        if node.kind != "dropped":
            source = node
    return "".join(out)


def _mark(node: _Node, document: Document, row: float, number: int) -> str:
    gold = " gold" if document.gold else ""
    hover = f"<title>{escape(node.hover)}</title>"
    size = min(row * 0.42, 9.5)
    if node.kind == "dropped":
        s = size * 0.5
        cross = f"M{-s:.1f},{-s:.1f}L{s:.1f},{s:.1f}M{s:.1f},{-s:.1f}L{-s:.1f},{s:.1f}"
        inner = f'<circle r="{size:.1f}"/><path d="{cross}"/>'
    else:
        inner = f'<circle r="{size:.1f}"/>'
        if node.ringed:
            inner += f'<circle class="towards" r="{size + 2.4:.1f}"/>'
        if row >= 16:
            inner += f'<text dy="3.6" text-anchor="middle">{number}</text>'
    focus = ' tabindex="0"' if row >= 16 else ""
    return (
        f'<g class="mark {node.kind}{gold}"{focus} transform="translate({node.x:.0f},{node.y:.1f})">{hover}{inner}</g>'
    )


def _table(run: RunResult) -> str:
    rows = []
    for number, document in enumerate(run.question.documents, 1):
        title = escape(short(document.title or document.text, 60)) + (" ★ gold" if document.gold else "")
        rows.append([str(number), title, *(_cell(stage, document.id) for stage in run.stages)])
    return table(["#", "Document", *(stage.title for stage in run.stages)], rows)


def _cell(stage: Stage, document_id: str) -> str:
    if document_id not in stage.documents:
        return '<span class="mdqa-quiet">–</span>'
    reason = short(stage.reasons.get(document_id, ""), 120)
    if document_id in stage.kept:
        return text("span", f"✓ {stage.kept.index(document_id) + 1}", title=reason or None)
    return text("span", f"× {reason}" if reason else "× dropped", "mdqa-quiet")
