"""``report`` from the command line, on result files as ``answer`` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.registry import REPORTS
from mdqa.reports.duquad.ablations import VARIANTS
from tests.reports.builders import duquad, question, run

ITEMS = [question(f"q{i}") for i in range(3)]


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", *(item.model_dump(mode="json") for item in ITEMS))


@pytest.fixture
def answered(tmp_path: Path) -> list[Path]:
    said = dict.fromkeys(VARIANTS, ("Danube", ("d1",)))
    runs = {
        "direct": [run(item, "direct", id=f"direct-{item.id}") for item in ITEMS],
        "duquad": [duquad(item, ablations=said, options={"compare_ablations": True}) for item in ITEMS],
    }
    return [write(tmp_path / f"{name}.jsonl", *(r.to_line() for r in made)) for name, made in runs.items()]


def test_all_reports_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(REPORTS)
    assert sum(line.startswith("  needs: ") for line in lines) == len(REPORTS)


def test_a_report_of_several_files(questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    fixed = ["report", "ablations", "--results", *map(str, answered), "--input", str(questions)]
    capsys.readouterr()
    assert main([*fixed, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["name"], found["n"], found["needs"], err) == ("ablations", 6, "", "")
    assert [row["key"] for row in found["rows"][:4]] == ["duquad", "without_local", "without_global", "without_pruning"]
    assert found["rows"][4]["variant"] == "direct"
    output = questions.with_name("report.md")
    assert main([*fixed, "--output", str(output)]) == 0
    text = output.read_text(encoding="utf-8")
    assert text.startswith("## DuQUAD, its ablations") and "| w/o Local Agent |" in text
    assert capsys.readouterr().out == ""
    before = questions.read_bytes()
    assert main([*fixed, "--output", str(questions)]) == 2
    assert questions.read_bytes() == before


def test_what_is_missing_is_said(questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", "stability", "--results", str(answered[0]), "--input", str(questions)]) == 1
    out, err = capsys.readouterr()
    assert "Needs finished DuQUAD runs of two models or more" in out
    assert err.startswith("stability: needs finished DuQUAD runs of two models or more")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense", "--results", "R", "--input", "Q"], "unknown report 'nonsense'; there is: ablations"),
        (["ablations", "--results", "R"], "--input"),
        (["--results", "R", "--input", "Q"], "name a report"),
        (["ablations", "--results", "R", "R", "--input", "Q"], "twice"),
        (["ablations", "--results", "missing.jsonl", "--input", "Q"], "missing.jsonl"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], words: str, questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"R": str(answered[0]), "Q": str(questions)}
    capsys.readouterr()
    assert main(["report", *(names.get(argument, argument) for argument in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_two_files_must_not_disagree_about_a_question(
    tmp_path: Path, questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "other.jsonl", question("q0", documents=2).model_dump(mode="json"))
    capsys.readouterr()
    inputs = ["--input", str(questions), str(questions)]
    assert main(["report", "costs", "--results", str(answered[0]), *inputs]) == 0
    assert main(["report", "costs", "--results", str(answered[0]), "--input", str(questions), str(other)]) == 2
    assert "different question with the id 'q0'" in capsys.readouterr().err
