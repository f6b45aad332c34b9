"""Figures: medians, spreads and ratios checked by hand."""

from __future__ import annotations

import json

import pytest

from mdqa.performance.figures import Figure, Goal, alone, compared, figures_of, growth, skipped, table
from mdqa.performance.measuring import Measured, Sample

MB = 1_000_000


def samples(*seconds: float, peak: int | None = 3 * MB, before: int | None = MB) -> list[Sample]:
    return [Sample(value, value / 2, before, peak) for value in seconds]


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    figure = compared("a.time", "s", [2.0, 30.0, 3.0], [1.0, 10.0, 3.0], "b", goal=Goal(1.05))
    assert (figure.value, figure.low, figure.high) == (3.0, 2.0, 30.0)
    assert figure.baseline == 3.0
    assert (figure.ratio, figure.ratio_low, figure.ratio_high) == (2.0, 1.0, 3.0)  # not 3.0 / 3.0
    assert figure.n == 3


def test_no_ratio_to_nothing() -> None:
    figure = compared("a", "MB", [1.0, 2.0], [0.0, 1.0], "b", goal=Goal(1.05))
    assert figure.ratio is None
    assert figure.to_row()["met"] is None


def test_rounds_must_pair_up() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compared("a", "s", [1.0, 2.0], [1.0], "b")
    with pytest.raises(ValueError, match="no values"):
        alone("a", "s", [])


@pytest.mark.parametrize(
    ("goal", "ratio", "met", "text"),
    [
        (Goal(1.05), 1.05, True, "<= 1.05"),
        (Goal(1.05), 1.06, False, "<= 1.05"),
        (Goal(5, at_least=True), 5.0, True, ">= 5"),
        (Goal(5, at_least=True), 4.9, False, ">= 5"),
    ],
)
def test_goals(goal: Goal, ratio: float, met: bool, text: str) -> None:
    row = compared("a", "s", [ratio], [1.0], "b", goal=goal).to_row()
    assert (row["goal"], row["met"]) == (text, met)


def test_rows_have_what_the_command_line_promises() -> None:
    row = json.loads(json.dumps(compared("a.time", "s", [2.0], [1.0], "b", tokens=7).to_row()))
    assert {"name", "value", "unit", "baseline", "ratio", "low", "high", "n", "tokens", "goal"} <= set(row)
    assert (row["value"], row["baseline"], row["ratio"], row["tokens"]) == (2.0, 1.0, 2.0, 7)


def test_four_quantities_of_a_variant() -> None:
    measured = Measured({"a": samples(2.0, 4.0), "b": samples(1.0, 1.0, peak=2 * MB)})
    found = {figure.name: figure for figure in figures_of(measured, "a", "b", goals={"time": Goal(5)}, tokens=9)}
    assert list(found) == ["a.time", "a.processor_time", "a.peak_memory", "a.added_memory"]
    assert (found["a.time"].value, found["a.time"].ratio) == (3.0, 3.0)
    assert found["a.processor_time"].value == 1.5
    assert (found["a.peak_memory"].value, found["a.peak_memory"].ratio) == (3.0, 1.5)
    assert (found["a.added_memory"].value, found["a.added_memory"].ratio) == (2.0, 2.0)
    assert [figure.goal for figure in found.values()] == [Goal(5), None, None, None]
    assert {figure.tokens for figure in found.values()} == {9}


def test_memory_that_cannot_be_read_is_said_and_not_made_up() -> None:
    measured = Measured({"a": samples(1.0, peak=None, before=None), "b": samples(1.0, peak=None, before=None)})
    time, _, peak, added = figures_of(measured, "a", "b", memory="unavailable: no peak can be read on mps")
    assert time.ratio == 1.0
    for figure in (peak, added):
        assert (figure.value, figure.ratio) == (None, None)
        assert "unavailable" in figure.note


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_variant_that_was_not_run_says_why(missing: str) -> None:
    measured = Measured({name: samples(1.0) for name in ("a", "b") if name != missing}, {missing: "would need 69 GB"})
    for figure in figures_of(measured, "a", "b"):
        assert figure.value is None
        assert figure.note == f"skipped: {missing} would need 69 GB"


def test_growth_divides_the_ratio_at_the_longest_by_that_at_the_shortest() -> None:
    middle, long, short = (
        compared("a.time", "s", [ratio], [1.0], "b", tokens=tokens)
        for ratio, tokens in ((9.0, 2800), (1.5, 8000), (1.2, 1000))
    )
    figure = growth("growth", [middle, long, short], Goal(1.05))
    assert (figure.value, figure.baseline, figure.tokens) == (1.5, 1.2, 8000)
    assert figure.ratio == pytest.approx(1.25)
    assert figure.to_row()["met"] is False


def test_one_length_shows_no_growth() -> None:
    one = compared("a.time", "s", [1.0], [1.0], "b", tokens=1000)
    for known in ([], [one], [one, one], [one, skipped("a.time", "s", "too long", tokens=9000)]):
        assert growth("growth", known).value is None


def test_the_table_shows_every_figure_and_what_was_missed() -> None:
    figures = [
        compared("fast.time", "s", [1.0], [1.0], "plain", goal=Goal(1.05), tokens=2800),
        compared("slow.time", "s", [2.0], [1.0], "plain", goal=Goal(1.05)),
        skipped("large.time", "s", "would need 69.0 GB"),
        Figure("heavy.peak_memory", 12345.6, "MB"),
    ]
    lines = table(figures).splitlines()
    assert len(lines) == 5
    assert "2,800" in lines[1]
    assert "<= 1.05" in lines[1]
    assert lines[1].endswith("met")
    assert lines[2].endswith("MISSED")
    assert lines[3].endswith("skipped: would need 69.0 GB")
    assert "12,346 MB" in lines[4]
