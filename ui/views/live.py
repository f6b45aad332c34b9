"""A run while it works: stage list with time, calls so far, scores as they come, the text being written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mdqa.records import Cost, Document, DocumentScore, RunStatus
from ui.views.ledger import signal_words
from ui.views.markup import (
    badge,
    count,
    details,
    element,
    escape,
    message,
    number,
    plural,
    seconds,
    short,
    text,
    whole_seconds,
)
from ui.views.summary import STATUS

TAIL = 600
MAX_SCORES = 24
KEPT = "What waits is carried out and kept even if you close this page; its address brings you back."


@dataclass(frozen=True)
class StageView:
    """A stage as far as it is known: ``seconds`` is None while it works."""

    name: str
    title: str
    documents: int
    kept: int | None = None
    seconds: float | None = None
    done: int = 0
    total: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment. ``place``: how many jobs are before it (0 when it works). ``preparing``: model loading."""

    run_id: str
    method_title: str
    status: RunStatus
    elapsed: float
    place: int = 0
    preparing: str = ""
    stages: tuple[StageView, ...] = ()
    cost: Cost = field(default_factory=Cost)
    scores: tuple[tuple[str, Mapping[str, DocumentScore]], ...] = ()
    writing: str = ""
    role: str = ""
    notices: tuple[str, ...] = ()
    documents: tuple[Document, ...] = field(default=(), repr=False)
    error: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "running"


def live_panel(snapshots: Sequence[Snapshot]) -> str:
    """All runs that were started together, one below the other."""
    last = max((place for place, snapshot in enumerate(snapshots) if snapshot.place > 0), default=-1)
    runs = (_one(snapshot, KEPT if place == last else "") for place, snapshot in enumerate(snapshots))
    return element("div", "".join(runs), "mdqa-live", aria_live="polite")


def _one(snapshot: Snapshot, note: str) -> str:
    if snapshot.status == "ok":
        return details(_head(snapshot), _stages(snapshot), "mdqa-live-run done")
    parts = [element("div", _head(snapshot), "mdqa-live-head")]
    if snapshot.error:
        parts.append(message(snapshot.error, "bad"))
    if snapshot.preparing:
        parts.append(message(snapshot.preparing))
    if note:
        parts.append(text("p", note, "mdqa-note"))
    parts.append(_stages(snapshot))
    if not snapshot.finished:
        parts.extend(_scores(signal, scores, snapshot.documents) for signal, scores in snapshot.scores[-1:])
        if snapshot.writing:
            tail = snapshot.writing[-TAIL:]
            title = text("span", f"{snapshot.role.replace('_', ' ')} writes", "mdqa-label")
            parts.append(element("div", title + text("pre", tail, "", dir="auto"), "mdqa-writing"))
    parts.extend(message(notice, "warn") for notice in snapshot.notices)
    place = {} if snapshot.finished else {"data_place": str(snapshot.place)}
    return element("section", "".join(parts), "mdqa-live-run", **place)


def _head(snapshot: Snapshot) -> str:
    word, kind = STATUS[snapshot.status]
    if snapshot.place > 0:
        word, kind = f"Waiting, number {snapshot.place} in line", "info"
    elif snapshot.preparing:
        word, kind = "Getting the model ready", "info"
    # Hundredths that race are no help, and every change is sent to everybody who watches.
    clock = seconds(snapshot.elapsed) if snapshot.finished else whole_seconds(snapshot.elapsed)
    labels = badge(snapshot.method_title, "method") + badge(word, kind) + text("span", clock, "mdqa-number")
    return labels if snapshot.place > 0 else labels + text("span", _cost(snapshot.cost), "mdqa-quiet")


def _stages(snapshot: Snapshot) -> str:
    if not snapshot.stages:
        return ""
    return element("ol", "".join(_stage(stage, snapshot.finished) for stage in snapshot.stages), "mdqa-stages")


def _cost(cost: Cost) -> str:
    if not cost.llm_calls:
        return "no model call yet"
    return (
        f"{plural(cost.llm_calls, 'model call')} · {count(cost.prompt_tokens)} prompt tokens · "
        f"{count(cost.completion_tokens)} written"
    )


def _stage(stage: StageView, ended: bool) -> str:
    if stage.seconds is not None:
        note = f"{stage.kept} of {plural(stage.documents, 'document')} kept · {seconds(stage.seconds)}"
        inner = text("span", "✓", "mdqa-tick", aria_hidden="true")
        return element("li", inner + text("strong", stage.title) + text("span", note, "mdqa-quiet"), "done")
    note = plural(stage.documents, "document")
    bar = ""
    if stage.total > 1:
        note = f"{stage.done} of {stage.total} calls"
        bar = element("span", f'<i style="left:0;width:{stage.done / stage.total * 100:.0f}%"></i>', "mdqa-bar")
    if ended:
        inner = text("span", "×", "mdqa-tick", aria_hidden="true")
        note = f"not finished, {note}"
        return element("li", inner + text("strong", stage.title) + text("span", note, "mdqa-quiet"), "ended")
    inner = text("span", "", "mdqa-spin", aria_hidden="true")
    return element("li", inner + text("strong", stage.title) + text("span", note, "mdqa-quiet") + bar, "working")


def _scores(signal: str, scores: Mapping[str, DocumentScore], documents: Sequence[Document]) -> str:
    numbers = {document.id: position for position, document in enumerate(documents, 1)}
    ranked = sorted(scores.items(), key=lambda item: -(item[1].value if item[1].value is not None else -1e300))
    cells = []
    for document_id, score in ranked[:MAX_SCORES]:
        shown = number(score.value) if score.value is not None else score.status.replace("_", " ")
        label = escape(str(numbers.get(document_id, short(document_id, 12))))
        cells.append(f"<span><b>{label}</b> {escape(shown)}</span>")
    rest = len(ranked) - len(cells)
    more = text("span", f"and {rest} more", "mdqa-quiet") if rest > 0 else ""
    title = text("span", f"{signal_words(signal)} so far (document, score)", "mdqa-label")
    return element("div", title + element("div", "".join(cells) + more, "mdqa-chips"), "mdqa-partial")
