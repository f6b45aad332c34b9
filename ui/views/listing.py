"""The questions behind a number of a comparison: every answer leads to its run, a question to its runs side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ui.views.markup import badge, count, element, empty, short, table, text

PAGE = 20
"""Questions that are listed at once."""

COME_INTO_VIEW = """
let shown = "";
watch("value", () => {
  const head = element.querySelector("[data-listed]");
  if (!head || head.dataset.listed === shown) return;
  shown = head.dataset.listed;
  head.focus({ preventScroll: true });
  head.scrollIntoView({ block: "nearest" });
});
"""
"""Brings a new list of questions into view and puts the focus at its head."""


@dataclass(frozen=True)
class ListedRun:
    """What an entry answered to a listed question; ``right`` is None where nobody knows or its run failed."""

    run: str
    answer: str
    right: bool | None
    failed: bool


@dataclass(frozen=True)
class ListedQuestion:
    """A question with one place per entry, None where the entry has no run of it. No words: its runs are deleted."""

    question: str
    runs: tuple[ListedRun | None, ...]


@dataclass(frozen=True)
class Listed:
    """One page of the questions behind a number; ``labels`` are those of the entries."""

    cell: str
    title: str
    labels: tuple[str, ...]
    total: int
    first: int
    questions: tuple[ListedQuestion, ...]


def listing(found: Listed) -> str:
    """One page of the questions behind a number: every answer leads to its run, a row to its runs side by side."""
    title = f"Questions {found.title}: {count(found.total)}"
    head = text("h3", title, tabindex="-1", data_listed=f"{found.cell}/{found.first}", dir="auto")
    if not found.questions:
        return element("section", head + empty("No question here", "Press another number."), "mdqa-listed")
    rows = []
    for one in found.questions:
        ids = ",".join(run.run for run in one.runs if run is not None)
        words = text("a", short(one.question, 140) or "(no question)", href=f"?run={ids}&tab=compare", dir="auto")
        rows.append([words, *(_answer(run) for run in one.runs)])
    labels = [f"{place}. {short(label, 40)}" for place, label in enumerate(found.labels, 1)]
    last = found.first + len(found.questions)
    note = f"{count(found.first + 1)} to {count(last)}. A question opens its runs side by side, an answer its run."
    grid = table(["Question", *labels], rows, "listed")
    return element(
        "section", head + text("p", note, "mdqa-note") + grid + _pager(found), "mdqa-listed", data_testid="listed"
    )


def _answer(run: ListedRun | None) -> str:
    if run is None:
        return text("span", "not asked", "mdqa-quiet")
    sign = "failed" if run.failed else "" if run.right is None else "✓" if run.right else "×"
    kind = "bad" if run.failed or run.right is False else "good"
    mark = badge(sign, kind, {"✓": "right", "×": "not right"}.get(sign, "")) + " " if sign else ""
    return mark + text("a", short(run.answer, 70) or "no answer", href=f"?run={run.run}", dir="auto")


def _pager(found: Listed) -> str:
    buttons = []
    page = found.first // PAGE
    if found.first:
        buttons.append(("← Back", page - 1))
    if found.first + len(found.questions) < found.total:
        buttons.append(("Next →", page + 1))
    inner = "".join(
        text("button", words, "mdqa-copy", type="button", data_cell=found.cell, data_page=number)
        for words, number in buttons
    )
    return element("div", inner, "mdqa-saved") if inner else ""
