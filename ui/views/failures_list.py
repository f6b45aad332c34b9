"""The runs of the Failures tab as a table of links, the pages around it, and what can be done with ticked ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.diagnosis.cases import TITLES, VERDICTS
from mdqa.diagnosis.facets import DISAGREEMENTS
from storage.listing import RunRow
from ui.filtering import Wanted
from ui.views.markup import DASH, badge, count, element, escape, number, plural, seconds, short, text
from ui.views.summary import STATUS

DISAGREEMENT_WORDS: Mapping[str, str] = {
    "agents": "Local and Global disagree",
    "judge": "Judge against the majority",
    "treatments": "Treatments disagree",
    "votes": "Split vote",
}

MOST_COMPARED = 6
"""Runs that Compare sets side by side."""


def run_table(rows: Sequence[RunRow], titles: Mapping[str, str], queued: Mapping[str, Sequence[str]]) -> str:
    """A row per run; every one is taken and opened by the run's id, so no order can lead to another run."""
    heads = ("", "Question", "Answer", "What became of it", "Method", "Time and date (UTC)")
    head = "".join(text("th", words, scope="col") for words in heads)
    body = "".join(_row(row, titles.get(row.method, row.method), queued.get(row.id, ())) for row in rows)
    grid = f'<table class="mdqa-table history runs"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return element("div", grid, "mdqa-scroll", tabindex="0", role="region", aria_label="Runs")


def _row(row: RunRow, method: str, queues: Sequence[str]) -> str:
    question = short(row.question, 140) or "(no question)"
    tick = control("checkbox", data_pick=row.id, aria_label=f"Take: {question}")
    link = text("a", question, href=f"?run={row.id}", dir="auto")
    about = " · ".join([plural(row.documents, "document"), *([short(row.benchmark, 40)] if row.benchmark else [])])
    expected = ""
    if row.answers and not row.correct:
        some = " / ".join(short(answer, 60) for answer in row.answers[:2])
        more = f" and {count(len(row.answers) - 2)} more" if len(row.answers) > 2 else ""
        expected = text("div", f"expected: {some}{more}", "mdqa-quiet", dir="auto")
    when = f"{seconds(row.seconds)} · {plural(row.llm_calls, 'call')}"
    cells = (
        element("td", element("label", tick), "pick"),
        element("td", link + text("div", about, "mdqa-quiet"), "what"),
        element("td", text("div", short(row.answer, 110) or DASH, dir="auto") + expected, "answer"),
        element("td", element("div", _marks(row, queues), "mdqa-badges")),
        element("td", text("div", method) + text("div", short(row.model, 48), "mdqa-quiet")),
        element("td", text("div", when) + text("div", row.created.replace("T", " ")[:16], "mdqa-quiet"), "time"),
    )
    return element("tr", "".join(cells), data_run=row.id)


def control(kind: str, name: str = "", **attributes: object) -> str:
    """An input of this type; values of attributes are escaped."""
    given = element("input", "", type=kind, **attributes).removesuffix("></input>")
    return given + (f' name="{escape(name)}">' if name else ">")


def _marks(row: RunRow, queues: Sequence[str]) -> str:
    """State where it is no plain end, right or wrong, why, who disagreed, how near it was, which queues it is in."""
    marks = badge(*STATUS[row.status]) if row.status != "ok" else ""
    if row.correct is not None:
        marks += badge("✓ correct", "good") if row.correct else badge("× not correct", "bad")
    if row.diagnosis:
        where = f" ({row.stage.replace('_', ' ')})" if row.stage else ""
        marks += badge(f"{TITLES.get(row.diagnosis, row.diagnosis)}{where}", "warn", VERDICTS.get(row.diagnosis, ""))
    for kind in row.disagreements:
        marks += badge(DISAGREEMENT_WORDS.get(kind, kind), "", DISAGREEMENTS.get(kind, ""))
    if row.margin is not None:
        marks += badge(f"margin {number(row.margin)}", "", "how near another outcome was")
    return marks + "".join(badge(f"queued: {short(name, 40)}", "info", "in this annotation queue") for name in queues)


def page_links(wanted: Wanted, first: int, shown: int, total: int) -> str:
    """Which runs these are, and the pages before and after."""
    words = text("span", f"Runs {count(first + 1)} to {count(first + shown)} of {count(total)}", "mdqa-quiet")
    back = _page(wanted, wanted.page - 1, "← Back", first > 0)
    on = _page(wanted, wanted.page + 1, "Next →", first + shown < total)
    return element("nav", back + words + on, "mdqa-page-links", aria_label="Pages")


def _page(wanted: Wanted, page: int, words: str, there: bool) -> str:
    if not there:
        return text("span", words, "mdqa-copy", aria_disabled="true")
    return text("a", words, "mdqa-copy", href=wanted.at(page), data_go="", data_at=words)


def selection_bar(total: int, queues: Sequence[str]) -> str:
    """What can be done with the runs that are ticked; which these are is known to the browser only."""
    options = "".join(text("option", "", value=name) for name in queues)
    named = queues[0] if queues else ""
    queue = control("text", "queue", list="mdqa-queue-names", maxlength=100, value=named, data_keep="queue")
    note = control("text", "note", maxlength=2000, data_keep="note", placeholder="Why (optional)")
    tick = control("checkbox", data_every="", data_total=total)
    which = (
        text("strong", "Nothing ticked", data_count="", aria_live="polite")
        + text("button", "Tick this page", "mdqa-copy", type="button", data_page="")
        + element("label", tick + text("span", f"All {count(total)} that match"), "tick")
        + text("button", "Untick", "mdqa-copy", type="button", data_none="")
    )
    act = (
        text("a", "Open", "mdqa-copy", data_compare="", data_most=MOST_COMPARED, aria_disabled="true")
        + text("button", "Run again", "mdqa-copy", type="button", data_act="again", disabled="")
        + text("button", "Export as JSON lines", "mdqa-copy", type="button", data_act="export", disabled="")
    )
    send = (
        element("label", text("span", "Queue") + queue)
        + element("datalist", options, id="mdqa-queue-names")
        + element("label", text("span", "Note") + note)
        + text("button", "Send to the queue", "mdqa-copy primary", type="button", data_act="send", disabled="")
    )
    inner = element("div", which + element("div", act, "line push"), "line") + element("div", send, "line")
    return element("div", inner, "mdqa-taken", role="group", aria_label="The runs that are ticked")
