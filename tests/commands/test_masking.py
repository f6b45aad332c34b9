"""``python -m mdqa masking`` with the scripted backend: lines, summary, resumption, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.commands.masking import summary, table
from mdqa.methods.cafe.masking import MODES

pytestmark = pytest.mark.usefixtures("own_places")


def questions(path: Path, count: int = 3, **more: object) -> Path:
    """The last question has one piece of evidence, the others two."""
    lines = []
    for number in range(count):
        texts = [
            ("Velden", f"The river Ostra{number} flows through Velden."),
            ("Bread", "Rye bread keeps for a week."),
            ("Source", f"The Ostra{number} rises near Kolm."),
            ("Tea", "Tea is hot."),
        ]
        documents = [
            {"id": f"d{i}", "title": t, "text": x, "gold": i == 0 or (i == 2 and number < count - 1)}
            for i, (t, x) in enumerate(texts)
        ]
        line = {"id": f"q{number}", "question": "Which river flows through Velden?", "answers": [f"Ostra{number}"]}
        lines.append({**line, "documents": documents, "meta": {}, **more})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def masking(folder: Path, *more: object, output: object = None, source: Path | None = None) -> int:
    source = source or questions(folder / "in.jsonl")
    fixed = ("--model", "scripted", "--quiet", "--input", source, "--output", output or folder / "out.jsonl")
    return main(["masking", *map(str, (*fixed, *more))])


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_summary_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert masking(tmp_path, "--seed", 5, "--set", "max_new_tokens=9") == 0
    rows = lines(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    assert list(rows[0]["modes"]) == list(MODES)
    assert list(rows[2]["modes"]) == [m for m in MODES if "2" not in m and "all" not in m]
    assert rows[0]["config"] == {"rows": "question_to_end_and_generated", "max_new_tokens": 9}
    assert rows[0]["seed"] == 5
    none = rows[0]["modes"]["none"]
    assert none["answer"] == "The river Ostra0 flows through Velden."
    assert none["sub_em"] == 1.0
    hidden = rows[0]["modes"]["question_to_all_evidence"]
    assert hidden["masked"] == ["d0", "d2"]
    assert hidden["sub_em"] == 0.0
    assert hidden["cost"]["cached_tokens"] > 0.9 * hidden["cost"]["prompt_tokens"]  # the documents' pass is shared
    assert rows[0]["modes"]["evidence2_to_evidence1"]["sub_em"] == 1.0  # the question still sees everything
    calls = [row["cost"]["llm_calls"] for row in rows]
    assert calls == [len(row["modes"]) + 1 for row in rows]
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert list(found) == list(MODES)
    assert found["none"] == {"sub_em": 1.0, "low": 1.0, "high": 1.0, "n": 3}
    assert found["question_to_all_evidence"]["n"] == 2
    assert found["question_to_all_evidence"]["change"] == -1.0
    assert [line.split("  ")[0] for line in printed.err.splitlines()[-7:]] == list(MODES.values())


def test_rows_are_an_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert masking(tmp_path, "--rows", "question", "--limit", 1) == 0
    assert lines(tmp_path / "out.jsonl")[0]["config"]["rows"] == "question"
    assert masking(tmp_path, "--rows", "question_to_end") == 2
    assert "rows='question' instead of 'question_to_end'" in capsys.readouterr().err
    assert masking(tmp_path, "--rows", "all") == 2
    assert masking(tmp_path, "--set", "rows=question") == 2
    assert "--rows" in capsys.readouterr().err


def test_goes_on_after_a_torn_line_and_sums_up_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = questions(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    assert masking(tmp_path, source=source) == 0
    whole, first = capsys.readouterr().out, out.read_bytes()
    out.write_bytes(first[: first.rindex(b'{"id"') + 60])
    assert masking(tmp_path, source=source) == 0
    printed = capsys.readouterr()
    assert "torn" in printed.err
    assert "2 of 3 questions are done already" in printed.err
    assert printed.out == whole
    assert [row["id"] for row in lines(out)] == ["q0", "q1", "q2"]
    assert out.read_bytes().startswith(first[: first.rindex(b'{"id"')])
    assert masking(tmp_path, source=source) == 0  # nothing is left to do, the summary is there all the same
    assert capsys.readouterr().out == whole


def test_lines_to_standard_output_keep_it_to_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert masking(tmp_path, output="-") == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["id"] for line in printed.out.splitlines()] == ["q0", "q1", "q2"]
    assert "question -> evidence 1" in printed.err
    assert masking(tmp_path, "--summary", tmp_path / "s.json", output="-") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert json.loads((tmp_path / "s.json").read_text())["none"]["n"] == 3
    assert masking(tmp_path, "--summary", "-", output="-") == 2
    assert masking(tmp_path, "--summary", tmp_path / "out.jsonl") == 2


def test_failed_questions_are_lines_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = questions(tmp_path / "in.jsonl", 2)
    rows = lines(source)
    rows[1]["documents"][1]["text"] = "word " * 9000
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert masking(tmp_path, source=source) == 1
    good, bad = lines(tmp_path / "out.jsonl")
    assert (good["status"], bad["status"]) == ("ok", "failed")
    assert bad["error"]["type"] == "PromptTooLong"
    printed = capsys.readouterr()
    assert "question 'q1' failed" in printed.err
    assert json.loads(printed.out)["none"]["n"] == 1
    assert masking(tmp_path, "--retry-failed", source=source) == 1
    assert len(lines(tmp_path / "out.jsonl")) == 2


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({"answers": []}, "3 have no answer"),
        ({"documents": [{"id": "a", "text": "Tea is hot."}]}, "3 have no document marked as evidence"),
    ],
)
def test_questions_that_say_nothing_are_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict, count: str
) -> None:
    assert masking(tmp_path, source=questions(tmp_path / "in.jsonl", **change)) == 2
    assert count in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_summary_by_hand() -> None:
    def row(none: float, hidden: float | None, status: str = "ok") -> dict:
        modes = {"none": {"sub_em": none}}
        return {
            "status": status,
            "modes": modes if hidden is None else {**modes, "question_to_evidence1": {"sub_em": hidden}},
        }

    found = summary([row(1, 0), row(1, 1), row(0, 0), row(0, None), {"status": "failed"}])
    assert found["none"]["sub_em"] == 0.5
    assert found["none"]["n"] == 4
    hidden = found["question_to_evidence1"]
    assert hidden["n"] == 3
    assert hidden["sub_em"] == pytest.approx(1 / 3)
    assert hidden["change"] == pytest.approx(-1 / 3)  # against no mask on the same three questions
    assert hidden["low"] <= hidden["sub_em"] <= hidden["high"]
    assert summary([{"status": "failed"}]) == {}
    assert "no question" in table({})
