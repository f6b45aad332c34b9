"""What an annotator sees: the queues, and an item with its answers, buttons and documents.

Everything here is made from a :class:`~ui.annotating.Sheet`; there is no run to look into. Texts are shown as they
are, without the highlighting of the other tabs, which would say what some method thought of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ui.annotating import Blind, BlindDocument, Feedback, QueueCard, Sheet
from ui.views.guidelines import guidelines
from ui.views.markup import element, empty, escape, plural, text

WORDS: Mapping[str, tuple[str, str, str]] = {
    "A": ("A is right", "a", "A"),
    "B": ("B is right", "b", "B"),
    "both": ("Both", "o", "O"),
    "neither": ("Neither", "n", "N"),
    "cannot_tell": ("Cannot tell", "c", "C"),
}
"""What a mark's button says, its key, and how that is written."""

MARK_KEYS: Mapping[str, str] = {
    "A": "A is right: save and go on",
    "B": "B is right: save and go on",
    "both": "both are right",
    "neither": "neither is right",
    "cannot_tell": "cannot tell from these documents",
}
"""What a mark's key does, for the list of keys; the script leaves out those for which an item has no button."""

ONE_ANSWER: Mapping[str, str] = {"A": "The answer is right", "neither": "It is not right"}
"""What the buttons say instead where there is one answer."""

ONE_KEYS: Mapping[str, str] = {"A": "the answer is right: save and go on", "neither": "it is not right"}
"""What :data:`MARK_KEYS` says instead then."""

KEYS: tuple[tuple[str, str], ...] = (
    ("1 … 9, 0", "mark document 1 to 9, 10 as evidence, or take the mark off"),
    ("Shift + 1 … 0", "the same for documents 11 to 20"),
    ("W", "write a note"),
    ("S", "skip, with a reason"),
    ("F", "flag: something is wrong with the item"),
    ("U", "undo: take back the last label or skip"),
    ("Esc", "leave a text box, so that keys work again"),
    ("?", "this list"),
)

REASONS = ("needs knowledge that I do not have", "too long", "text is broken", "language that I do not read")
"""Offered for a skip; others can be typed."""

NO_ANSWER = "(no answer)"


def shell() -> str:
    """The place that the script fills, with the list of keys."""
    rows = "".join(_mark_key(mark, what) for mark, what in MARK_KEYS.items())
    rows += "".join(f"<tr>{text('th', key, scope='row')}{text('td', what)}</tr>" for key, what in KEYS)
    close = '<form method="dialog"><button class="mdqa-copy">Close</button></form>'
    use = '<label class="mdqa-keys-use"><input type="checkbox" checked data-use-keys> Use these keys</label>'
    keys = element(
        "dialog", text("h3", "Keys") + f"<table><tbody>{rows}</tbody></table>{use}{close}", "mdqa-keys", data_keys=""
    )
    status = element("div", "", "mdqa-annotate-status", role="status", aria_live="polite", data_status="")
    return element("div", status + element("div", "", "mdqa-annotate-body", data_body="") + keys, "mdqa-annotate")


def _mark_key(mark: str, what: str) -> str:
    words = text("td", what, data_words=what, data_one=ONE_KEYS.get(mark, what))
    return element("tr", text("th", WORDS[mark][2], scope="row") + words, data_key_of=mark)


def queue_list(cards: Sequence[QueueCard]) -> str:
    """The queues to choose from, those with work first."""
    if not cards:
        return empty(
            "There is no queue yet.",
            "An analyst makes one below, or sends a run to a queue from its result or from the list of runs.",
        )
    ordered = sorted(cards, key=lambda card: card.own.left == 0)
    return text("h2", "Queues", "mdqa-annotate-title") + element("ul", "".join(map(_card, ordered)), "mdqa-queue-cards")


def sheet_view(sheet: Sheet) -> str:
    """The queue's head, feedback to the last practice item, and the item, or that nothing is left."""
    parts = [_head(sheet), _feedback(sheet.feedback) if sheet.feedback else ""]
    if sheet.item is None:
        hint = "What others hold open or skip may still come to you: look again later."
        parts.append(empty("Nothing is left for you in this queue.", hint) + _tools(("undo",)))
        return element("section", "".join(parts), "mdqa-sheet", data_queue=sheet.queue, data_sheet="")
    item = sheet.item
    parts.append(element("div", _decide(item) + _documents(item), "mdqa-sheet-item"))
    return element(
        "section",
        "".join(parts),
        "mdqa-sheet",
        data_sheet="",
        data_queue=sheet.queue,
        data_token=item.token,
        data_note=item.draft.note,
        data_evidence=",".join(map(str, item.draft.evidence)),
    )


def _card(card: QueueCard) -> str:
    own = card.own
    done = (
        f"you labelled {own.labelled}, {plural(own.left, 'item')} left for you" if own.left else "nothing left for you"
    )
    inner = text("strong", card.name, dir="auto") + text("span", f"{plural(card.items, 'item')} · {done}", "mdqa-quiet")
    return element("li", element("button", inner, "mdqa-queue-card", type="button", data_open=card.name))


def _head(sheet: Sheet) -> str:
    own, everybody = sheet.own, sheet.all
    if sheet.item and sheet.item.practice and own.practised < own.practice:
        where = f"Practice item {own.practised + 1} of {own.practice}: you are told what was expected."
    else:
        where = f"You: {own.labelled} labelled, {own.skipped} skipped, {own.left} left."
    total = (
        f"All: {everybody.labels} of {plural(everybody.wanted, 'label')}, {everybody.complete} of "
        f"{plural(everybody.items, 'item')} complete, {plural(everybody.people, 'person', 'people')}."
    )
    mine = own.labelled + own.skipped
    bar = element("progress", "", "", max=max(mine + own.left, 1), value=mine, aria_label="Your share of this queue")
    rules = ""
    if sheet.guidelines:
        summary = text("summary", f"Guidelines, version {sheet.version}")
        inner = summary + element("div", guidelines(sheet.guidelines), "mdqa-guidelines")
        rules = element("details", inner, "mdqa-rules", data_version=sheet.version)
    title = element(
        "div", text("strong", sheet.queue, dir="auto") + _button("Other queue", "leave"), "mdqa-sheet-title"
    )
    return element(
        "header", title + element("p", escape(f"{where} {total}"), "mdqa-quiet") + bar + rules, "mdqa-sheet-head"
    )


def _feedback(feedback: Feedback) -> str:
    said, expected = (WORDS[mark][0] for mark in (feedback.given, feedback.expected))
    sign, look = ("✓", "good") if feedback.right else ("≠", "warn")
    head = "As expected" if feedback.right else "Not what was expected"
    shown = "; ".join(
        f"{mark} was “{answer or NO_ANSWER}”" for mark, answer in zip("AB", feedback.answers, strict=False)
    )
    inner = text("strong", f"Practice: {head}.") + text(
        "p", f"You said “{said}”, expected was “{expected}”{f' ({shown})' if shown else ''}."
    )
    inner += text("p", feedback.words, dir="auto") if feedback.words else ""
    mark = f'<span class="mdqa-sign" aria-hidden="true">{sign}</span>'
    return element("div", mark + element("div", inner), f"mdqa-message {look}", role="status", data_feedback="")


def _decide(item: Blind) -> str:
    """The question, the answers and everything that is pressed or typed."""
    asked = text("h2", item.question, "mdqa-asked", tabindex="-1", dir="auto", data_asked="")
    names = ("Answer A", "Answer B") if len(item.answers) == 2 else ("Answer",)
    cards = "".join(
        element("article", text("h3", name) + text("p", answer or NO_ANSWER, dir="auto"), "mdqa-option")
        for name, answer in zip(names, item.answers, strict=False)
    ) or text("p", "The run gave no answer.", "mdqa-quiet")
    one = len(item.answers) < 2
    buttons = "".join(_mark(mark, one, item.draft.mark) for mark in item.marks)
    marks = element("div", buttons, "mdqa-marks", role="group", aria_label="Which answer is right?")
    note = (
        '<label class="mdqa-note-box"><span>Note (optional)</span>'
        '<textarea rows="2" maxlength="2000" data-note-text></textarea></label>'
    )
    tools = _tools(("skip", "flag", "undo", "keys"))
    return element("div", asked + element("div", cards, "mdqa-options") + marks + note + tools + _ask(), "mdqa-decide")


def _mark(mark: str, one: bool, before: str) -> str:
    words, key, written = WORDS[mark]
    if one:
        words = ONE_ANSWER.get(mark, words)
    look = "mdqa-mark before" if mark == before else "mdqa-mark"
    was = text("small", "you said this before") if mark == before else ""
    inner = text("span", words) + was + text("kbd", written, aria_hidden="true")
    return element("button", inner, look, type="button", data_mark=mark, aria_keyshortcuts=key)


def _tools(names: Sequence[str]) -> str:
    every = {
        "skip": _button("Skip", "skip", "S"),
        "flag": _button("Flag", "flag", "F"),
        "undo": _button("Undo", "undo", "U"),
        "keys": _button("Keys", "keys", "?"),
    }
    return element("div", "".join(every[name] for name in names), "mdqa-tools")


def _button(words: str, tool: str, key: str = "") -> str:
    inner = escape(words) + (" " + text("kbd", key, aria_hidden="true") if key else "")
    return element("button", inner, "mdqa-copy", type="button", data_tool=tool, aria_keyshortcuts=key or None)


def _ask() -> str:
    """Where the reason of a skip, or what is wrong, is typed; hidden until then."""
    offered = "".join(f'<option value="{escape(reason)}"></option>' for reason in REASONS)
    return (
        '<form class="mdqa-ask" data-ask hidden><label><span data-ask-words></span>'
        '<input type="text" maxlength="2000" list="mdqa-reasons" required data-ask-text></label>'
        f'<datalist id="mdqa-reasons">{offered}</datalist>'
        '<div class="mdqa-tools"><button type="submit" class="mdqa-copy mdqa-send">Send</button>'
        '<button type="button" class="mdqa-copy" data-tool="close">Cancel</button></div></form>'
    )


def _documents(item: Blind) -> str:
    head = text("h3", f"{plural(len(item.documents), 'document')} · mark those that hold the evidence", "mdqa-quiet")
    cards = "".join(map(_document, item.documents))
    return element("div", head + cards, "mdqa-read", aria_label="Documents", role="region")


def _document(document: BlindDocument) -> str:
    n = document.number
    key = f"Shift+{n % 10}" if 10 < n <= 20 else str(n % 10) if n <= 10 else ""
    hint = text("kbd", key, aria_hidden="true") if key else ""
    mark = element(
        "button",
        "Evidence " + hint,
        "mdqa-evidence",
        type="button",
        aria_pressed="false",
        aria_label=f"Document {n} holds the evidence",
        aria_keyshortcuts=key or None,
        data_evidence_of=n,
    )
    title = text("h4", f"{n} · {document.title}" if document.title else f"Document {n}", dir="auto")
    body = text("p", document.text, dir="auto")
    return element("article", element("div", title + mark, "mdqa-read-head") + body, "mdqa-read-one", data_document=n)
