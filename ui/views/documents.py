"""Document cards: text with its key sentences or token heat, every signal with number and rank, and its fate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mdqa.records import AttentionMap, Document, DocumentScore, Head, RunResult, Stage
from mdqa.scoring.losses import own_stages
from mdqa.trace import ModelCall
from ui.views.ledger import STATUS_WORDS, Fate, duplicates, fates, rank_of, signal_words
from ui.views.markup import badge, count, details, element, empty, escape, number, short, text

OPEN_CARDS = 6
CARDS = 30
"""Cards on one page: two hundred at once would be several megabytes."""

MAX_TEXT = 6_000
MAX_RAW = 4_000
HEAT_LEVELS = 9


def document_cards(
    run: RunResult,
    calls: Mapping[int, ModelCall],
    heat: Mapping[str, str] | None = None,
    more: str = "",
    *,
    first: int = 0,
) -> str:
    """A card per document in the method's final order, :data:`CARDS` of them from number ``first`` (from 0).

    ``heat`` gives ready HTML instead of a document's text.
    """
    if not run.question.documents:
        return empty("No documents", "This run has none to show.")
    repeated = duplicates(run.question.documents)
    keys = key_sentences(run)
    first = min(max(first, 0), len(run.question.documents) - 1)
    cards = []
    for position, fate in enumerate(fates(run)[first : first + CARDS], first + 1):
        body = (heat or {}).get(fate.document.id) or marked_text(fate.document, keys.get(fate.document.id, ()))
        inner = _text_block(body) + journey(run, fate) + _signals(run, fate.document.id, calls)
        opened = position <= first + OPEN_CARDS
        head, anchor = _head(run, fate, position, repeated), card_anchor(fate.number)
        cards.append(details(head, inner, _card_classes(fate), opened=opened, anchor=anchor))
    note = text("p", more, "mdqa-note") if more else ""
    return note + element("div", "".join(cards), "mdqa-cards")


def card_page(run: RunResult, number: object) -> int:
    """The first card (from 0) of the page with the document that was given as this number; 0 for any other value."""
    for position, fate in enumerate(fates(run)):
        if fate.number == number:
            return position // CARDS * CARDS
    return 0


def card_anchor(number: int) -> str:
    """The id of the card of the document that was given as this number."""
    return f"mdqa-document-{number}"


def card_link(number: int, words: str, classes: str = "", title: str = "") -> str:
    """A link that opens a document's card, wherever on the page it stands (see ``page.js``)."""
    anchor = card_anchor(number)
    return text("a", words, classes, href=f"#{anchor}", data_card=anchor, title=title or None, dir="auto")


def _card_classes(fate: Fate) -> str:
    return "mdqa-card" + (" reached" if fate.reached else " gone") + (" gold" if fate.document.gold else "")


def _head(run: RunResult, fate: Fate, position: int, repeated: Mapping[str, int]) -> str:
    document = fate.document
    labels = [badge("★ gold", "gold")] if document.gold else []
    if document.id in repeated:
        labels.append(badge(f"same text as {repeated[document.id]}", "warn"))
    labels.append(_fate_badge(run, fate))
    title = text("span", document.title or short(document.text, 60), "mdqa-card-title", dir="auto")
    place = text("span", position, "mdqa-place", title=f"place {position} in the final order")
    given = text("span", f"given as {fate.number}", "mdqa-quiet")
    reason = text("span", short(fate.reason, 220), "mdqa-reason") if fate.reason else ""
    row = element("span", place + title + given + element("span", "".join(labels), "mdqa-badges"), "mdqa-card-head")
    return row + reason


def _fate_badge(run: RunResult, fate: Fate) -> str:
    if fate.reached:
        return badge("✓ reached the answer", "good")
    if fate.dropped is not None:
        return badge(f"× dropped in {run.stages[fate.dropped].title}", "plain")
    if fate.last_kept is None:
        return badge("not worked on", "plain")
    return badge("not passed on", "plain")


def journey(run: RunResult, fate: Fate) -> str:
    """The document's place at every stage and how it moved; empty where no stage worked on it."""
    steps = [text("li", f"given as {fate.number}")]
    for stage in own_stages(run.stages):
        if fate.document.id in stage.documents:
            steps.append(_step(stage, fate.document.id))
    if len(steps) == 1:
        return ""
    return element("ol", "".join(steps), "mdqa-journey", aria_label="Place at every stage")


def _step(stage: Stage, document_id: str) -> str:
    came = stage.documents.index(document_id) + 1
    title = text("span", stage.title, "mdqa-quiet")
    if document_id not in stage.kept:
        words = f"came in as number {came} of {count(len(stage.documents))} and was dropped"
        return element("li", title + text("strong", f" {came} → ×"), "out", title=words)
    place = stage.kept.index(document_id) + 1
    moved = place_change(stage, document_id)
    arrow = f" ▲{moved}" if moved > 0 else f" ▼{-moved}" if moved < 0 else ""
    words = (
        f"came in as number {came} of {count(len(stage.documents))}, passed on as number {place} of "
        f"{count(len(stage.kept))}; among those passed on it "
        + (f"moved {'up' if moved > 0 else 'down'} by {abs(moved)}" if moved else "kept its place")
    )
    change = text("span", arrow, "up" if moved > 0 else "down") if arrow else ""
    return element("li", title + text("strong", f" {came} → {place}") + change, title=words)


def place_change(stage: Stage, document_id: str) -> int:
    """By how many places a kept document moved up among the documents that the stage kept; negative for down."""
    kept = set(stage.kept)
    before = [other for other in stage.documents if other in kept]
    return before.index(document_id) - stage.kept.index(document_id)


def _text_block(body: str) -> str:
    return element("div", body, "mdqa-text", dir="auto")


def key_sentences(run: RunResult) -> dict[str, tuple[str, ...]]:
    """All key sentences of a run by document, without repeats."""
    found: dict[str, list[str]] = {}
    for stage in run.stages:
        for document_id, sentences in stage.key_sentences.items():
            kept = found.setdefault(document_id, [])
            kept.extend(sentence for sentence in sentences if sentence not in kept)
    return {document_id: tuple(sentences) for document_id, sentences in found.items()}


def marked_text(document: Document, sentences: Sequence[str]) -> str:
    """The document's text with its key sentences marked, cut at MAX_TEXT characters; those behind the cut follow."""
    shown = document.text[:MAX_TEXT]
    spans = sorted((shown.find(s), shown.find(s) + len(s)) for s in sentences if s and s in shown)
    out, end = [], 0
    for start, stop in spans:
        if start < end:
            continue
        out.append(escape(shown[end:start]) + text("mark", shown[start:stop], "mdqa-key", title="key sentence"))
        end = stop
    out.append(escape(shown[end:]))
    behind = [s for s in sentences if s not in shown and s in document.text]
    out.extend(escape(" … ") + text("mark", sentence, "mdqa-key", title="key sentence") for sentence in behind)
    rest = len(document.text) - len(shown) - sum(map(len, behind))
    return "".join(out) + (text("em", f" … {count(rest)} more characters") if rest > 0 else "")


def _signals(run: RunResult, document_id: str, calls: Mapping[int, ModelCall]) -> str:
    parts: list[str] = []
    behind: dict[int, list[str]] = {}
    for stage in run.stages:
        rows = []
        for signal, scores in stage.scores.items():
            if document_id not in scores:
                continue
            rows.append(_signal(stage, signal, scores, document_id))
            index = stage.calls.get(signal, {}).get(document_id)
            if index is not None and index in calls:
                behind.setdefault(index, []).append(signal_words(signal))
        if rows:
            parts.append(text("h4", stage.title, "mdqa-stage") + "".join(rows))
    if not parts:
        return text("p", "No stage scored this document.", "mdqa-note")
    return element("div", "".join(parts), "mdqa-signals") + _raw(behind, calls)


def _signal(stage: Stage, signal: str, scores: Mapping[str, DocumentScore], document_id: str) -> str:
    own, rank = scores[document_id], rank_of(scores, document_id)
    name = text("span", signal_words(signal), "mdqa-signal")
    if own.value is None:
        why = STATUS_WORDS[own.status] + (f": {short(own.detail, 160)}" if own.detail else "")
        return element("div", name + element("span", badge(why, "warn"), "mdqa-figure wide"), "mdqa-signal-row")
    bar = score_bar(own.value, scores, stage.thresholds.get(signal))
    whole = all(score.value is None or score.value.is_integer() for score in scores.values())
    figure = text("span", number(own.value, 0 if whole else 3), "mdqa-number")
    place = text("span", f"{rank} of {len(scores)}", "mdqa-rank", title="rank by this signal")
    return element("div", name + bar + figure + place, "mdqa-signal-row")


def score_bar(value: float, scores: Mapping[str, DocumentScore], threshold: float | None = None) -> str:
    """A bar from zero to this value with the threshold's mark; from the lowest one where all are negative.

    So a longer bar is a better score for log-likelihoods too.
    """
    values = [score.value for score in scores.values() if score.value is not None]
    bounds = values if threshold is None else [*values, threshold]
    low, high = min(bounds), max(bounds)
    zero = low if high < 0 else 0.0
    low, high = min(zero, low), max(zero, high)
    span = (high - low) or 1.0
    start, end = sorted(((zero - low) / span * 100, (value - low) / span * 100))
    fill = f'<i style="left:{start:.1f}%;width:{max(end - start, 0.8):.1f}%"></i>'
    mark = f'<b style="left:{(threshold - low) / span * 100:.1f}%"></b>' if threshold is not None else ""
    title = None if threshold is None else f"threshold {number(threshold)}"
    return element("span", fill + mark, "mdqa-bar", title=title, aria_hidden="true")


def _raw(behind: Mapping[int, Sequence[str]], calls: Mapping[int, ModelCall]) -> str:
    """The model's own text behind a document's scores, one click away."""
    parts = []
    for index, signals in behind.items():
        call = calls[index]
        head = f"{', '.join(signals)}: call {index + 1}"
        cut = " …" if len(call.output) > MAX_RAW else ""
        words = (
            call.output[:MAX_RAW] + cut
            if call.output
            else "(this call reads numbers from the model, it writes no text)"
        )
        parts.append(text("h4", head) + text("pre", words))
    return details("What the model said behind these scores", "".join(parts), "mdqa-raw") if parts else ""


def token_heat(attention_map: AttentionMap, head: Head) -> dict[str, str]:
    """Per document its text with each token shaded by the head's attention, relative to the strongest token.

    Weights fall into HEAT_LEVELS steps of their square root, because attention is very uneven.
    """
    heat = attention_map.heat
    if heat is None or head not in heat.heads:
        return {}
    weights = heat.weights[heat.heads.index(head)]
    top = float(weights.max(initial=0.0)) or 1.0
    levels = np.ceil(np.sqrt(np.clip(weights / top, 0, 1)) * HEAT_LEVELS).astype(int)
    out: dict[str, str] = {}
    for index, document_id in enumerate(attention_map.documents):
        rows = np.nonzero(heat.document == index)[0]
        out[document_id] = _shaded(heat.texts[index], heat.spans[rows], levels[rows])
    return out


def _shaded(content: str, spans: np.ndarray, levels: np.ndarray) -> str:
    """Text with runs of equally shaded tokens in one element each."""
    out, end = [], 0
    for (start, stop), level in zip(spans.tolist(), levels.tolist(), strict=True):
        start = max(start, end)
        if stop <= start or level <= 1:
            continue
        out.append(escape(content[end:start]) + text("i", content[start:stop], f"heat h{level}"))
        end = stop
    return element("span", "".join(out) + escape(content[end:]), "mdqa-heat")
