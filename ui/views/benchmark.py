"""Several methods over one benchmark: the table with intervals and corrected tests, accuracy by gold position, costs.

Every number that stands for questions is a button that lists them (``data-cell``, see ``ui.benchmarking``). Numbers are
rounded here and nowhere before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdqa.comparison.entries import Compared, Entries
from mdqa.comparison.markdown import DIGITS, TITLES
from mdqa.comparison.observations import SHORTENED
from mdqa.comparison.overlap import Overlap, pareto
from ui.views.markup import DASH, badge, count, empty, plural, short, table, text

NEWEST, MOST = 2_000, 10_000
"""Runs that a comparison reads unless told, and at most."""

PRESS = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-cell]");
  if (!button) return;
  trigger("select", { cell: button.dataset.cell, page: Number(button.dataset.page || 0) });
});
"""
"""A press on a number asks the server for the questions behind it."""

NOTHING = empty(
    "No comparison yet", "Choose a benchmark or a model, or leave both at all, and press Compare: stored runs are read."
)
NO_RUNS = empty(
    "No finished runs for this choice",
    "Ask questions on the Ask page, or store results of the command line: python -m mdqa store --results FILE "
    "--input FILE",
)

COST_NAMES: Mapping[str, str] = {
    "prefill_tokens_computed": "Prompt tokens computed",
    "prompt_tokens": "Prompt tokens sent",
    "llm_calls": "Model calls",
    "completion_tokens": "Tokens written",
    "seconds": "Seconds",
}
"""The costs that can be chosen, in words."""


@dataclass(frozen=True)
class Wish:
    """Which stored runs: of one benchmark and model or of all, the newest ``newest``."""

    benchmark: str = ""
    model: str = ""
    newest: int = NEWEST


@dataclass(frozen=True)
class Gathered:
    """What the newest ``read`` of ``total`` stored runs came to; ``unfinished`` ones of them say nothing."""

    wish: Wish
    found: Entries
    read: int
    total: int
    unfinished: int = 0


def summary(gathered: Gathered, compared: Compared) -> str:
    """What the numbers rest on, and what was left out."""
    asked = len(compared.asked)
    if not compared.common:
        over = f"Every entry over its own of {plural(asked, 'question')}; differences take those that both answered."
    elif len(compared.entries) == 1:
        over = f"{plural(compared.questions, 'question')} of {count(asked)}; the others failed."
    else:
        entries = count(len(compared.entries))
        over = f"{plural(compared.questions, 'question')} that all {entries} entries answered, of {count(asked)}."
    read = f"Read {count(gathered.read)} of {plural(gathered.total, 'stored run')}, the newest (at most {count(MOST)})."
    left = [
        f"{count(n)} {words}"
        for n, words in (
            (
                gathered.found.older,
                "passed over for a newer run of the same entry and question, or for one that did not fail",
            ),
            (gathered.unfinished, "stopped or not finished"),
            (gathered.found.changed, "over documents that were changed by hand"),
        )
        if n
    ]
    rest = f" Left out: {', '.join(left)}." if left else ""
    return text("p", over, "mdqa-over") + text("p", read + rest, "mdqa-note")


def main_table(compared: Compared, report: Mapping[str, Any], found: Overlap, cost: str) -> str:
    """One row per entry: shares with intervals, the difference to the first with corrected test and effect, cost."""
    head = ["", "Entry", "Questions", TITLES["sub_em"], TITLES["em"], TITLES["f1"], "Right", "Not right"]
    later = any("difference" in row for row in report["entries"])
    if later:
        head += [f"{TITLES[found.metric]} minus first", "Only it right", "Only first right", "p (Holm)", "h"]
    head += [COST_NAMES[cost], *(["of first"] if later else []), "Failed", "Not asked"]
    rows = [
        [
            *_own(compared, found, place, row),
            *(_beside(compared, place, row, found.metric) if later else ()),
            *_rest(compared, place, row, cost, later=later),
        ]
        for place, row in enumerate(report["entries"])
    ]
    note = (
        f"Percent, with 95% intervals over questions (percentile bootstrap). p: McNemar's exact test on "
        f"{TITLES[found.metric]}, corrected with Holm's method over all tests of the table. h: Cohen's h. Entries of "
        "one model are set against the first of them. Press a number to see its questions."
    )
    return table(head, rows, "benchmark") + text("p", note, "mdqa-note")


def _own(compared: Compared, found: Overlap, place: int, row: Mapping[str, Any]) -> list[str]:
    key = compared.entries[place].key
    right = sum(found.rights[place].values())
    bare = row["without_answers"]
    more = " " + text("span", f"{count(bare)} without answers", "mdqa-quiet") if bare else ""
    return [
        text("span", place + 1, "mdqa-entry"),
        text("strong", row["label"], dir="auto"),
        cell(f"own:{key}:all", row["n"], "questions answered") + more,
        *(share(row[metric]) for metric in ("sub_em", "em", "f1")),
        cell(f"own:{key}:right", right, "questions that it got right"),
        cell(f"own:{key}:wrong", len(found.rights[place]) - right, "questions that it did not get right"),
    ]


def _beside(compared: Compared, place: int, row: Mapping[str, Any], metric: str) -> list[str]:
    """The cells that set an entry against the first of its model; dashes for that one."""
    if "difference" not in row:
        return [DASH] * 5
    first = next(i for i, entry in enumerate(compared.entries) if entry.model == compared.entries[place].model)
    mine, theirs = compared.entries[place].key, compared.entries[first].key
    test, effect = row["tests"][metric], row["effect"][metric]
    if test is None:
        return [share(row["difference"][metric], "+"), *[DASH] * 4]
    return [
        share(row["difference"][metric], "+"),
        cell(f"pair:{mine}:{theirs}:first", test["b"], "questions that it alone got right"),
        cell(f"pair:{mine}:{theirs}:second", test["c"], "questions that the first alone got right"),
        f'<span title="uncorrected: {p_value(test["p"])}">{p_value(test["p_holm"])}</span>',
        ranged(effect, 2, sign="+"),
    ]


def _rest(compared: Compared, place: int, row: Mapping[str, Any], cost: str, *, later: bool) -> list[str]:
    key = compared.entries[place].key
    ratio = [ranged(row["cost_ratio"][cost], 2, unit="×") if "cost_ratio" in row else "1×"] if later else []
    return [
        ranged(row["cost"][cost], DIGITS.get(cost, 0)),
        *ratio,
        cell(f"own:{key}:failed", len(compared.failed(place)), "questions on which it failed"),
        cell(f"own:{key}:missing", len(compared.missing(place)), "questions that only others were asked"),
    ]


def cell(name: str, value: int, title: str, label: str = "") -> str:
    """A number that leads to its questions; plain where there are none."""
    shown = label or count(value)
    if not value:
        return text("span", shown, "mdqa-quiet", title=title)
    return text("button", shown, "mdqa-cell", type="button", data_cell=name, title=title)


def share(interval: Mapping[str, Any] | None, sign: str = "") -> str:
    """A share in percent with its interval beside it."""
    return ranged(interval, 1, sign=sign, scale=100)


def ranged(interval: Mapping[str, Any] | None, digits: int, *, sign: str = "", scale: float = 1, unit: str = "") -> str:
    """A mean with its interval beside it, rounded for reading."""
    if interval is None:
        return DASH

    def shown(value: float, mark: str = sign) -> str:
        return format(scale * value, f"{mark},.{digits}f").replace("-", "−")

    mean = text("span", shown(interval["mean"]) + unit, "mdqa-mean")
    if interval["low"] is None:
        return mean
    ends = f"{shown(interval['low'])} to {shown(interval['high'])}"
    return mean + " " + text("span", ends, "mdqa-quiet", title=f"n = {count(interval['n'])}")


def p_value(value: float) -> str:
    """A p value: three digits, or its order of magnitude."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("-", "−")


def position_table(compared: Compared, found: Overlap) -> str:
    """Accuracy by the position of the evidence; every share is a button. Empty where there are not two positions."""
    if len(found.positions) < 2:
        return empty(
            "No picture by position",
            "It takes questions whose evidence stands at two positions or more: python -m mdqa evaluate --positions "
            "1,5,10 makes them, and one gold document per question is enough.",
        )
    rows = []
    for at in found.positions:
        cells = [str(at.position)]
        for entry, interval in zip(compared.entries, at.entries, strict=True):
            if interval is None:
                cells.append(DASH)
                continue
            mean = f"{100 * float(interval['mean'] or 0):.1f}"
            button = cell(f"at:{entry.key}:{at.position}", int(interval["n"] or 0), "its questions here", mean)
            low, high = interval["low"], interval["high"]
            ends = "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}, "
            cells.append(f"{button} " + text("span", f"{ends}n={count(int(interval['n'] or 0))}", "mdqa-quiet"))
        rows.append(cells)
    head = ["Gold at", *(f"{place}. {short(entry.label, 40)}" for place, entry in enumerate(compared.entries, 1))]
    return table(head, rows, "benchmark positions")


def cost_table(compared: Compared, report: Mapping[str, Any], found: Overlap, cost: str) -> str:
    """The points of the scatter plot as a table, those on the Pareto front marked."""
    front = on_front(report, found.metric, cost)
    rows = []
    for place, row in enumerate(report["entries"]):
        key = compared.entries[place].key
        mark = badge("Pareto front", "good", "no other entry is as cheap and as accurate") if place in front else ""
        rows.append(
            [
                text("span", place + 1, "mdqa-entry"),
                text("button", row["label"], "mdqa-cell", type="button", data_cell=f"own:{key}:all") + " " + mark,
                share(row[found.metric]),
                ranged(row["cost"][cost], DIGITS.get(cost, 0)),
            ]
        )
    made = table(["", "Entry", TITLES[found.metric], f"{COST_NAMES[cost]} per question"], rows, "benchmark")
    shortened = sum(row["remembered"] for row in report["entries"])
    if cost not in SHORTENED or not shortened:
        return made
    words = f"Without {plural(shortened, 'run')} that the program answered in part from memory of earlier ones."
    return made + text("p", words, "mdqa-note")


def on_front(report: Mapping[str, Any], metric: str, cost: str) -> set[int]:
    """Places of the entries that no other beats in both accuracy and cost."""
    points = [
        (row["cost"][cost]["mean"], row[metric]["mean"]) if row["cost"][cost] and row[metric] else None
        for row in report["entries"]
    ]
    return pareto(points)


def entry_choices(found: Entries) -> list[tuple[str, str]]:
    """The entries for the picker: label, model where there are several, and number of questions."""
    several = len({entry.model for entry in found.entries}) > 1
    return [
        (
            f"{entry.label}{f' ({entry.model})' if several else ''} · {plural(len(found.runs[entry.key]), 'question')}",
            entry.key,
        )
        for entry in found.entries
    ]
