"""Beside the result of a built-in example: what is interesting in it, and the parts of the result that show it."""

from __future__ import annotations

from mdqa.benchmarks.examples import example_of
from mdqa.records import RunResult
from ui.views.markup import element, text

PARTS = {
    "flow": "Flow",
    "documents": "Documents",
    "decisions": "Decisions",
    "heads": "Heads",
    "prompts": "Prompts",
}
"""Titles of the tabs of a result by their ids."""


def lesson(run: RunResult) -> str:
    """The example's explanation with buttons that open the tabs to look at; empty for any other question."""
    found = example_of(run.question)
    if found is None or run.status != "ok":
        return ""
    buttons = [text("button", PARTS[part], "mdqa-copy", type="button", data_part=PARTS[part]) for part in found.look]
    look = element("p", text("span", "Look at ", "mdqa-quiet") + " ".join(buttons), "mdqa-lesson-look")
    body = text("h3", f"What to see here: {found.title}") + text("p", found.shows) + look
    return element("section", body, "mdqa-lesson", data_testid="lesson", aria_label="About this example")
