"""From No-Filter answers over people's verdicts to a profile: the page's runs, the log, ``calibrate --labels``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.backends.scripted import ScriptedBackend
from mdqa.calibration import read_profile
from mdqa.methods.base import Tools
from mdqa.records import Question
from mdqa.registry import method_class
from mdqa.run import begin, run_one
from storage.store import Store
from tests.methods.cafe.helpers import place_question


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDQA_MODEL", "scripted")
    monkeypatch.setenv("MDQA_DATABASE", str(tmp_path / "mdqa.db"))
    monkeypatch.setenv("MDQA_CACHE", str(tmp_path / "cache"))


QUESTIONS = tuple(
    place_question(3, i % 3, f"q{i}").model_copy(update={"answers": (), "question": f"Which river is in place {i}?"})
    for i in range(5)
)


def answer(store: Store, item: Question, method: str = "madara", **config: str) -> str:
    """A stored run as the page makes it; its id."""
    tools, cls = Tools(ScriptedBackend()), method_class(method)
    header = begin(method, cls.Config.parse(config), item, tools)
    store.runs.begin(header)
    outcome = run_one(header, tools, sink=lambda event: store.runs.record(header.id, event))
    assert outcome.result.status == "ok", outcome.result.error
    store.runs.finish(outcome.result, outcome.maps)
    return header.id


def say(store: Store, run_id: str, *verdicts: bool) -> None:
    for number, right in enumerate(verdicts):
        store.annotations.add(run_id, "correct", right, annotator=f"person {number}")


def calibrate(tmp_path: Path, questions: tuple[Question, ...], *more: str, method: str = "madara") -> int:
    path = tmp_path / "questions.jsonl"
    lines = [item.model_dump(mode="json") | {"id": f"here {item.id}"} for item in questions]  # ids differ, content not
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    output = tmp_path / "profile.json"
    fixed = ["--name", "mine", "--output", str(output), "--replace", "--split", "all", "--quiet", "--report", "0"]
    quick = {"bootstrap": 0, "control": "false", "measure_relevance": "false"} if method == "madara" else {}
    options = [part for name, value in quick.items() for part in ("--set", f"{name}={value}")]
    return main(["calibrate", "--method", method, "--input", str(path), *fixed, *options, *more])


def test_verdicts_become_no_filter_accuracy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        for item, verdicts in zip(QUESTIONS, [(True, True, False), (False,), (True, False), (True,), ()], strict=True):
            say(store, answer(store, item, treatment="nf"), *verdicts)
        say(store, answer(store, QUESTIONS[4], "direct"), True)  # other words than MADARA's generator: does not count
    assert calibrate(tmp_path, QUESTIONS, "--labels") == 0
    said = capsys.readouterr().err
    assert "people judged 3 of 5 questions without gold answers; 1 more are left out" in said
    profile = read_profile(tmp_path / "profile.json")
    assert profile.values["nf_source"] == "labels"
    assert profile.values["nf"]["n"] == 3
    assert profile.values["nf"]["em_squad"] == pytest.approx(2 / 3)
    assert calibrate(tmp_path, QUESTIONS) == 0
    assert read_profile(tmp_path / "profile.json").values["nf"] is None
    assert main(["export", "--what", "annotations", "--output", "-"]) == 0
    labels = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [label["value"] for label in labels] == [True, True, False, False, True, False, True, True]
    assert {label["model"] for label in labels} == {"scripted"}


def test_labels_of_queues_come_before_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        runs = [answer(store, item, treatment="nf") for item in QUESTIONS[:3]]
        say(store, runs[0], True)
        say(store, runs[2], True)
        for run_id in runs[:2]:  # both wrong, say people who saw nothing but the answers
            store.queues.send(run_id, "No-Filter", "ann")
        while (form := store.assignments.next_item("No-Filter", "ann")) is not None:
            store.labels.answer(form.token, "ann", "neither")
    assert calibrate(tmp_path, QUESTIONS, "--labels") == 0
    assert "people judged 3 of 5 questions without gold answers" in capsys.readouterr().err
    nf = read_profile(tmp_path / "profile.json").values["nf"]
    assert (nf["n"], nf["em_squad"]) == (3, pytest.approx(1 / 3))


def test_gold_answers_come_before_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        say(store, answer(store, QUESTIONS[0], treatment="nf"), True)
        say(store, answer(store, QUESTIONS[1], treatment="nf"), True)
    known = tuple(item.model_copy(update={"answers": ("nowhere",)}) for item in QUESTIONS[1:3])
    assert calibrate(tmp_path, (QUESTIONS[0], *known), "--labels") == 0
    assert "people judged 1 of 1 questions without gold answers" in capsys.readouterr().err
    nf = read_profile(tmp_path / "profile.json").values["nf"]
    assert (nf["n"], nf["em_squad"]) == (3, pytest.approx(1 / 3))
    assert calibrate(tmp_path, known, "--labels") == 0
    assert read_profile(tmp_path / "profile.json").values["nf_source"] == "gold"


def test_only_heads_are_measured_beside_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(tmp_path, QUESTIONS, "--before", "mine") == 2
    assert "--before: the calibration of madara measures no other profile" in capsys.readouterr().err
    assert calibrate(tmp_path, QUESTIONS, "--before", "mine", method="cafe") == 2
    assert "no profile 'mine' for cafe" in capsys.readouterr().err


def test_without_labels_it_says_so_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(tmp_path, QUESTIONS, "--labels") == 2
    assert "there is no such database" in capsys.readouterr().err
    with Store.open(tmp_path / "mdqa.db") as store:
        say(store, answer(store, QUESTIONS[0], treatment="three_agent"), True)
        say(store, answer(store, QUESTIONS[1], treatment="nf"), True, False)
    assert calibrate(tmp_path, QUESTIONS, "--labels") == 2
    error = capsys.readouterr().err
    assert "people judged 0 of 5 questions without gold answers; 1 more are left out" in error
    assert "madara and treatment nf" in error and "leave out --labels" in error
    assert calibrate(tmp_path, QUESTIONS, "--labels", method="cafe") == 2
    assert "--labels: the calibration of cafe does not measure answers" in capsys.readouterr().err
    assert not (tmp_path / "profile.json").exists()
