"""Decisions: MADARA's route on its axes, what the agents and the judge said, and how single readings voted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.records import Document, Opinion, Routing, RunResult
from ui.views.ledger import STATUS_WORDS
from ui.views.markup import badge, element, empty, escape, message, number, short, table, text

MEASURES: Mapping[str, str] = {
    "EM_NF": "No-Filter accuracy",
    "rho1": "ρ₁ (shuffled)",
    "rho2": "ρ₂ (contradicted)",
    "rho3": "ρ₃ (random)",
    "rho_star": "ρ* (trend)",
    "rho_bar": "ρ mean",
    "rho_gap": "ρ gap (smallest step)",
    "tau_nf": "bar of No-Filter accuracy",
    "rho1_threshold": "bar of ρ₁ (shuffled)",
}
"""Words for measures and bars that have a symbol; others are shown by their own name."""

NO_ROUTING = "This method does not route"
NO_ROUTING_HINT = "MADARA shows here what it measured and which treatment follows; DuQUAD its agents and the judge."


def decisions(run: RunResult) -> str:
    """Everything a run decided: route, agents and judge side by side, votes; an empty state where there is none."""
    parts = []
    if run.routing is not None:
        parts.append(routing_panel(run.routing))
    votes = [o for o in run.opinions if o.weight is not None]
    voices = [o for o in run.opinions if o.weight is None]
    if voices:
        parts.append(agents(voices, run.question.documents))
    if votes:
        parts.append(vote_table(votes, run.question.documents))
    return "".join(parts) or empty(NO_ROUTING, NO_ROUTING_HINT)


def routing_panel(routing: Routing) -> str:
    """Treatment and reason; every measure on its axis with its threshold and margin; what a moved bar would choose."""
    head = (
        element("p", text("span", "Treatment", "mdqa-label") + text("strong", routing.title), "mdqa-treatment")
        + element("div", _classes(routing), "mdqa-badges")
        + text("p", routing.reason)
    )
    axes = "".join(
        measure_axis(name, value, _bar_of(routing, name), routing.margins.get(name))
        for name, value in routing.measures.items()
    )
    note = message(routing.note, "info") if routing.note else ""
    inner = text("h3", "Route") + head + element("div", axes, "mdqa-axes") + _alternatives(routing) + note
    return element("section", inner, "mdqa-routing", data_testid="routing")


def _classes(routing: Routing) -> str:
    labels = []
    if routing.model_class:
        labels.append(badge(f"model: {routing.model_class.replace('_', ' ')}"))
    if routing.coupling:
        labels.append(badge(f"coupling: {routing.coupling.replace('_', ' ')}"))
    return "".join(labels)


def _bar_of(routing: Routing, measure: str) -> float | None:
    """The threshold of a measure: by its own name, or worked out from its margin (measure minus threshold)."""
    if measure in routing.thresholds:
        return routing.thresholds[measure]
    value, margin = routing.measures.get(measure), routing.margins.get(measure)
    return None if value is None or margin is None else value - margin


def measure_axis(name: str, value: float | None, threshold: float | None, margin: float | None) -> str:
    """One measured value on a line from 0 (or -1) to 1 (or a little beyond), with the bar it is held to."""
    label = text("span", MEASURES.get(name, name.replace("_", " ")), "mdqa-signal")
    if value is None:
        return element("div", label + badge("not measured", "warn"), "mdqa-axis")
    known = [v for v in (value, threshold) if v is not None]
    low, high = min(-1.0 if name.startswith("rho") else 0.0, *known), max(1.0, *known)
    scale = 100 / (high - low)
    marks = f'<i style="left:{(value - low) * scale:.1f}%"></i>'
    words = []
    if threshold is not None:
        marks += f'<b style="left:{(threshold - low) * scale:.1f}%"></b>'
        words.append(f"threshold {number(threshold, 2)}")
    if margin is not None:
        words.append(f"margin {'+' if margin >= 0 else ''}{number(margin)}")
    ends = text("span", number(low, 0), "end") + element("span", marks, "line") + text("span", number(high, 0), "end")
    line = element("span", ends, "mdqa-axis-line", aria_hidden="true")
    return element(
        "div",
        label + line + text("span", number(value), "mdqa-number") + text("span", " · ".join(words), "mdqa-quiet"),
        "mdqa-axis",
    )


def _alternatives(routing: Routing) -> str:
    if not routing.alternatives:
        return ""
    rows = [
        [
            escape(MEASURES.get(a.threshold, a.threshold.replace("_", " "))),
            number(a.value, 3),
            escape(_treatment(a.treatment)),
        ]
        for a in routing.alternatives
    ]
    return table(["If this threshold", "moved to", "the treatment would be"], rows, caption="What else could happen")


def _treatment(name: str) -> str:
    return name.upper() if len(name) <= 4 else name.replace("_", " ")


def agents(voices: Sequence[Opinion], documents: Sequence[Document]) -> str:
    """Agents side by side, the judge below them. The judge and a generator read documents, agents cite them."""
    numbers = {document.id: position for position, document in enumerate(documents, 1)}
    last = [voice for voice in voices if "judge" in voice.role.lower()]
    first = [voice for voice in voices if voice not in last]
    cards = element("div", "".join(_voice(voice, numbers) for voice in first), "mdqa-voices")
    verdict = element("div", "".join(_voice(voice, numbers) for voice in last), "mdqa-voices judge")
    title = "Agents and judge" if last else "What the agents said"
    return element("section", text("h3", title) + cards + verdict, "mdqa-agents", data_testid="agents")


def _voice(voice: Opinion, numbers: Mapping[str, int]) -> str:
    labels = badge("✓ chosen", "good") if voice.chosen else ""
    labels += badge(STATUS_WORDS[voice.status], "warn") if voice.status != "ok" else ""
    cited = ", ".join(str(numbers.get(d, d)) for d in voice.documents)
    parts = [element("div", text("h4", voice.title) + labels, "mdqa-voice-head")]
    if voice.answer or not voice.reasoning:
        words = "mdqa-voice-answer" + ("" if voice.answer else " none")
        parts.append(text("p", voice.answer or "no answer", words, dir="auto"))
    if cited:
        does = "cites" if voice.role.endswith("agent") else "reads"
        noun = "document" if len(voice.documents) == 1 else "documents"
        parts.append(text("p", f"{does} {noun} {cited}", "mdqa-quiet"))
    if voice.reasoning:
        parts.append(text("p", voice.reasoning, "mdqa-reasoning", dir="auto"))
    return element("article", "".join(parts), "mdqa-voice" + (" chosen" if voice.chosen else ""))


def vote_table(votes: Sequence[Opinion], documents: Sequence[Document]) -> str:
    """Groups of equal answers with their weight, and the single readings in each."""
    by_id = {document.id: (position, document) for position, document in enumerate(documents, 1)}
    groups: dict[str, list[Opinion]] = {}
    for vote in votes:
        groups.setdefault(vote.group or vote.answer, []).append(vote)
    weights = {key: sum(v.weight or 0.0 for v in members) for key, members in groups.items()}
    total = sum(weights.values()) or 1.0
    rows = []
    for key, members in sorted(groups.items(), key=lambda item: -weights[item[0]]):
        won = badge("✓ chosen", "good") if any(v.chosen for v in members) else ""
        share = weights[key] / total * 100
        bar = element("span", f'<i style="left:0;width:{max(share, 0.8):.1f}%"></i>', "mdqa-bar", aria_hidden="true")
        readings = "".join(_reading(v, by_id) for v in members)
        shown = next((v.answer for v in members if v.chosen), members[0].answer)
        rows.append(
            [escape(shown or "no answer") + " " + won, bar, number(weights[key], 2), f"{share:.0f} %", readings]
        )
    grid = table(["Answer", "", "Weight", "Share", "Read from"], rows)
    return element("section", text("h3", "Votes of the single readings") + grid, "mdqa-votes", data_testid="votes")


def _reading(vote: Opinion, by_id: Mapping[str, tuple[int, Document]]) -> str:
    names = []
    for document_id in vote.documents:
        position, document = by_id.get(document_id, (0, None))
        title = short(document.title or document.text, 40) if document else document_id
        names.append(f"{position or '?'}. {title}")
    return text("div", f"{' · '.join(names)} ({number(vote.weight, 2)}): {short(vote.answer, 60)}", "mdqa-quiet")
