"""What holds for every report of DuQUAD: it says what it needs, takes any run, and is consistent in itself."""

from __future__ import annotations

import json

import pytest

from mdqa.records import RunResult
from mdqa.registry import REPORTS, load
from mdqa.reports.base import Report, to_json, to_markdown
from tests.methods.duquad.helpers import QUESTION, run_duquad
from tests.reports.builders import duquad, placed, question, run


@pytest.fixture(scope="module")
def real() -> list[RunResult]:
    """Runs of the method itself (scripted replies), with their ablations, gold documents marked, two models."""
    marked = QUESTION.with_documents(tuple(d.model_copy(update={"gold": d.id == "d2"}) for d in QUESTION.documents))
    runs = []
    for name in ("a", "b"):
        item = marked.model_copy(update={"id": name})
        result = run_duquad(item=item, compare_ablations=True).result
        assert result.status == "ok", result.error
        runs += [result, result.model_copy(update={"id": f"{name}-other", "model": "other"})]
    return runs


NAMES = [name for name, place in REPORTS.items() if place.startswith(("mdqa.reports.duquad.", "mdqa.reports.costs:"))]

UNUSABLE = [
    run(question(), "direct", status="failed"),
    run(question("x", answers=(), gold=()), "duquad"),
    duquad(question("y", documents=1), local=None, overall=None, options={"without_pruning": True}),
    duquad(question("z", gold=(), answers=()), doc_scores={"d1": None}, signals={"sim": (1.0, 1.0, 1.0, 1.0)}),
    duquad(question("w"), attention=()),
    run(question("v"), "a method of long ago", config={"k": "many"}),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_report_of_nothing_says_what_it_needs(name: str) -> None:
    report: Report = load(REPORTS, name)(())
    assert (report.name, report.n, report.rows) == (name, 0, ())
    assert report.title and "DuQUAD, " in report.source
    assert report.needs.startswith("finished") and "python -m mdqa answer" in report.needs


@pytest.mark.parametrize("name", NAMES)
def test_any_run_is_taken(name: str) -> None:
    for runs in (UNUSABLE, UNUSABLE[:1], [duquad(item) for item in placed(question(), 1, 2)]):
        report: Report = load(REPORTS, name)(runs)
        assert bool(report.rows) != bool(report.needs)
        json.loads(to_json(report))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "local_rankers"])
def test_runs_of_the_method_give_every_report(name: str, real: list[RunResult]) -> None:
    report: Report = load(REPORTS, name)(real)
    assert not report.needs and report.n == len(real)
    assert report.chart is not None and report.columns[0].key == "group"
    keys = {column.key for column in report.columns}
    for row in report.rows:
        assert keys - set(row) <= {"auc", "auc_pooled"}, "every column has its value, if only None"
        drawn = {report.chart.x, report.chart.y, report.chart.series, report.chart.low, report.chart.high} - {""}
        assert drawn <= set(row)
        for key, value in row.items():
            if key.endswith("_low") and value is not None:
                middle, high = row[key.removesuffix("_low")], row[f"{key.removesuffix('_low')}_high"]
                assert isinstance(value, float) and isinstance(middle, float) and isinstance(high, float)
                assert value <= middle + 1e-12 and middle <= high + 1e-12, key
    assert Report.model_validate(json.loads(to_json(report))) == report
    assert to_markdown(report).count("\n| ") == len(report.rows) + 2
