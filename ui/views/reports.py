"""A report on the page: what it shows, its table, how to read it, what is missing, and both forms to save."""

from __future__ import annotations

from mdqa.reports.base import Column, Report, Row, shown, to_json, to_markdown
from ui.views.markup import count, element, empty, escape, message, plural, short, text

TALL = 16
"""Rows from which on the table scrolls in a box of its own."""

SAVE = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (!button) return;
  const content = button.nextElementSibling.textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: button.dataset.type }));
  link.download = button.dataset.save;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
"""
"""Saves what the page holds already: no file is made on the server."""

NOTHING = empty("No report yet", "Choose a report and the runs it is made from, then press Make.")


def entry(report: Report) -> str:
    """A report in the list of all: its title and where it comes from."""
    return short(f"{report.title} · {report.source.rstrip('.')}", 120)


def about(report: Report) -> str:
    """What a report shows and what it needs, before it is made."""
    words = f"{report.source} Needs {report.needs}" + ("" if report.needs.endswith(".") else ".")
    return text("p", words, "mdqa-note")


def reading(done: int, total: int) -> str:
    """How far the stored runs have been read."""
    words = f"Read {count(done)} of {plural(total, 'stored run')}" if done < total else "All runs are read; computing"
    return text("p", f"{words} …", "mdqa-note", role="status")


def report_head(report: Report) -> str:
    """The report's title, source and number of runs; what is missing where it could not be made."""
    if report.needs:
        missing = message(f"These runs do not allow this report. It needs {report.needs}.", "warn")
        return element("div", text("h2", report.title) + missing, "mdqa-report-head", data_testid="report")
    same = f", {report.groups[0]}" if len(report.groups) == 1 else ""
    facts = f"{report.source} {plural(report.n, report.counted)}{same}."
    return element(
        "div", text("h2", report.title) + text("p", facts, "mdqa-note"), "mdqa-report-head", data_testid="report"
    )


def report_table(report: Report) -> str:
    """The table with intervals beside the numbers, how to read it, and the buttons that save the report.

    Where there are several groups, each has a line of its own above its rows.
    """
    if not report.rows:
        return ""
    columns = [
        column
        for column in report.columns
        if column.key != "group" and any(row.get(column.key) is not None for row in report.rows)
    ]
    head = "".join(text("th", column.heading, _side(report, column), scope="col") for column in columns)
    lines = []
    for group in report.groups or ("",):
        if len(report.groups) > 1:
            title = text("span", group, "name")
            lines.append(element("tr", element("th", title, "group", colspan=len(columns), scope="colgroup")))
        own = [row for row in report.rows if row.get("group", "") == group]
        lines += [element("tr", "".join(_cell(report, row, column) for column in columns)) for row in own]
    grid = element("table", f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>", "mdqa-table report")
    box = element("div", grid, "mdqa-scroll tall framed" if len(lines) > TALL else "mdqa-scroll framed", tabindex="0")
    return box + text("p", report.note, "mdqa-note") + _saved(report)


def _side(report: Report, column: Column) -> str:
    numbers = any(isinstance(row.get(column.key), int | float) for row in report.rows)
    return "number" if numbers else "words"


def _cell(report: Report, row: Row, column: Column) -> str:
    side, (value, interval) = _side(report, column), shown(row, column)
    if side == "number":
        value, interval = value.replace("-", "−"), interval.replace("-", "−")
    beside = " " + text("span", interval, "mdqa-quiet") if interval else ""
    return element("td", escape(value) + beside, side)


def _saved(report: Report) -> str:
    parts = []
    for words, ending, kind, content in (
        ("Save as Markdown", "md", "text/markdown", to_markdown(report)),
        ("Save as JSON", "json", "application/json", to_json(report)),
    ):
        parts.append(
            text("button", words, "mdqa-copy", type="button", data_save=f"{report.name}.{ending}", data_type=kind)
        )
        parts.append(text("pre", content, hidden=""))
    return element("div", "".join(parts), "mdqa-saved")
