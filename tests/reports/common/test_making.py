"""Every report that is listed: says what it is and what it needs, takes any runs, has what its picture shows."""

from __future__ import annotations

import json

import pytest

from mdqa.errors import ConfigError
from mdqa.registry import REPORTS
from mdqa.reports.base import to_json, to_markdown
from mdqa.reports.making import make, uses
from tests.methods.madara.helpers import make_profile
from tests.reports.builders import duquad, question, run


@pytest.mark.parametrize("name", REPORTS)
def test_without_anything(name: str):
    report = make(name, ())
    assert report.name == name and report.needs and report.source.endswith(".") and not report.rows
    assert report.title in to_markdown(report)


@pytest.mark.parametrize("name", REPORTS)
def test_with_runs_that_say_nothing(name: str):
    bare = question("q", answers=(), documents=0)
    strange = [run(bare, method) for method in ("direct", "duquad", "madara", "cafe", "in_context", "another")]
    report = make(name, [*strange, run(question("f"), status="failed", answer=""), duquad(bare, local=None)])
    assert json.loads(to_json(report))["name"] == name
    assert bool(report.rows) != bool(report.needs)


@pytest.mark.parametrize("name", REPORTS)
def test_rows_have_what_the_picture_shows(name: str):
    runs = [run(question("a"), "direct"), run(question("a"), "cafe"), duquad(question("a"))]
    report = make(name, runs, [make_profile()])
    if report.rows and report.chart:
        keys = {report.chart.x, report.chart.y, report.chart.series, report.chart.low, report.chart.high} - {""}
        assert keys <= {key for row in report.rows for key in row}


def test_who_takes_profiles():
    assert uses("madara_coupling", "profiles") and not uses("accuracy", "profiles")
    with pytest.raises(ConfigError, match="unknown report"):
        make("nonsense", ())
