"""The three steps of a first visit; ``scripts/tour.js`` shows them one by one and remembers that they were seen."""

from __future__ import annotations

from ui.views.markup import element, text

STEPS = (
    (
        "Take an example",
        "One is filled in already. Each of the built-in examples has one thing to look at; you can also paste your own "
        "documents or load a file.",
        "mdqa-example mdqa-question",
    ),
    (
        "Run it",
        "Keep the method that is ticked, or tick several, and press Run. Each stage appears as it ends; Stop stops it.",
        "mdqa-run",
    ),
    (
        "See what happened to the evidence",
        "Flow shows how far every document got, and why some were dropped. Then switch a document off under What if, "
        "and run again: does the answer change?",
        "mdqa-result mdqa-live",
    ),
)
"""Title, words, and the ids of what a step points at (the first one that is on the page)."""

OPENER = text(
    "button",
    "Tour",
    "mdqa-copy",
    id="mdqa-tour-open",
    type="button",
    aria_expanded="false",
    aria_controls="mdqa-tour",
    title="Three steps through the page",
)
"""The button in the header that shows the tour again."""


def tour() -> str:
    """The box with all steps, hidden until the script shows it."""
    steps = "".join(_step(number, *step) for number, step in enumerate(STEPS, 1))
    buttons = _button("back", "Back") + _button("next", "Next", "primary") + _button("close", "Close the tour", "quiet")
    return element(
        "aside",
        steps + element("div", buttons, "mdqa-tour-buttons"),
        "mdqa-tour",
        id="mdqa-tour",
        hidden="",
        aria_label="Tour",
    )


def _step(number: int, title: str, words: str, target: str) -> str:
    head = text("span", f"Step {number} of {len(STEPS)}", "mdqa-label") + text("h2", title, tabindex="-1")
    hidden = None if number == 1 else ""
    return element("div", head + text("p", words), "", data_step=number, data_target=target, hidden=hidden)


def _button(name: str, words: str, kind: str = "") -> str:
    return text("button", words, f"mdqa-tour-button {kind}".strip(), type="button", data_tour=name)
