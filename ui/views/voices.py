"""What the agents said, side by side, and how single readings voted. DuQUAD has a panel of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.records import Document, Opinion, RunResult
from ui.views.ledger import STATUS_WORDS
from ui.views.markup import badge, element, escape, number, short, table, text

NO_VOICES = frozenset({"treatment", "reading"})
"""Roles of opinions that compare treatments; nobody in the run said them (see ``ui.views.treatments``)."""


def voices(run: RunResult) -> str:
    """Agents and generator, then the votes; empty where nobody said anything."""
    said = [o for o in run.opinions if o.weight is None and o.role not in NO_VOICES and o.role != "extractor"]
    conflict = [o for o in said if o.role == "conflict"]  # the ones after the first were asked to compare treatments
    said = [o for o in said if o not in conflict[1:]]
    votes = [o for o in run.opinions if o.weight is not None or o.role == "extractor"]
    parts = [agents(said, run.question.documents)] if said else []
    return "".join([*parts, vote_table(votes, run.question.documents)] if votes else parts)


def agents(voices: Sequence[Opinion], documents: Sequence[Document]) -> str:
    """Agents side by side, with the documents that each of them read."""
    numbers = {document.id: position for position, document in enumerate(documents, 1)}
    cards = element("div", "".join(_voice(voice, numbers) for voice in voices), "mdqa-voices")
    title = text("h3", "What the agents said")
    return element("section", title + cards, "mdqa-agents", data_testid="agents")


def _voice(voice: Opinion, numbers: Mapping[str, int]) -> str:
    labels = badge("✓ chosen", "good") if voice.chosen else ""
    labels += badge(STATUS_WORDS[voice.status], "warn") if voice.status != "ok" else ""
    read = ", ".join(str(numbers.get(d, d)) for d in voice.documents)
    parts = [element("div", text("h4", voice.title) + labels, "mdqa-voice-head")]
    if voice.answer or not voice.reasoning:
        words = "mdqa-voice-answer" + ("" if voice.answer else " none")
        parts.append(text("p", voice.answer or "no answer", words, dir="auto"))
    if read:
        noun = "document" if len(voice.documents) == 1 else "documents"
        parts.append(text("p", f"reads {noun} {read}", "mdqa-quiet"))
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
