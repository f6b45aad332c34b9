"""Who is right where: entries by entries, and the questions by which entries got them right (an UpSet plot's rows)."""

from __future__ import annotations

from mdqa.comparison.entries import Compared
from mdqa.comparison.markdown import TITLES
from mdqa.comparison.overlap import Overlap, Pair
from ui.views.benchmark import cell
from ui.views.markup import count, element, empty, escape, number, plural, short, table, text

SHOWN = 24
"""Combinations of right entries that are shown, the most frequent ones; the others are counted."""


def right_where(compared: Compared, found: Overlap) -> str:
    """Both pictures; an empty state for a single entry."""
    if len(compared.entries) < 2:
        return empty("Who is right where", "It takes two entries or more; choose them above.")
    if not any(pair.n for pair in found.pairs.values()):
        return empty("No common question with a known answer", "Choose entries that answered the same questions.")
    return pair_matrix(compared, found) + pattern_rows(compared, found)


def pair_matrix(compared: Compared, found: Overlap) -> str:
    """Row by column: how many questions both got right, and how many only the row's entry; the diagonal all of its."""
    rows = []
    for one, entry in enumerate(compared.entries):
        cells = [text("span", one + 1, "mdqa-entry") + " " + text("strong", short(entry.label, 60), dir="auto")]
        for two in range(len(compared.entries)):
            cells.append(
                _alone(compared, found, one) if one == two else _cell(compared, one, two, found.pairs[one, two])
            )
        rows.append(cells)
    head = ["Entry", *(str(place) for place in range(1, len(compared.entries) + 1))]
    note = (
        f"Right by {TITLES[found.metric]}. In row a and column b: questions that both got right, that only a got "
        "right, and that neither did, of those that both answered. The diagonal: what the entry got right in all."
    )
    return text("p", note, "mdqa-note") + table(head, rows, "benchmark matrix")


def _alone(compared: Compared, found: Overlap, place: int) -> str:
    own = found.rights[place]
    button = cell(f"own:{compared.entries[place].key}:right", sum(own.values()), "right in all")
    return element("div", button + text("span", f"of {count(len(own))}", "mdqa-quiet"), "mdqa-alone")


def _cell(compared: Compared, one: int, two: int, pair: Pair) -> str:
    first, second = compared.entries[one], compared.entries[two]
    base = f"pair:{first.key}:{second.key}"
    parts = []
    for what, own, words in (
        ("both", pair.both, "both"),
        ("first", pair.first_only, f"only {one + 1}"),
        ("neither", pair.neither, "neither"),
    ):
        button = cell(f"{base}:{what}", len(own), f"{words}: {len(own)} of {pair.n} questions")
        parts.append(element("span", text("span", words, "mdqa-quiet") + " " + button, what))
    return element("div", "".join(parts), "mdqa-pair")


def pattern_rows(compared: Compared, found: Overlap) -> str:
    """Questions by which entries got them right, the most frequent combination first."""
    total = sum(len(pattern.questions) for pattern in found.patterns)
    if not total:
        return ""
    shown, rest = found.patterns[:SHOWN], found.patterns[SHOWN:]
    rows = []
    for pattern in shown:
        n = len(pattern.questions)
        bits = "".join(str(int(one)) for one in pattern.right)
        dots = [
            text(
                "span",
                "●" if one else "○",
                "mdqa-dot" + (" right" if one else ""),
                title="right" if one else "not right",
            )
            for one in pattern.right
        ]
        width = 100 * n / max(len(shown[0].questions), 1)
        bar = element("span", f'<i style="left:0;width:{max(width, 0.8):.1f}%"></i>', "mdqa-bar", aria_hidden="true")
        share = text("span", f"{number(100 * n / total, 1)}%", "mdqa-quiet")
        rows.append([*dots, bar, cell(f"who:{bits}", n, "its questions") + " " + share])
    left = ""
    if rest:
        held = sum(len(pattern.questions) for pattern in rest)
        left = f" The {count(len(rest))} rarer combinations with {plural(held, 'question')} are not shown."
    note = f"{plural(total, 'question')} that all entries answered, by who got them right (● right, ○ not).{left}"
    head = [*(str(place) for place in range(1, len(compared.entries) + 1)), "", "Questions"]
    return text("p", note, "mdqa-note") + table(head, rows, "benchmark patterns")


def key_line(compared: Compared) -> str:
    """Which number stands for which entry."""
    items = "".join(
        element("li", text("span", place, "mdqa-entry") + " " + escape(short(entry.label, 80)))
        for place, entry in enumerate(compared.entries, 1)
    )
    return element("ul", items, "mdqa-entry-list")
