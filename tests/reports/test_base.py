"""What every report is made of: intervals, cells, Markdown and JSON."""

from __future__ import annotations

import json

import pytest

from mdqa.reports.base import Chart, Column, Report, change, mean, ratio, shown, to_json, to_markdown
from mdqa.statistics.bootstrap import mean_interval, ratio_interval

REPORT = Report(
    name="made",
    title="Made | by <b>hand</b>",
    source="Table 0.",
    columns=(
        Column(key="group", title="Runs"),
        Column(key="recall", title="Recall", unit="%", digits=1),
        Column(key="n", title="n", digits=0),
    ),
    rows=(
        {"group": "a|b", "recall": 1 / 3, "recall_low": 0.0, "recall_high": 2 / 3, "n": 1200},
        {"group": "c", "recall": None, "n": 0},
    ),
    chart=Chart(kind="bars", x="group", y="recall"),
    n=3,
    note="Read it\nso.",
)


def test_a_mean_is_that_of_the_bootstrap_module() -> None:
    expected = mean_interval([0.0, 1.0, 1.0, 0.0, 1.0])
    assert mean("x", [0.0, 1.0, 1.0, 0.0, 1.0]) == {"x": 0.6, "x_low": expected.low, "x_high": expected.high}
    assert mean("x", []) == {"x": None, "x_low": None, "x_high": None}
    assert change("x", [1.0, 0.5], [0.0, 0.5])["x"] == 0.5


def test_values_of_one_source_are_drawn_together() -> None:
    """Two questions at five positions each are two draws: the interval must not shrink to that of ten."""
    values = [1.0] * 5 + [0.0] * 5
    clustered = mean("x", values, ["a"] * 5 + ["b"] * 5)
    assert clustered == mean("x", [1.0, 0.0])
    assert (clustered["x_low"], clustered["x_high"]) == (0.0, 1.0)
    alone = mean("x", values)
    assert alone["x"] == clustered["x"] == 0.5
    assert float(alone["x_low"] or 0) > 0.0 and float(alone["x_high"] or 1) < 1.0
    uneven = mean("x", [1.0, 1.0, 0.0], ["a", "a", "b"])
    expected = ratio_interval([2.0, 0.0], [2.0, 1.0])
    assert uneven == {"x": 2 / 3, "x_low": expected.low, "x_high": expected.high}


def test_a_ratio_counts_things_and_not_questions() -> None:
    assert ratio("x", [2, 0, 1], [2, 0, 2])["x"] == 0.75
    assert ratio("x", [0, 0], [0, 0]) == {"x": None, "x_low": None, "x_high": None}


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (0.5, Column(key="v", title="V", unit="%", digits=1), "50.0"),
        (12345.678, Column(key="v", title="V", digits=0), "12,346"),
        (0.00002, Column(key="v", title="V"), "2.0e-05"),
        (0.0, Column(key="v", title="V"), "0.000"),
        ("words", Column(key="v", title="V"), "words"),
        (None, Column(key="v", title="V"), "–"),
    ],
)
def test_cells(value: str | float | None, column: Column, text: str) -> None:
    assert shown({"v": value}, column) == (text, "")


def test_markdown_is_one_table_whatever_the_texts_are() -> None:
    lines = to_markdown(REPORT).splitlines()
    assert lines[0] == "## Made \\| by &lt;b>hand&lt;/b>"
    assert lines[2] == "Table 0. n = 3."
    assert lines[4:8] == [
        "| Runs | Recall (%) | n |",
        "| --- | --- | --- |",
        "| a\\|b | 33.3 [0.0, 66.7] | 1,200 |",
        "| c | – | 0 |",
    ]
    assert lines[9] == "Read it so."


def test_json_is_unrounded_and_comes_back() -> None:
    data = json.loads(to_json(REPORT))
    assert data["rows"][0]["recall"] == 1 / 3
    assert Report.model_validate(data) == REPORT


def test_headings_and_groups() -> None:
    assert (REPORT.heading("recall"), REPORT.heading("no_column")) == ("Recall (%)", "No column")
    assert REPORT.groups == ("a|b", "c")
