"""``calibrate`` and ``heads``: several files, the report on other questions, and going on after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.base import in_split, read_questions
from mdqa.calibration import read_profile
from mdqa.passes import Passes
from mdqa.records import Question
from tests.methods.cafe.helpers import place_question
from tests.tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("own_places")


def write(path: Path, questions: list[Question]) -> Path:
    path.write_text("".join(q.model_dump_json() + "\n" for q in questions), encoding="utf-8")
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    one = write(tmp_path / "one.jsonl", [place_question(5, i % 5, f"one{i}") for i in range(12)])
    two = write(tmp_path / "two.jsonl", [place_question(6, i % 6, f"two{i}") for i in range(12)])
    return [str(one), str(two)]


def ids(path: str, split: str) -> list[str]:
    return [item.id for item in in_split(read_questions(Path(path)), split)]


def test_several_files_and_the_report_on_other_questions(inputs, tmp_path, capsys) -> None:
    output = tmp_path / "p.json"
    make = ["calibrate", "--method", "cafe", "--model", "scripted", "--input", *inputs, "--name", "both", "--quiet"]
    assert main([*make, "--limit", "4", "--report", "3", "--output", str(output)]) == 0
    message = capsys.readouterr().err
    profile = read_profile(output)
    used = sum(min(len(ids(path, "calibration")), 4) for path in inputs)
    assert profile.n == used
    assert profile.data == "one.jsonl, two.jsonl (calibration)"
    assert profile.values["quality"]["n"] == sum(min(len(ids(path, "held-out")), 3) for path in inputs)
    assert set(profile.values["chosen"]) == {"coarse", "fine"}
    assert len(profile.values["chosen"]["coarse"]) == 4
    assert "retrieval heads" in message
    assert not list((tmp_path / "cache").rglob("*.npz")), "finished work leaves no pieces"
    assert main([*make, "--limit", "4", "--report", "0", "--replace", "--output", str(output)]) == 0
    assert "quality" not in read_profile(output).values


def test_heads_measures_a_profile(inputs, tmp_path, capsys) -> None:
    profile, output = tmp_path / "p.json", tmp_path / "heads.jsonl"
    fixed = ["--model", "scripted", "--input", *inputs, "--quiet"]
    assert main(["calibrate", "--method", "cafe", *fixed, "--name", "x", "--output", str(profile)]) == 0
    assert main(["heads", "--profile", str(profile), *fixed, "--output", str(output)]) == 0
    row = json.loads(output.read_text(encoding="utf-8"))
    assert row["n"] == sum(len(ids(path, "held-out")) for path in inputs)
    assert [r["name"] for r in row["rows"]] == ["retrieval heads", "all heads", "BM25", "all-MiniLM-L6-v2"]
    assert row["rows"] == read_profile(profile).values["quality"]["rows"]
    capsys.readouterr()
    assert main(["heads", *fixed]) == 2
    assert "calibrate" in capsys.readouterr().err
    bare = write(tmp_path / "bare.jsonl", [place_question(3, 9, f"b{i}") for i in range(6)])
    assert main(["heads", "--profile", str(profile), "--model", "scripted", "--input", str(bare)]) == 2
    assert "marked as evidence" in capsys.readouterr().err
    unmarked = ["--input", str(bare), "--split", "all", "--name", "y"]
    assert main(["calibrate", "--method", "cafe", "--model", "scripted", *unmarked]) == 2
    assert "gold marks" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_calibration_goes_on_and_ends_the_same(inputs, tmp_path) -> None:
    """SIGKILL in the middle on a real (tiny) model; the second attempt uses what the first one had finished."""
    folder = tmp_path / "model"
    tiny_model("llama").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    many = str(write(tmp_path / "many.jsonl", [place_question(40, i, f"many{i}") for i in range(40)]))

    def calibrate(name: str) -> list[str]:
        arguments = ["--method", "cafe", "--model", str(folder), "--input", many, "--split", "all", "--report", "0"]
        output = ["--name", name, "--output", str(tmp_path / f"{name}.json"), "--quiet"]
        return [sys.executable, "-m", "mdqa", "calibrate", *arguments, *output]

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pieces = Passes.for_profile(tmp_path / "cache", "cafe", str(folder), "killed")
    process = subprocess.Popen(calibrate("killed"), cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while pieces.count() < 5 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    found = pieces.count()
    assert 5 <= found < 80
    assert not (tmp_path / "killed.json").exists()
    again = subprocess.run(calibrate("killed"), cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert f"{found} finished pieces of an earlier attempt" in again.stderr
    subprocess.run(calibrate("whole"), cwd=ROOT, env=environment, capture_output=True, check=True)
    killed, whole = (read_profile(tmp_path / f"{name}.json") for name in ("killed", "whole"))
    assert killed.values == whole.values
    assert pieces.count() == 0
