"""``score --results`` from the command line, on files that ``answer`` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main


def write_questions(path: Path, *, text: str = "The Danube flows through Vienna.") -> Path:
    rows = [
        {
            "id": f"q{i}",
            "question": "Which river flows through Vienna?",
            "answers": ["Danube"],
            "documents": [
                {"id": "a", "text": text, "gold": True},
                {"id": "b", "text": "Bread is baked.", "gold": False},
                {"id": "c", "text": f"Town {i} has a market.", "gold": False},
            ],
        }
        for i in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_questions(tmp_path / "in.jsonl")


@pytest.fixture
def answered(tmp_path: Path, questions: Path) -> list[Path]:
    files = []
    for method, options in (("direct", []), ("retrieve_read", ["--set", "top_k=1"])):
        file = tmp_path / f"{method}.jsonl"
        arguments = ["--method", method, "--model", "scripted", "--input", str(questions), "--output", str(file)]
        assert main(["answer", *arguments, "--quiet", *options]) == 0
        files.append(file)
    return files


def test_scores_of_what_answer_wrote(questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["score", "--results", *map(str, answered), "--input", str(questions)]) == 0
    out, err = capsys.readouterr()
    direct, ranked = map(json.loads, out.splitlines())
    assert (direct["file"], direct["method"], direct["model"]) == (str(answered[0]), "direct", "scripted")
    assert (ranked["n"], ranked["failed"], ranked["config"]) == (3, 0, {"top_k": 1})
    assert ranked["sub_em"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "n": 3}
    assert direct["stages"]["input"]["kept"] == {"mean": 3.0, "low": 3.0, "high": 3.0, "n": 3}
    assert ranked["stages"]["retrieval"]["kept"]["mean"] == 1
    assert ranked["stages"]["retrieval"]["gold_recall"]["mean"] == 1.0
    assert ranked["median"]["prompt_tokens"] < direct["median"]["prompt_tokens"]
    assert ranked["difference"]["to"] == str(answered[0])
    assert ranked["difference"]["f1"]["n"] == 3
    same = {"to": str(answered[0]), "metric": "em", "b": 0, "c": 0, "p": 1.0, "n": 3, "p_holm": 1.0}
    assert ranked["mcnemar"] == same
    assert "mcnemar" not in direct
    assert "exact McNemar test on EM" in err
    assert "SubEM" in err
    assert "100.0 [100.0, 100.0]" in err


def test_scores_go_to_a_file(questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    output = questions.with_name("scores.jsonl")
    capsys.readouterr()
    fixed = ["score", "--results", str(answered[0]), "--input", str(questions), "--output"]
    assert main([*fixed, str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(output.read_text())["n"] == 3
    before = answered[0].read_bytes(), questions.read_bytes()
    for source in (answered[0], questions):
        assert main([*fixed, str(source)]) == 2
        assert "the same file" in capsys.readouterr().err
    assert (answered[0].read_bytes(), questions.read_bytes()) == before


def test_files_that_do_not_belong_together(
    questions: Path, answered: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ["score", "--results", str(answered[0]), "--input", str(questions)]
    write_questions(questions, text="The Mur flows through Graz.")
    capsys.readouterr()
    assert main(fixed) == 2
    assert f"{answered[0]}, line 1: the documents of question 'q0' are other ones" in capsys.readouterr().err
    write_questions(questions)
    answered[0].write_bytes(answered[0].read_bytes()[:-20])
    assert main(fixed) == 2
    out, err = capsys.readouterr()
    assert f"{answered[0]}, line 3: broken JSON" in err
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the arguments --results --cases is required"),
        (["--results", "r", "--cases", "c"], "not allowed with argument"),
        (["--results", "r"], "needs --input"),
        (["--results", "r", "./r", "--input", "q"], "names a file twice"),
        (["--cases", "c", "--input", "q"], "belong to --results"),
        (["--cases", "c", "--output", "o"], "belong to --results"),
        (["--results", "absent.jsonl", "--input", "absent-too.jsonl"], "absent-too.jsonl"),
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_result_file_that_is_not_there(questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (tmp_path / "absent.jsonl", tmp_path):
        assert main(["score", "--results", str(place), "--input", str(questions)]) == 2
        assert f"{place}: cannot be read" in capsys.readouterr().err
