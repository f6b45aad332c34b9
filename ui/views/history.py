"""The list of stored runs: each row is a link to the run's own address, so sorting can never open the wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from storage.runs import RunRow
from ui.views.markup import badge, count, element, empty, plural, seconds, short, text
from ui.views.summary import STATUS

NOT_QUEUED: Mapping[str, Sequence[str]] = MappingProxyType({})


def history_list(
    rows: Sequence[RunRow],
    total: int,
    first: int,
    titles: Mapping[str, str],
    queued: Mapping[str, Sequence[str]] = NOT_QUEUED,
) -> str:
    """One page of runs as a table of links; an empty state that says what to do.

    ``titles``: methods by name. ``queued``: names of the annotation queues that a run is in, by its id.
    """
    if not rows:
        if total or first:
            return empty("Nothing on this page", "Go back a page or loosen the filter.")
        return empty("No runs here yet", "Ask a question on the Ask page, or loosen the filter; every run is kept.")
    note = f"Runs {count(first + 1)} to {count(first + len(rows))} of {plural(total, 'run')}, newest first."
    head = "".join(
        text("th", h, scope="col") for h in ("When (UTC)", "Question", "Method", "Answer", "State", "Time", "")
    )
    body = "".join(_row(row, titles.get(row.method, row.method), queued.get(row.id, ())) for row in rows)
    grid = f'<table class="mdqa-table history"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return text("p", note, "mdqa-note") + element("div", grid, "mdqa-scroll", tabindex="0")


def _row(row: RunRow, method: str, queues: Sequence[str]) -> str:
    word, kind = STATUS[row.status]
    state = badge(word, kind)
    if row.correct is not None:
        state += badge("✓ correct", "good") if row.correct else badge("× not correct", "bad")
    state += "".join(badge(f"queued: {short(name, 40)}", "info", "in this annotation queue") for name in queues)
    link = text("a", short(row.question, 110) or "(no question)", href=f"?run={row.id}", dir="auto")
    about = text("div", f"{plural(row.documents, 'document')} · {short(row.model, 48)}", "mdqa-quiet")
    copy = text("button", "Copy link", "mdqa-copy", type="button", data_copy=f"?run={row.id}")
    cells = (
        text("td", row.created.replace("T", " ")[:16], "when"),
        element("td", link + about, "what"),
        text("td", method),
        text("td", short(row.answer, 70) or "–", "answer", dir="auto"),
        element("td", element("div", state, "mdqa-badges")),
        text("td", seconds(row.seconds), "time"),
        element("td", copy),
    )
    return element("tr", "".join(cells), data_run=row.id)
