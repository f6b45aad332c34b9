"""``diagnose`` from the command line: on files that ``answer`` wrote, on a database, and on bad arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdqa.__main__ import main
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.records import Question
from mdqa.registry import method_class
from mdqa.run import begin, run_one
from storage.store import Store


def record(number: int, answer: str, *, gold: str = "a") -> dict[str, Any]:
    texts = {"a": "The Danube flows through Vienna.", "b": "Bread is baked in ovens.", "c": f"Town {number} sleeps."}
    return {
        "id": f"q{number}",
        "question": "Which river flows through Vienna?",
        "answers": [answer],
        "documents": [{"id": name, "text": text, "gold": name == gold} for name, text in texts.items()],
    }


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """One question answered rightly, one whose evidence is not ranked first, one whose accepted answer is another."""
    path = tmp_path / "in.jsonl"
    rows = [record(0, "Danube"), record(1, "ovens", gold="b"), record(2, "Donau")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answered(tmp_path: Path, questions: Path, *more: str) -> Path:
    file = tmp_path / "results.jsonl"
    fixed = ["--method", "retrieve_read", "--model", "scripted", "--set", "top_k=1", "--quiet"]
    assert main(["answer", *fixed, "--input", str(questions), "--output", str(file), *more]) == 0
    return file


def lines(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def test_what_answer_wrote(tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = answered(tmp_path, questions)
    capsys.readouterr()
    assert main(["diagnose", "--results", str(file), "--input", str(questions)]) == 0
    (dropped, wrong, summary), err = lines(capsys)
    assert (dropped["id"], dropped["verdict"], dropped["stage"], dropped["doc_ids"]) == (
        "q1",
        "dropped",
        "retrieval",
        ["b"],
    )
    (lost,) = dropped["detail"]["lost"]
    assert (lost["signal"], lost["rank"], lost["of"], lost["instead"]) == ("bm25", 2, 3, ["a"])
    assert (wrong["id"], wrong["verdict"]) == ("q2", "read_but_wrong")
    assert (summary["summary"], summary["n"], summary["right"], summary["wrong"]) == ("retrieve_read", 3, 1, 2)
    assert (summary["verdicts"]["dropped"], summary["config"]) == (1, {"top_k": 1})
    assert ["dropped", "1", "(1)"] in [line.split() for line in err.splitlines()]
    assert "retrieve_read top_k=1" in err


def test_answers_in_another_setting_are_read_with_their_source(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = answered(tmp_path, questions, "--setting", "no_gold")
    ids = [json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert ids == ["q0@no_gold", "q1@no_gold", "q2@no_gold"]
    capsys.readouterr()
    assert main(["diagnose", "--results", str(file), "--input", str(questions)]) == 0
    rows, _ = lines(capsys)
    assert {row["verdict"] for row in rows[:-1]} == {"gold_not_in_input"}


def stored(store: Store, item: Question, method: str = "direct", **config: str) -> str:
    """A stored run as the page makes it; its id."""
    header = begin(method, method_class(method).Config.parse(config), item, Tools(ScriptedBackend()))
    store.runs.begin(header)
    outcome = run_one(header, Tools(ScriptedBackend()), sink=lambda event: store.runs.record(header.id, event))
    assert outcome.result.status == "ok", outcome.result.error
    store.runs.finish(outcome.result, outcome.maps)
    return header.id


def test_people_and_the_database(tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "mdqa.db"
    file = answered(tmp_path, questions)
    said = json.loads(file.read_text(encoding="utf-8").splitlines()[2])["answer"]
    with Store.open(database) as store:
        right = stored(store, Question.model_validate(record(0, "Danube")))
        accepted = stored(store, Question.model_validate(record(2, "Donau")), "retrieve_read", top_k="1")
        for run_id, verdicts in ((accepted, (True, True, False)), (right, (True, False))):
            for number, verdict in enumerate(verdicts):
                store.annotations.add(run_id, "correct", verdict, annotator=f"person {number}")
        assert store.runs.get(accepted).answer == said
    capsys.readouterr()
    arguments = ["diagnose", "--db", str(database)]
    assert main([*arguments, "--results", str(file), "--input", str(questions)]) == 0
    (_, mismatch, _), _ = lines(capsys)
    assert (mismatch["id"], mismatch["verdict"], mismatch["also"]) == ("q2", "metric_mismatch", [])
    assert main(arguments) == 0
    rows, _ = lines(capsys)
    assert [(row["run"], row["verdict"]) for row in rows if "verdict" in row] == [(accepted, "metric_mismatch")]
    assert {row["summary"]: (row["right"], row["wrong"]) for row in rows if "summary" in row} == {
        "direct": (1, 0),
        "retrieve_read": (0, 1),
    }


def test_only_a_database_knows_what_the_model_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    item = Question.model_validate(record(0, "flows through Vienna"))
    with Store.open(tmp_path / "mdqa.db") as store:
        run_id = stored(store, item)
        written = [event.output for event in store.runs.events(run_id) if event.kind == "model_call"]
        answer = store.runs.get(run_id).answer
    capsys.readouterr()
    assert main(["diagnose", "--db", str(tmp_path / "mdqa.db"), "--metric", "em"]) == 0
    (row, _), _ = lines(capsys)
    assert "flows through Vienna" in written[0]
    assert (row["verdict"], row["stage"], row["detail"]["extracted"]) == ("wrong_extraction", "answer", answer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what is to be diagnosed"),
        (["--results", "x.jsonl"], "belong together"),
        (["--db", "nowhere.db"], "nowhere.db: there is no such database"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", *arguments]) == 2
    assert message in capsys.readouterr().err
