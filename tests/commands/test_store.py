"""Runs from result files into the database: the same runs, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.names import named
from mdqa.benchmarks.placing import Placeable
from mdqa.commands.options import questions_in
from mdqa.commands.results import input_digest
from mdqa.diagnosis.facets import VERSION
from mdqa.result_lines import lines_of, results_in
from storage.runs import RunFilter
from storage.store import Store
from tests.methods.cafe.helpers import place_question

QUESTIONS = [place_question(4, i % 4, f"q{i}") for i in range(3)]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results of an evaluation of two entries at two places of the evidence."""
    monkeypatch.setenv("MDQA_DATABASE", str(tmp_path / "mdqa.db"))
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))
    lines = [json.dumps(item.model_dump(mode="json")) + "\n" for item in QUESTIONS]
    (tmp_path / "in.jsonl").write_text("".join(lines), encoding="utf-8")
    fixed = ["--methods", "vanilla,duquad", "--positions", "1,3", "--model", "scripted", "--quiet"]
    assert main(["evaluate", *fixed, "--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out")]) == 0
    return tmp_path / "out" / "results.jsonl"


def store(results: Path) -> int:
    return main(["store", "--results", str(results), "--input", str(results.parents[1] / "in.jsonl")])


def test_every_run_is_stored_as_it_is_and_once(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(results) == 0
    assert "runs added: 12; " in capsys.readouterr().err
    items = questions_in(results.parents[1] / "in.jsonl", "auto", "all", None)
    questions = Placeable(named(item, "in") for item in items)  # the file's name is their benchmark
    runs = [run for _, run in results_in(lines_of(results), questions, input_digest, file="f")]
    with Store.open(results.parents[1] / "mdqa.db") as database:
        assert [database.runs.get(run.id) for run in runs] == runs
        assert {database.runs.row(run.id).correct for run in runs} <= {True, False}
        assert database.runs.benchmarks() == ["in"] and database.runs.unfaceted(VERSION) == []
        wrong = database.runs.facets(RunFilter(correct="wrong"))
        assert sum(wrong.values["diagnosis"].values()) == wrong.total
    assert store(results) == 0
    assert "runs added: 0, 12 of the file were there already; " in (said := capsys.readouterr().err)
    assert said.endswith(" holds 12 now\n")


def test_what_a_killed_call_began_is_finished(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = Placeable(questions_in(results.parents[1] / "in.jsonl", "auto", "all", None))
    first = next(run for _, run in results_in(lines_of(results), questions, input_digest, file="f"))
    with Store.open(results.parents[1] / "mdqa.db") as database:
        database.runs.begin(first)
    assert store(results) == 0
    assert "runs added: 12; " in capsys.readouterr().err
    with Store.open(results.parents[1] / "mdqa.db") as database:
        assert database.runs.get(first.id) == first


def test_a_file_that_is_none_is_refused_by_its_line(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.write_text("{broken\n", encoding="utf-8")
    assert store(results) == 2
    assert "line 1" in capsys.readouterr().err
