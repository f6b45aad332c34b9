"""What was given, before anything runs: documents, size, duplicates, and what was refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mdqa.records import Document
from ui.views.ledger import duplicates
from ui.views.markup import badge, count, details, element, empty, escape, message, plural, short, text

MAX_LISTED = 200
MAX_PROBLEMS = 30


@dataclass(frozen=True)
class Refusal:
    """A part of the input that was not taken: where it is and why not."""

    place: str
    reason: str


def preview(
    documents: Sequence[Document],
    refused: Sequence[Refusal] = (),
    *,
    tokens: int | None = None,
    window: int | None = None,
    gold: Sequence[str] = (),
) -> str:
    """Counts, warnings and the list of documents; ``tokens`` None where no model is there to count them."""
    parts = [problems(refused, others=bool(documents))]
    if not documents:
        hint = "Choose an example, paste some text, or load a file of questions."
        return "".join(parts) + empty("No documents yet", hint)
    characters = sum(len(d.text) + len(d.title) for d in documents)
    size = f"{count(tokens)} tokens" if tokens is not None else f"about {count(max(characters // 4, 1))} tokens"
    repeated = duplicates(documents)
    facts = [badge(plural(len(documents), "document")), badge(size)]
    if gold:
        facts.append(badge(f"★ {len(gold)} gold", "gold"))
    if repeated:
        facts.append(badge(plural(len(repeated), "duplicate"), "warn"))
    parts.insert(0, element("div", "".join(facts), "mdqa-badges"))
    if tokens is not None and window is not None and tokens > window - 1024:
        parts.append(
            message(
                f"The documents have {tokens:,} tokens; the model's window holds {window:,} and 1,024 stay free. The "
                "run follows the rule chosen under “Too long for the model”.",
                "warn",
            )
        )
    rows = "".join(_row(i, d, repeated, d.id in gold) for i, d in enumerate(documents[:MAX_LISTED], 1))
    parts.append(
        details(f"Look at the {plural(len(documents), 'document')}", element("ol", rows, "mdqa-list"), "mdqa-more")
    )
    return element("div", "".join(parts), "mdqa-preview")


def _row(number: int, document: Document, repeated: dict[str, int], gold: bool) -> str:
    labels = badge("★ gold", "gold") if gold else ""
    if document.id in repeated:
        labels += badge(f"same text as {repeated[document.id]}", "warn")
    title = text("strong", document.title or f"Document {number}", dir="auto")
    return element("li", title + labels + text("p", short(document.text, 260), dir="auto"))


def problems(entries: Sequence[Refusal], *, used: bool = False, others: bool = True) -> str:
    """What was refused, or with ``used`` what was taken but changed or looks odd; empty where there is nothing.

    ``others``: whether something was taken beside it.
    """
    if not entries:
        return ""
    shown = "".join(element("li", text("strong", e.place) + escape(f" {e.reason}")) for e in entries[:MAX_PROBLEMS])
    rest = len(entries) - MAX_PROBLEMS
    more = text("p", f"and {rest} more", "mdqa-quiet") if rest > 0 else ""
    notes = element("ul", shown, "mdqa-problems") + more
    if used:
        return details(escape(f"{plural(len(entries), 'note')} on what was loaded"), notes, "mdqa-more")
    title = f"{plural(len(entries), 'entry', 'entries')} could not be used" + (
        "; the others are kept." if others else "."
    )
    return message(title, "warn") + notes
