"""``python -m mdqa study`` with the scripted backend: lines of both studies, resumption, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from tests.ui.helpers import scripted_profiles

pytestmark = pytest.mark.usefixtures("own_places")


def questions(path: Path, count: int = 2) -> Path:
    """The last question has one document only."""
    lines = []
    for number in range(count):
        texts = ["The river Ostra flows through Velden.", "Rye bread keeps for a week.", "Tea is hot in Velden."]
        documents = [{"id": f"d{i}", "text": t, "gold": i == 0} for i, t in enumerate(texts)]
        line = {"id": f"q{number}", "question": "Which river flows through Velden?", "answers": ["Ostra"]}
        lines.append({**line, "documents": documents[: 1 if number == count - 1 else 3]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def study(folder: Path, kind: str, *more: object) -> int:
    source = folder / "in.jsonl"
    fixed = ("--model", "scripted", "--quiet", "--input", source, "--output", folder / "out.jsonl")
    return main(["study", kind, *map(str, (*fixed, *more))])


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]


def test_leave_one_out_writes_a_line_per_question_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions(tmp_path / "in.jsonl")
    profile = tmp_path / "cafe.json"
    profile.write_text(scripted_profiles()[0].model_dump_json(), encoding="utf-8")
    cafe = ("--method", "cafe", "--profile", profile)
    assert study(tmp_path, "leave-one-out", *cafe, "--seed", 3, "--limit", 1) == 0
    [line] = lines(tmp_path)
    assert (line["id"], line["status"], line["entry"], line["seed"]) == ("q0", "ok", "leave-one-out", 3)
    assert [row["document"] for row in line["rows"]] == ["d0", "d1", "d2"] and line["rows"][0]["gold"] is True
    assert line["base"]["correct"] is True and line["rows"][0]["without"]["correct"] is False
    assert all(row["attention"] > 0 for row in line["rows"])
    assert line["tally"]["ok"] == 3
    effects = {(c["predictor"], c["effect"]): c for c in line["correlations"]}
    assert effects["attention", "answer"]["n"] == 3
    assert 0 < line["cost"]["prefill_tokens_computed"] < line["cost"]["prompt_tokens"]
    before = (tmp_path / "out.jsonl").read_bytes()
    assert study(tmp_path, "leave-one-out", *cafe, "--seed", 3) == 1  # the second question has one document
    assert (tmp_path / "out.jsonl").read_bytes().startswith(before)
    assert "fewer than two documents" in lines(tmp_path)[1]["error"]["message"]
    assert "1 of 2 questions are done already" in capsys.readouterr().err
    assert study(tmp_path, "leave-one-out", *cafe, "--seed", 4) == 2
    assert study(tmp_path, "sweep", *cafe, "--seed", 3) == 2  # another study does not go into the same file
    assert "choose another --output" in capsys.readouterr().err


def test_a_sweep_writes_a_point_per_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions(tmp_path / "in.jsonl", 3)
    assert study(tmp_path, "sweep", "--method", "direct", "--positions", "1,3", "--limit", 2) == 0
    first, _ = lines(tmp_path)
    assert [point["position"] for point in first["points"]] == [1, 3] and first["moved"] == ["d0"]
    assert [point["outcome"]["state"] for point in first["points"]] == ["ok", "ok"]
    assert study(tmp_path, "sweep", "--method", "direct", "--positions", "1,3") == 1
    assert "'3' is none; here they are 1 to 1" in lines(tmp_path)[2]["error"]["message"]


@pytest.mark.parametrize(
    "more",
    [("--positions", "first"), ("--positions", "0"), ("--profile", "x"), ("--set", "tau=1")],
    ids=["words", "zero", "profile", "option"],
)
def test_bad_arguments_are_refused_at_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    questions(tmp_path / "in.jsonl")
    assert study(tmp_path, "sweep", "--method", "direct", *more) == 2
    assert not (tmp_path / "out.jsonl").exists()
