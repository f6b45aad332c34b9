"""The form of "What if": a line per document and a box per option, and in words what would be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.differences.comparing import reached
from mdqa.records import Document, RunResult
from mdqa.scoring.answers import says_an_answer
from ui.forms import FormField, spelled
from ui.views.markup import badge, details, element, escape, facts, plural, short, text

LONGEST_ANSWER = 80
"""Characters of an answer that is looked for in the documents; a longer one is a sentence that no document repeats."""


def what_if_form(
    run: RunResult,
    controls: Sequence[FormField],
    others: Sequence[FormField],
    values: Mapping[str, str | bool],
    gone: Sequence[Document] = (),
) -> str:
    """The whole form. ``values``: per option what its box shows. ``gone``: documents that can be put back."""
    heading = text("h3", "What if …")
    boxes = element("div", "".join(_option(field, values[field.name]) for field in controls), "mdqa-whatif-options")
    more = element("div", "".join(_option(field, values[field.name]) for field in others), "mdqa-whatif-options")
    explained = facts({field.label: field.help for field in (*controls, *others) if field.help})
    rest = "All other options" if controls else "All options"
    parts = [
        heading,
        _documents(run, gone) if run.question.documents or gone else "",
        boxes if controls else "",
        details(rest, more, "mdqa-more", anchor="mdqa-whatif-more") if others else "",
        details("What these options do", explained, "mdqa-more", anchor="mdqa-whatif-help"),
        element(
            "div",
            text("button", "Run again", "go", type="button", id="mdqa-again", data_do="run")
            + text("button", "Reset", "", type="button", id="mdqa-whatif-reset", data_do="reset"),
            "mdqa-whatif-actions",
        ),
    ]
    return element("section", "".join(parts), "mdqa-whatif", data_run=run.id, aria_label="What if")


def what_would_change(words: Sequence[str], *, ended: bool = True) -> str:
    """The changes that "Run again" would carry out. ``ended``: the run came to its end and need not be repeated."""
    if not words:
        said = "Nothing is changed yet." if ended else "Run again repeats this run, which did not come to its end."
        return text("p", said, "mdqa-quiet", role="status")
    items = "".join(text("li", word, dir="auto") for word in words)
    inner = text("span", "Will run again with:") + element("ul", items)
    return element("div", inner, "mdqa-whatif-words", role="status")


def _documents(run: RunResult, gone: Sequence[Document]) -> str:
    at_the_end = reached(run)
    rows = [
        _row(document, number, on=True, badges=_badges(document, run, document.id in at_the_end))
        for number, document in enumerate(run.question.documents, 1)
    ]
    rows += [_row(document, 0, on=False, badges=_badges(document, run, False)) for document in gone]
    summary = text("span", "Documents: switch off, move, copy or edit") + " "
    summary += text("span", f"· {plural(len(run.question.documents), 'document')}", "mdqa-quiet")
    hint = text(
        "p",
        "A document that is off is left out, as if it had never been given. A gold mark stays with a text that is "
        "edited. Every change is a new run; this one stays as it is.",
        "mdqa-note",
    )
    inner = hint + element("ol", "".join(rows), "mdqa-whatif-rows", tabindex="0", aria_label="Documents")
    return details(summary, inner, "mdqa-more", anchor="mdqa-whatif-documents")


def _row(document: Document, number: int, *, on: bool, badges: str) -> str:
    name = short(document.title or document.text, 80)
    check = f'<input type="checkbox" {"checked" if on else ""} aria-label="{escape("Use: " + name)}" data-do="switch">'
    place = (
        f'<input type="number" class="place" min="1" step="1" value="{number or ""}" '
        f'aria-label="{escape("Position of: " + name)}" data-do="place">'
    )
    buttons = "".join(
        text("button", label, "mdqa-copy", type="button", data_do=do, title=title, aria_label=f"{title}: {name}")
        for label, do, title in (("↑", "up", "Move up"), ("↓", "down", "Move down"), ("Copy", "copy", "Copy"))
    )
    buttons += text("button", "Edit", "mdqa-copy", type="button", data_do="edit", aria_expanded="false", title="Edit")
    states = "".join(
        text("span", word, f"mdqa-badge warn state {word}", hidden="") for word in ("off", "copy", "edited")
    )
    # A line break at the very beginning of a text box is dropped by browsers; one more keeps the text's own.
    title = f'<input type="text" data-edit="title" value="{escape(document.title)}" maxlength="2000" dir="auto">'
    words = f'<textarea data-edit="text" rows="7" dir="auto">\n{escape(document.text)}</textarea>'
    boxes = element("label", "Title" + title) + element("label", "Text" + words)
    editor = element("div", boxes, "editor", hidden="")
    line = (
        check
        + place
        + text("span", name, "name", dir="auto")
        + element("span", badges + states, "mdqa-badges")
        + element("span", buttons, "buttons")
    )
    return element("li", element("div", line, "line") + editor, data_document=document.id)


def _badges(document: Document, run: RunResult, at_the_end: bool) -> str:
    found = badge("★ gold", "gold") if document.gold else ""
    if says_the_answer(document, run):
        found += badge("says the answer given", "", f"The answer “{run.answer.strip()}” stands in this text")
    if at_the_end:
        found += badge("reached the answer", "", "The answer was written from this document")
    return found


def says_the_answer(document: Document, run: RunResult) -> bool:
    """Whether the run's answer stands in a document's text; never for one that is a long sentence."""
    answer = run.answer.strip()
    return bool(answer) and len(answer) <= LONGEST_ANSWER and says_an_answer(document.text, (answer,))


def _option(field: FormField, value: str | bool) -> str:
    name = escape(field.name)
    if field.kind == "switch":
        box = f'<input type="checkbox" data-option="{name}" {"checked" if value else ""}>'
        return element("label", box + text("span", field.label), "switch", title=field.help or None)
    if field.kind == "choice":
        choices = "".join(
            text("option", spelled(choice), value=choice, selected="" if str(choice) == value else None)
            for choice in field.choices
        )
        box = f'<select data-option="{name}">{choices}</select>'
    elif field.kind in ("whole", "number"):
        step = "1" if field.kind == "whole" else "any"
        box = f'<input type="number" step="{step}" data-option="{name}" value="{escape(value)}">'
    else:
        box = f'<input type="text" data-option="{name}" value="{escape(value)}" maxlength="1000">'
    return element("label", text("span", field.label) + box, title=field.help or None)
