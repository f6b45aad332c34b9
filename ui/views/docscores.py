"""DuQUAD's pruning: the DocScore of every candidate on one scale with the threshold tau, what stayed and what went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.records import RunResult, Stage
from mdqa.trace import ModelCall
from ui.views.documents import card_link
from ui.views.ledger import STATUS_WORDS
from ui.views.markup import badge, element, number, plural, short, text

STAGE, SIGNAL, WRITTEN = "doc_score", "DocScore", "DocScore_written"


def docscores(run: RunResult, calls: Mapping[int, ModelCall], cited_by: Mapping[str, Sequence[str]]) -> str:
    """A line per candidate, the best first; empty where there was no pruning. ``cited_by``: agents by document.

    A DocScore is a button with the index of the call behind it where that is known.
    """
    stage = next((stage for stage in run.stages if stage.name == STAGE and SIGNAL in stage.scores), None)
    if stage is None:
        return _left_out(run)
    tau = stage.thresholds.get(SIGNAL)
    rows = [_row(run, stage, document_id, calls, cited_by) for document_id in _order(stage)]
    inner = text("h3", "DocScores and the threshold τ") + text("p", _summary(run, stage, tau), "mdqa-note")
    chart = _scale(tau) + element("ul", "".join(rows), "mdqa-docscores")
    return element("section", inner + chart, "mdqa-panel", data_testid="docscores")


def fallback(stage: Stage, document_id: str) -> bool:
    """Whether a document was kept although its DocScore does not reach the threshold, or is not there."""
    value, tau = stage.scores[SIGNAL][document_id].value, stage.thresholds.get(SIGNAL)
    return document_id in stage.kept and (value is None or (tau is not None and value < tau))


def _left_out(run: RunResult) -> str:
    if not run.config.get("without_pruning"):
        return ""
    words = "Quality pruning was left out in this run (ablation): the judge read every candidate with its full text."
    return element("section", text("h3", "DocScores") + text("p", words, "mdqa-note"), "mdqa-panel")


def _order(stage: Stage) -> list[str]:
    scores = stage.scores[SIGNAL]

    def key(document_id: str) -> tuple[bool, float]:
        value = scores[document_id].value
        return (value is None, -(value or 0.0))

    return sorted(stage.documents, key=key)


def _summary(run: RunResult, stage: Stage, tau: float | None) -> str:
    words = f"{len(stage.kept)} of {plural(len(stage.documents), 'candidate')} kept"
    words += f": a candidate stays if its DocScore reaches τ = {number(tau, 2)}. " if tau is not None else ". "
    for document_id in stage.kept:
        if fallback(stage, document_id):
            why = stage.reasons.get(document_id, "").removeprefix("kept: ")
            words += f"Fallback: {why}. " if why else ""
    if run.config.get("continuous_doc_score"):
        return words + "DocScore is the model's probability of yes against no when it is asked whether it helps."
    return words + "Press a score to read the Score Agent's reply."


def _scale(tau: float | None) -> str:
    bar = text("b", f"τ {number(tau, 2)}", style=_left(tau)) if tau is not None else ""
    ends = text("span", "0") + bar + text("span", "1")
    return element("div", element("span", ends, "scale"), "mdqa-docscore head", aria_hidden="true")


def _left(value: float) -> str:
    return f"left:{min(max(value, 0.0), 1.0) * 100:.1f}%"


def _row(
    run: RunResult,
    stage: Stage,
    document_id: str,
    calls: Mapping[int, ModelCall],
    cited_by: Mapping[str, Sequence[str]],
) -> str:
    place = run.question.document_ids.index(document_id) + 1
    document = run.question.document(document_id)
    star = text("span", " ★", "star", title="gold: holds the evidence") if document.gold else ""
    name = card_link(place, f"{place}. {short(document.title or document.text, 70)}") + star
    about = _about(stage, document_id, cited_by)
    cells = element("div", name + text("span", about, "mdqa-quiet"), "what")
    cells += _bar(stage, document_id) + _figure(stage, document_id, place, calls) + _fate(stage, document_id)
    kept = document_id in stage.kept
    return element("li", cells, "mdqa-docscore " + ("kept" if kept else "gone"))


def _about(stage: Stage, document_id: str, cited_by: Mapping[str, Sequence[str]]) -> str:
    """Who cites it, how many key sentences it gives, and what the agent wrote where the model's probability counts."""
    who = " and ".join(cited_by.get(document_id, ()))
    words = [f"cited by {who}" if who else "cited by no agent"]
    if sentences := stage.key_sentences.get(document_id):
        words.append(plural(len(sentences), "key sentence"))
    written = stage.scores.get(WRITTEN, {}).get(document_id)
    if written is not None and written.value is not None:
        words.append(f"written {number(written.value, 2)}")
    return " · ".join(words)


def _bar(stage: Stage, document_id: str) -> str:
    """From 0 to 1 with the threshold's line, which runs through all rows."""
    value, tau = stage.scores[SIGNAL][document_id].value, stage.thresholds.get(SIGNAL)
    fill = f'<i style="width:{min(max(value, 0.0), 1.0) * 100:.1f}%"></i>' if value is not None else ""
    mark = f'<b style="{_left(tau)}"></b>' if tau is not None else ""
    return element("span", fill + mark, "scale", aria_hidden="true")


def _figure(stage: Stage, document_id: str, place: int, calls: Mapping[int, ModelCall]) -> str:
    score = stage.scores[SIGNAL][document_id]
    words = number(score.value, 2) if score.value is not None else "none"
    index = stage.calls.get(SIGNAL, {}).get(document_id)
    if index is None or index not in calls:
        return text("span", words, "mdqa-number")
    label = f"DocScore {words}, document {place}: show the reply"
    press = {"data_call": index, "data_document": document_id, "aria_pressed": "false", "aria_label": label}
    return text("button", words, "mdqa-number", type="button", **press)


def _fate(stage: Stage, document_id: str) -> str:
    score, reason = stage.scores[SIGNAL][document_id], stage.reasons.get(document_id, "")
    labels = badge(STATUS_WORDS[score.status], "warn", score.detail) if score.value is None else ""
    if fallback(stage, document_id):
        labels += badge("✓ kept as fallback", "warn", reason)
    elif document_id in stage.kept:
        labels += badge("✓ kept", "good", reason)
    else:
        labels += badge("× dropped", "", reason)
    return element("span", labels, "mdqa-badges")
