"""Reports on the page: from stored runs to table, picture and files to save; hostile texts stay text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mdqa.errors import ConfigError
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row
from mdqa.reports.duquad import ablations, attention, signals, weights
from storage.store import Store
from tests.reports.builders import duquad, placed, question, run
from tests.ui.helpers import open_scripted
from tests.ui.hostile import EVIL, assert_harmless
from ui.context import Context
from ui.reporting import MOST, Reading, Wish, make, offered_reports, stored_models
from ui.views.figures import COLOURS, report_figure, together
from ui.views.reports import about, entry, reading, report_head, report_table

COLUMNS = (
    Column(key="group", title="Runs"),
    Column(key="name", title="Name"),
    Column(key="value", title="Value", unit="%", digits=1),
    Column(key="empty", title="Empty"),
)


def made(*rows: Row, kind: str = "bars", **fields: object) -> Report:
    """A report by hand; its rows get an interval from 0 to 1."""
    chart = Chart(kind=kind, x="name", y="value", series="group", low="value_low", high="value_high", mark="marked")  # type: ignore[arg-type]
    values: dict[str, object] = {
        "name": "made",
        "title": "Made",
        "source": "By hand.",
        "columns": COLUMNS,
        "rows": tuple({"value_low": 0.0, "value_high": 1.0, "empty": None, **row} for row in rows),
        "chart": chart,
        "n": 2,
        "note": "A note.",
    }
    return Report.model_validate(values | fields)


def store(context_or_store: Store, *runs: RunResult) -> None:
    for result in runs:
        context_or_store.runs.begin(result.model_copy(update={"status": "running"}))
        context_or_store.runs.finish(result)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_scripted(tmp_path, start=False)
    with closing(opened.store):
        yield opened


def test_runs_are_chosen_by_method_model_and_number(context: Context) -> None:
    store(
        context.store,
        *(run(question(f"q{i}"), created=f"2026-01-0{i + 1}T00:00:00+00:00", id=f"r{i}") for i in range(4)),
        run(question("x"), "cafe", model="other", id="rx"),
        run(question("y"), status="failed", id="ry"),
    )
    assert stored_models(context) == ["m", "other"]
    *steps, report = make(context, Wish("costs", method="direct", newest=3))
    assert steps == [Reading(3, 3)]
    assert isinstance(report, Report) and (report.n, report.rows[0]["n"]) == (3, 3)
    *_, other = make(context, Wish("costs", model="other"))
    assert isinstance(other, Report) and other.rows[0]["variant"] == "cafe"
    *_, nothing = make(context, Wish("costs", model="nobody"))
    assert isinstance(nothing, Report) and nothing.needs


def test_long_reading_is_told(context: Context) -> None:
    store(context.store, *(run(question(f"q{i}"), id=f"r{i}") for i in range(60)))
    steps = list(make(context, Wish("costs")))[:-1]
    assert steps == [Reading(25, 60), Reading(50, 60), Reading(60, 60)]
    assert "Read 25 of 60 stored runs" in reading(25, 60) and "computing" in reading(60, 60)


@pytest.mark.parametrize("wish", [Wish("nonsense"), Wish("costs", newest=0), Wish("costs", newest=MOST + 1)])
def test_wishes_that_cannot_be(context: Context, wish: Wish) -> None:
    with pytest.raises(ConfigError):
        list(make(context, wish))


def test_every_report_says_what_it_is_before_it_is_made() -> None:
    for report in offered_reports():
        assert "Needs " in assert_harmless(about(report)).text
        assert entry(report).startswith(report.title)
        missing = assert_harmless(report_head(report)).text
        assert report.title in missing and "do not allow this report" in missing
        assert report_table(report) == "" and report_figure(report) is None


def test_a_table_shows_numbers_with_their_intervals_and_what_can_be_saved() -> None:
    report = made({"group": "a", "name": "x", "value": 0.5}, {"group": "a", "name": "y", "value": None})
    shown = assert_harmless(report_table(report))
    assert "Value (%)" in shown.text and "50.0 [0.0, 100.0]" in shown.text
    assert "Empty" not in shown.text.split("##")[0], "a column without any value is left out"
    assert shown.tags.count("pre") == 2 and ("data-save", "made.md") in shown.attributes
    saved = shown.text.partition("Save as JSON")[2]
    assert Report.model_validate(json.loads(saved)) == report
    assert "2 runs, a." in assert_harmless(report_head(report)).text


def test_groups_have_a_line_of_their_own() -> None:
    rows = [{"group": group, "name": str(i), "value": 0.5} for i in range(2) for group in ("a", "b")]
    report = made(*rows)
    shown = report_table(report)
    assert shown.count('class="group"') == 2
    cells = re.findall(r'<span class="name">(\w)</span>|<td class="words">(\w)</td>', shown)
    assert ["".join(cell) for cell in cells] == ["a", "0", "1", "b", "0", "1"]
    assert "2 runs." in assert_harmless(report_head(report)).text


def test_hostile_texts() -> None:
    rows = [{"group": EVIL + str(i), "name": EVIL, "value": 0.5} for i in range(2)]
    report = made(*rows, title=EVIL, source=EVIL, note=EVIL)
    for html in (report_table(report), report_head(report), report_head(made(needs=EVIL)), about(made(needs=EVIL))):
        assert_harmless(html)
    for kind in ("bars", "lines", "points"):
        figure = report_figure(made(*rows, kind=kind))
        assert figure is not None and "<img" not in figure.to_json() and "<script" not in figure.to_json()


def test_bars_lie_and_have_a_colour_per_group() -> None:
    rows = [
        {"group": group, "name": "w/o Quality Pruning of all", "value": value}
        for group, value in (("a", 0.25), ("b", 0.5))
    ]
    report = made(*rows, {"group": "a", "name": "nothing", "value": None})
    figure = report_figure(report)
    assert figure is not None and together(report)
    first, second = figure.data
    assert (first.orientation, list(first.x), list(first.y)) == ("h", [25.0], ["w/o Quality Pruning of<br>all"])
    assert (first.error_x.array[0], first.error_x.arrayminus[0]) == (75.0, 25.0)
    assert [first.marker.color, second.marker.color] == list(COLOURS[:2])
    assert figure.layout.xaxis.title.text == "Value (%)" and figure.layout.showlegend
    alone = report_figure(report, "b")
    assert alone is not None and len(alone.data) == 1 and not alone.layout.showlegend


def test_long_names_that_begin_alike_have_bars_of_their_own() -> None:
    names = [f"retrieve_read ranker=rrf_rerank cross_encoder=/models/of/a/long/path/{end}" for end in ("a", "b", "a")]
    rows = [{"group": group, "name": name, "value": 0.5} for group, name in zip("ggh", names, strict=True)]
    figure = report_figure(made(*rows))
    assert figure is not None
    first, second = figure.data
    assert len(set(first.y)) == 2 and list(second.y) == [first.y[0]]
    assert first.y[1].endswith("(2)")


def test_lines_have_bands_while_there_are_few_and_marks_stand_out() -> None:
    items = placed(question("a"), 1, 3)
    report = attention.report([duquad(item, attention=(1.0, 2.0, 3.0, 5.0)) for item in items])
    figure = report_figure(report)
    assert figure is not None and together(report)
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert (len(bands), [line.name for line in lines]) == (2, ["gold at 1", "gold at 3"])
    assert list(lines[1].x) == [1, 2, 3, 4]
    assert list(lines[1].marker.symbol) == ["circle", "circle", "diamond", "circle"]
    assert list(lines[1].marker.line.width) == [0, 0, 2.5, 0]


def test_points_mark_the_papers_setting() -> None:
    runs = [
        duquad(question(name), signals=dict.fromkeys(("sim", "ppl", "cont"), (4.0, 3.0, 2.0, 1.0))) for name in "ab"
    ]
    report = weights.report(runs, grid=(0.5, 1.0))
    figure = report_figure(report)
    assert figure is not None
    [points] = figure.data
    assert points.mode == "markers" and list(points.x) == list(range(1, 8))
    assert list(points.marker.symbol).count("diamond") == 1


def test_several_groups_with_series_of_their_own_are_drawn_one_at_a_time() -> None:
    runs = [
        duquad(item, signals={"sim": (1.0, 2.0, 3.0, 4.0)}, model=model)
        for item in placed(question("a"), 1, 3)
        for model in ("m1", "m2")
    ]
    report = signals.report(runs)
    assert not together(report)
    one, both = report_figure(report, "m1"), report_figure(report)
    assert one is not None and [line.name for line in one.data if line.name] == [
        "Sim",
        "BM25",
        "Random order (expected)",
    ]
    assert both is not None and "Sim, m2" in [line.name for line in both.data]


def test_a_grid() -> None:
    rows = [{"group": "a", "name": name, "value": 0.5, "row": row} for name in "xy" for row in ("up", "down")]
    report = made(*rows[:3], chart=Chart(kind="grid", x="name", y="row", series="value"))
    figure = report_figure(report)
    assert figure is not None and [list(line) for line in figure.data[0].z] == [[50.0, 50.0], [50.0, None]]


def test_nothing_to_draw() -> None:
    assert report_figure(made({"group": "a", "name": "x", "value": None})) is None
    assert report_figure(made({"group": "a", "name": "x", "value": 0.5}, chart=None)) is None
    assert report_figure(ablations.report([])) is None
