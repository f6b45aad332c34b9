"""The evidence flow: every document on the left, its way through the stages, and what reached the answer.

Of many documents the ones that matter are drawn one by one; the others are counted where they were dropped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.records import Document, RunResult, Stage
from mdqa.scoring.losses import own_stages
from ui.views.ledger import STEERED, fates, final_stage
from ui.views.markup import count, details, element, empty, escape, plural, short, table, text

WIDTH = 730
"""Width in pixels that the picture aims at; many stages make it wider and it scrolls."""
LEFT = 46
TOP = 74
ALL_DRAWN = 60
"""Documents up to which every one is drawn; of more, the gold ones and those that got furthest: DRAWN in all."""
DRAWN = 30
LISTED = 30
"""Numbers of documents that a count of the others names."""


@dataclass(frozen=True)
class _Node:
    x: float
    y: float
    kind: str  # start, kept, dropped, answer
    hover: str
    column: int
    ringed: bool = False


@dataclass(frozen=True)
class _Picture:
    """What is drawn: the run's own stages, the documents one by one (number, document), the others by stage."""

    run: RunResult
    drawn: tuple[tuple[int, Document], ...]
    others: Mapping[int | None, tuple[int, ...]]
    row: float
    column: float
    last: Stage | None

    def place(self, order: Sequence[str], document_id: str) -> int:
        """The document's row in a column, counting only those that are drawn."""
        shown = {document.id for _, document in self.drawn}
        return [other for other in order if other in shown].index(document_id)


def evidence_flow(run: RunResult) -> str:
    """The picture (SVG; the reason of a mark in words below it) and the same as a table for those who cannot use it."""
    run = run.model_copy(update={"stages": own_stages(run.stages)})
    if not run.stages:
        return empty("No stage has finished", "The picture appears as soon as the method has worked on documents.")
    picture = _picture(run)
    steering = any(STEERED in stage.scores for stage in run.stages)
    keys = [_key("kept", "passed on"), _key("gold", "gold (holds the evidence)"), _key("dropped", "dropped", "×")]
    if steering:
        keys.append(_key("towards", "steered towards"))
    hint = text("span", "Hover, tap or focus a mark for the reason; arrow keys move between marks.")
    legend = element("p", "".join(keys) + hint, "mdqa-legend")
    said = text("p", "", "mdqa-flow-said", data_said="", aria_hidden="true")  # every mark has these words as its name
    whole = details("The same as a table", _table(run), "mdqa-more")
    return element("div", legend + _svg(picture) + said + whole, "mdqa-flow")


def _key(kind: str, words: str, sign: str = "") -> str:
    return element("span", text("span", sign, f"key {kind}") + escape(words), "item")


def _picture(run: RunResult) -> _Picture:
    documents = run.question.documents
    numbered = tuple(enumerate(documents, 1))
    others: dict[int | None, list[int]] = {}
    if len(documents) > ALL_DRAWN:
        found = fates(run)
        first = sorted(found, key=lambda fate: not fate.document.gold)[:DRAWN]  # a stable sort: gold, then the furthest
        numbers = {fate.number for fate in first}
        numbered = tuple((number, document) for number, document in numbered if number in numbers)
        for fate in sorted(found, key=lambda fate: fate.number):
            if fate.number not in numbers:
                others.setdefault(None if fate.reached else fate.dropped, []).append(fate.number)
    row = max(7.0, min(26.0, 900 / max(len(numbered), 1)))
    grouped = {stage: tuple(numbers) for stage, numbers in others.items()}
    return _Picture(run, numbered, grouped, row, _column_width(run), final_stage(run.stages))


def _svg(picture: _Picture) -> str:
    run, row, column = picture.run, picture.row, picture.column
    rows = len(picture.drawn) + (1 + len(picture.others) if picture.others else 0)
    width, height = 2 * LEFT + column * (len(run.stages) + 1), TOP + row * rows
    parts = [_headers(run, column)]
    paths = [(number, document, _path(picture, number, document)) for number, document in picture.drawn]
    for _, document, nodes in paths:
        parts.append(_lines(nodes, document))
    reached = 0
    for number, document, nodes in paths:
        for node in nodes:
            parts.append(_mark(node, document, row, number, stop=reached == 0))
            reached += 1
    parts.append(_rest(picture))
    label = f"Evidence flow of {len(run.question.documents)} documents through {len(run.stages)} stages"
    body = "".join(parts)
    svg = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="group" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
    return element("div", svg, "mdqa-scroll", tabindex="0")


def _rest(picture: _Picture) -> str:
    """Documents that are not drawn, one line for each stage that dropped some."""
    out = []
    for index, (stage, numbers) in enumerate(picture.others.items()):
        y = TOP + picture.row * (len(picture.drawn) + 1 + index)
        title = f"dropped in {picture.run.stages[stage].title}" if stage is not None else "that went on further"
        end = LEFT + picture.column * (stage + 1 if stage is not None else len(picture.run.stages) + 1)
        named = ", ".join(map(str, numbers[:LISTED])) + (" …" if len(numbers) > LISTED else "")
        words = f"{plural(len(numbers), 'more document')} {title}: {named}"
        out.append(
            f'<path class="way rest" d="M{LEFT},{y:.1f}L{end:.0f},{y:.1f}"/>'
            f'<g class="mark rest" tabindex="-1" role="img" data-at="0,{y:.0f}" transform="translate({LEFT},{y:.1f})">'
            f'<title>{escape(words)}</title><rect x="-20" y="-9" width="40" height="18" rx="9"/>'
            f'<text dy="3.6" text-anchor="middle">{count(len(numbers))}</text></g>'
            f'<text class="note" x="{LEFT + 28}" y="{y - 7:.1f}">{escape(short("more, " + title, 60))}</text>'
        )
    return "".join(out)


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


def _path(picture: _Picture, number: int, document: Document) -> list[_Node]:
    run, row, column, last = picture.run, picture.row, picture.column, picture.last
    name = f"{number}. {short(document.title or document.text, 70)}" + (" (gold)" if document.gold else "")
    given = [other.id for _, other in picture.drawn]
    nodes = [_Node(LEFT, TOP + row * given.index(document.id), "start", name, 0)]
    for position, stage in enumerate(run.stages, 1):
        if document.id not in stage.documents:
            continue
        reason = stage.reasons.get(document.id, "")
        gone = [d for d in stage.documents if d not in stage.kept]
        place = picture.place([*stage.kept, *gone], document.id)
        if document.id in stage.kept:
            kind, hover = "kept", f"{name}\n{stage.title}: passed on as number {stage.kept.index(document.id) + 1}"
        else:
            kind, hover = "dropped", f"{name}\n{stage.title}: dropped"
        hover += f"\n{short(reason, 240)}" if reason else ""
        towards = stage.scores.get(STEERED, {}).get(document.id)
        ringed = towards is not None and bool(towards.value)
        nodes.append(_Node(LEFT + position * column, TOP + row * place, kind, hover, position, ringed))
    if last is not None and document.id in last.kept:
        end = len(run.stages) + 1
        hover = f"{name}\nreached the answer as number {last.kept.index(document.id) + 1}"
        y = TOP + row * picture.place(last.kept, document.id)
        nodes.append(_Node(LEFT + end * column, y, "answer", hover, end))
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


def _mark(node: _Node, document: Document, row: float, number: int, *, stop: bool) -> str:
    """A mark; one of them is the picture's stop for the Tab key (``scripts/flow.js`` moves it)."""
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
        long = ' class="long"' if number > 99 else ""
        if row >= 16:
            inner += f'<text{long} dy="3.6" text-anchor="middle">{number}</text>'
    place = f'data-at="{node.column},{node.y:.0f}" data-number="{number}"'
    return (
        f'<g class="mark {node.kind}{gold}" role="img" tabindex="{0 if stop else -1}" {place} '
        f'transform="translate({node.x:.0f},{node.y:.1f})">{hover}{inner}</g>'
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
