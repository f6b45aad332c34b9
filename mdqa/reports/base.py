"""What a report is: a table with unrounded numbers, a picture of it in words, and what it rests on.

A report is made from stored runs and needs no model. ``REPORTS`` in :mod:`mdqa.registry` lists them; each is a function
``(runs) -> Report`` that uses what it can of the runs and says in ``needs`` what is missing where nothing can be said.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

from mdqa.records import Record
from mdqa.statistics.bootstrap import mean_interval, ratio_interval

Value = str | int | float | None
Row = dict[str, Value]

DASH = "–"


class Column(Record):
    """A column of the table: the rows' key, its heading, and how its numbers are shown.

    ``unit`` is empty, or ``%`` for a share (0.5 is shown as 50.0), or a word for the heading. ``digits`` are those
    after the point. Where rows hold ``<key>_low`` and ``<key>_high`` too, the interval is shown with the number.
    """

    key: str
    title: str
    unit: str = ""
    digits: int = 3

    @property
    def heading(self) -> str:
        """The heading with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


class Chart(Record):
    """The picture of a report, as keys of its rows; a row without a number at ``x`` or ``y`` is not drawn.

    ``lines``, ``points`` and ``bars`` have one colour per value of ``series`` (and per ``group`` of the rows), and
    intervals from ``low`` to ``high``.
    Rows with something at ``mark`` stand out. ``grid`` has a cell per ``x`` and ``y``, coloured by the number at
    ``series``.
    """

    kind: Literal["lines", "bars", "grid", "points"]
    x: str
    y: str
    series: str = ""
    low: str = ""
    high: str = ""
    mark: str = ""


class Report(Record):
    """A report. ``rows`` are unrounded; ``n`` counts the runs it rests on; ``source`` names the paper's table.

    ``counted`` is what ``n`` counts where that are no runs, such as ``profile``.
    ``note`` says how the numbers are to be read. ``needs`` is empty, or a sentence on what is missing to make it.
    """

    name: str
    title: str
    source: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    chart: Chart | None = None
    n: int = 0
    counted: str = "run"
    note: str = ""
    needs: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The values of ``group`` among the rows, in their order: what is not to be mixed in one picture."""
        return tuple(dict.fromkeys(str(row["group"]) for row in self.rows if row.get("group") is not None))

    def heading(self, key: str) -> str:
        """The heading of a key of the rows; the key itself where it has no column."""
        return next(
            (column.heading for column in self.columns if column.key == key), key.replace("_", " ").capitalize()
        )


def mean(key: str, values: Sequence[float], sources: Sequence[Hashable] = ()) -> Row:
    """``key``, ``key_low`` and ``key_high``: the mean with its 95% bootstrap interval; None without values.

    ``sources`` names what each value comes from; values of one source are drawn together, for the same question at
    several positions is not several questions. Default: every value has its own.
    """
    return ratio(key, values, [1.0] * len(values), sources)


def change(key: str, first: Sequence[float], second: Sequence[float], sources: Sequence[Hashable] = ()) -> Row:
    """As :func:`mean` for the paired difference ``first - second``."""
    return mean(key, [one - other for one, other in zip(first, second, strict=True)], sources)


def ratio(key: str, sums: Sequence[float], counts: Sequence[float], sources: Sequence[Hashable] = ()) -> Row:
    """As :func:`mean` for ``sum(sums) / sum(counts)``; None where there is nothing to count."""
    if not sum(counts):
        return {key: None, f"{key}_low": None, f"{key}_high": None}
    drawn: dict[Hashable, tuple[float, float]] = {}
    for source, part, count in zip(sources or range(len(sums)), sums, counts, strict=True):
        before = drawn.get(source, (0.0, 0.0))
        drawn[source] = (before[0] + part, before[1] + count)
    parts, weights = ([pair[i] for pair in drawn.values()] for i in (0, 1))
    if len(set(weights)) == 1:  # then the ratio is the mean of the sources' own ratios
        found = mean_interval([part / weights[0] for part in parts])
    else:
        found = ratio_interval(parts, weights)
    return {key: found.mean, f"{key}_low": found.low, f"{key}_high": found.high}


def shown(row: Mapping[str, Value], column: Column) -> tuple[str, str]:
    """A cell as people read it: the value, and its interval (``[low, high]``) where the row has one, else nothing."""
    value = row.get(column.key)
    if value is None:
        return DASH, ""
    if isinstance(value, str):
        return value, ""
    low, high = row.get(f"{column.key}_low"), row.get(f"{column.key}_high")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return _number(value, column), f"[{_number(low, column)}, {_number(high, column)}]"
    return _number(value, column), ""


def _number(value: float, column: Column) -> str:
    scaled = 100 * value if column.unit == "%" else value
    if column.digits and scaled and abs(scaled) < 0.5 * 10**-column.digits:
        return f"{scaled:.1e}"
    return f"{scaled:,.{column.digits}f}"


def to_markdown(report: Report) -> str:
    """The report as Markdown: what it is, its table, how to read it. Numbers are rounded as on the screen."""
    counted = f" {report.counted}s" if report.counted != "run" else ""
    parts = [f"## {_escaped(report.title)}", f"{_escaped(report.source)} n = {report.n}{counted}."]
    if report.rows:
        lines = [[column.heading for column in report.columns], ["---"] * len(report.columns)]
        lines += [[" ".join(filter(None, shown(row, column))) for column in report.columns] for row in report.rows]
        parts.append("\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines))
    parts += [_escaped(text) for text in (report.note, f"Needs {report.needs}" if report.needs else "") if text]
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text).split())
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def to_json(report: Report) -> str:
    """The whole report as one JSON object, numbers unrounded."""
    data: dict[str, Any] = report.model_dump(mode="json")
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def joined(sentences: Iterable[str]) -> str:
    """Sentences that say something, as one note."""
    return " ".join(sentence for sentence in sentences if sentence)
