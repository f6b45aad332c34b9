"""``report`` from what is no file of ``answer``: profiles, masking results, the results of an evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.calibration import write_profile
from mdqa.records import RunResult
from storage.store import Store
from tests.methods.madara.helpers import make_profile
from tests.reports.builders import question, run

pytestmark = pytest.mark.usefixtures("own_places")


def written(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def entry(name: str, result: RunResult) -> dict[str, object]:
    return {**result.to_line(), "entry": name}


def test_profiles_by_name_and_file(tmp_path: Path, own_places: Path, capsys: pytest.CaptureFixture[str]):
    with_store = Store.open(own_places)
    with_store.profiles.save(make_profile().model_copy(update={"name": "stored"}))
    with_store.close()
    write_profile(make_profile((0.1, 0.2, 0.3)), tmp_path / "mine.json")
    command = ["report", "madara_coupling", "--profile", "stored", str(tmp_path / "mine.json"), "madara-builtin"]
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["class"] for row in found["rows"]] == ["quality-ordered", "stochastic", "stochastic"]
    assert (found["n"], found["counted"]) == (3, "profile")
    assert main(command) == 0 and "n = 3 profiles." in capsys.readouterr().out


def test_masking_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    modes = {"none": {"sub_em": 1.0}, "question_to_evidence1": {"sub_em": 0.0}}
    line = {"id": "q", "method": "masking", "model": "m", "status": "ok", "modes": modes, "config": {}}
    file = written(tmp_path / "masking.jsonl", line)
    assert main(["report", "cafe_masking", "--masking", file]) == 0
    assert "-100.0" in capsys.readouterr().out
    other = written(tmp_path / "other.jsonl", {**line, "method": "direct"})
    assert main(["report", "cafe_masking", "--masking", other]) == 2
    assert "other.jsonl, line 1" in capsys.readouterr().err


def test_results_of_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    item = question("q")
    results = written(
        tmp_path / "results.jsonl",
        entry("plain", run(item)),
        entry("other", run(item, "in_context", answer="Rhine")),
    )
    questions = written(tmp_path / "questions.jsonl", item.model_dump(mode="json"))
    arguments = ["--results", results, "--input", questions, "--format", "json"]
    assert main(["report", "accuracy", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["variant"], row["sub_em"], row["sub_em_change"]) for row in rows] == [
        ("direct", 1.0, None),
        ("in_context", 0.0, -1.0),
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("accuracy", "--profile", "madara-builtin"), "takes no profiles"),
        (("madara_coupling", "--masking", "x"), "takes no masking"),
        (("madara_coupling", "--profile", "nonsense"), "madara-builtin"),
        (("madara_coupling",), "--results"),
        (("--profile", "madara-builtin"), "name a report"),
    ],
)
def test_what_does_not_belong(arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]):
    assert main(["report", *arguments]) == 2
    assert problem in capsys.readouterr().err
