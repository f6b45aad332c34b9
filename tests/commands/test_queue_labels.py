"""``export``, ``import-labels`` and ``labels``: people's labels out of the database, into another one, and into use."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.base import in_split, read_questions
from mdqa.calibration import read_profile
from storage.label_files import snapshot
from storage.store import Store
from tests.reports.builders import question, run
from tests.ui.labelled import ALPHA, KAPPA, QUEUE, SAME, fill


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "mdqa.db"
    with Store.open(path) as store:
        fill(store)
    return path


def export(database: Path, what: str, output: Path | str, *more: str) -> int:
    return main(["export", "--what", what, "--output", str(output), "--db", str(database), *more])


def test_labels_travel_to_an_empty_database(database: Path, tmp_path: Path) -> None:
    lines, other = tmp_path / "labels.jsonl", tmp_path / "other.db"
    assert export(database, "labels", lines) == 0
    assert main(["import-labels", "--input", str(lines), "--db", str(other)]) == 0
    with Store.open(database) as one, Store.open(other) as two:
        assert snapshot(one) == snapshot(two)
    assert main(["import-labels", "--input", str(lines), "--db", str(other)]) == 1  # it is there already
    assert main(["import-labels", "--input", str(lines), "--db", str(other), "--queue", "x"]) == 2


def test_agreement_as_lines_and_as_a_table(database: Path, tmp_path: Path) -> None:
    assert export(database, "agreement", tmp_path / "a.jsonl") == 0
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    pair = {row["coefficient"]: row["value"] for row in rows if (row["one"], row["two"]) == ("ann", "bob")}
    assert pair == pytest.approx({"percent": SAME, "cohen": KAPPA, "krippendorff": ALPHA})
    assert export(database, "agreement", tmp_path / "a.csv", "--format", "csv", "--queue", QUEUE.lower()) == 0
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(rows)


def test_evidence_is_a_file_of_questions(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(database, "evidence", tmp_path / "e.jsonl") == 0
    assert "8 questions with evidence (0 more without a majority)" in capsys.readouterr().err
    assert {question.gold_ids for question in read_questions(tmp_path / "e.jsonl")} == {("d1",)}


def test_heads_are_found_by_what_people_marked(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))
    about = ("--method", "cafe", "--model", "scripted", "--db", str(database), "--quiet")

    def calibrate(name: str, *more: str) -> int:
        return main(["calibrate", *about, "--name", name, "--output", str(tmp_path / f"{name}.json"), *more])

    assert calibrate("old", "--queue", QUEUE, "--split", "held-out", "--report", "0") == 0
    assert calibrate("new", "--queue", QUEUE, "--before", str(tmp_path / "old.json")) == 0
    profile = read_profile(tmp_path / "new.json")
    assert profile.data == f"evidence marked in {QUEUE!r} (calibration)"
    assert profile.n == len(list(in_split([question(f"q{n}") for n in range(1, 9)], "calibration")))
    assert "before: old" in capsys.readouterr().err  # both on the other half
    assert calibrate("x") == 2 and calibrate("x", "--queue", QUEUE, "--input", "x.jsonl") == 2
    assert "either --input FILE or --queue NAME" in capsys.readouterr().err
    assert calibrate("x", "--queue", "nowhere") == 2
    assert "choose a queue" in capsys.readouterr().err


def test_a_data_set_is_a_folder(database: Path, tmp_path: Path) -> None:
    assert export(database, "dataset", tmp_path / "set") == 0
    card = (tmp_path / "set" / "README.md").read_text(encoding="utf-8")
    assert (
        card.startswith('---\npretty_name: "Labels of Local and Global disagree"\n')
        and "path: data/items.jsonl" in card
    )
    first = json.loads((tmp_path / "set" / "data" / "items.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert [label["annotator"] for label in first["labels"]] == ["annotator_1", "annotator_2"]
    assert [candidate["key"] for candidate in first["candidates"]] == ["local_agent", "global_agent"]
    assert export(database, "dataset", tmp_path / "set") == 1  # nothing is overwritten
    assert export(database, "dataset", tmp_path / "named", "--names") == 0
    assert '"annotator": "ann"' in (tmp_path / "named" / "data" / "items.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("dataset", "-"),
        ("labels", "-", "--format", "sqlite"),
        ("runs", "-", "--queue", QUEUE),
        ("evidence", "-", "--names"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together(database: Path, arguments: tuple[str, ...]) -> None:
    what, output, *more = arguments
    assert export(database, what, output, *more) == 2


def test_judge_and_threshold(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = ["labels", "judge", "--db", str(database)]
    assert main([*fixed, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"][-1]["outcome"] == "Disagreement"
    assert report["rows"][-1]["judge"] == pytest.approx(2 / 5)
    assert main(["labels", "threshold", "--db", str(database), "--output", str(tmp_path / "t.md")]) == 0
    assert "0.61, after" in (tmp_path / "t.md").read_text(encoding="utf-8")
    assert main(["labels", "no_filter", "--db", str(database)]) == 1
    assert "treatment nf" in capsys.readouterr().err
    assert main(["labels", "judge", "--queue", "none", "--db", str(database)]) == 2
    assert "choose a queue; there is: 'Local and Global disagree'" in capsys.readouterr().err


def test_labels_made_elsewhere(database: Path, tmp_path: Path) -> None:
    other, file = tmp_path / "other.db", tmp_path / "ls.json"
    with Store.open(other) as store:
        made = run(question("q1"), id="r1")
        store.runs.begin(made.model_copy(update={"status": "running"}))
        store.runs.finish(made)
    result = [{"from_name": "c", "type": "choices", "value": {"choices": ["Right"]}}]
    file.write_text(json.dumps([{"data": {"run": "r1"}, "annotations": [{"completed_by": 3, "result": result}]}]))
    fixed = ["import-labels", "--input", str(file), "--db", str(other)]
    assert main(fixed) == 2
    assert main([*fixed, "--queue", "LS"]) == 2
    assert main([*fixed, "--queue", "LS", "--map", "Right=first", "--people", "3=ann"]) == 0
    with Store.open(other) as store:
        assert [(entry.annotator, entry.label) for entry in store.labels.counting("LS")] == [("ann", "first")]
