"""``python -m mdqa evaluate``: files, resuming, and reports whose numbers come from the lines."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from mdqa.__main__ import main
from tests.commands.test_answer import ROOT, command, environment
from tests.evaluation.helpers import QUESTIONS, without_times

pytestmark = pytest.mark.usefixtures("own_places")


def write_input(path: Path, copies: int = 1) -> Path:
    items = [item.model_copy(update={"id": f"{item.id}-{copy}"}) for copy in range(copies) for item in QUESTIONS]
    path.write_text("".join(item.model_dump_json() + "\n" for item in items))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_input(tmp_path / "in.jsonl")


def arguments(source: Path, *more: str, methods: str = "vanilla,bm25:top_k=1", output: str = "out") -> list[str]:
    fixed = ["evaluate", "--input", str(source), "--output", str(source.with_name(output)), "--model", "scripted"]
    return [*fixed, *(["--methods", methods] if methods else []), "--quiet", *more]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def keys(folder: Path) -> list[tuple[str, str]]:
    return [(line["entry"], line["id"]) for line in lines(folder)]


def test_writes_results_and_reports(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(source, "--positions", "1,3", "--limit", "2", "--seed", "7")) == 0
    out = tmp_path / "out"
    placed = ["q0-0@p1", "q0-0@p3", "q1-0@p1", "q1-0@p3"]
    assert keys(out) == [(entry, item) for entry in ("vanilla", "bm25 top_k=1") for item in placed]
    assert {line["seed"] for line in lines(out)} == {7}
    found = json.loads((out / "report.json").read_text())
    assert [row["entry"] for row in found["entries"]] == ["vanilla", "bm25 top_k=1"]
    assert found["entries"][1]["config"] == {"top_k": 1}
    assert (found["questions"], found["runs"]) == (2, 8)
    assert [part["position"] for part in found["placements"]] == [1, 3]
    answers = [line["answer"] for line in lines(out) if line["entry"] == "vanilla"]
    right = [f"The river Ostra{i} flows through Velden" in a for i, a in zip((0, 0, 1, 1), answers, strict=True)]
    assert found["entries"][0]["sub_em"]["mean"] == sum(right) / 4
    again = next(line for line in (out / "report.md").read_text().splitlines() if line.startswith("python -m mdqa"))
    before = {name: (out / name).read_bytes() for name in ("results.jsonl", "report.json", "report.md")}
    (out / "report.json").unlink()
    capsys.readouterr()
    assert main(again.split()[3:]) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert main(["score", "--results", str(out / "results.jsonl"), "--input", str(source)]) == 0
    assert [json.loads(row) for row in capsys.readouterr().out.splitlines()] == found["entries"]


def test_settings_of_the_documents_hold_for_all_entries(source: Path, tmp_path: Path) -> None:
    """One file may hold several settings: each is a place of the report, beside the questions as given."""
    limits = ("--limit", "2")
    for setting in ((), ("--setting", "oracle"), ("--setting", "no_gold")):
        assert main(arguments(source, *limits, *setting)) == 0
    found = {(line["entry"], line["id"]): line["stages"][0]["documents"] for line in lines(tmp_path / "out")}
    assert len(found) == 2 * 2 * 3
    for entry in ("vanilla", "bm25 top_k=1"):
        assert found[entry, "q0-0"] == ["a", "b", "c"]
        assert found[entry, "q0-0@oracle"] == ["a"]
        assert found[entry, "q0-0@no_gold"] == ["b", "c"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [part["placement"] for part in report["placements"]] == ["as given", "no gold", "oracle"]
    vanilla = {part["placement"]: part["entries"][0]["sub_em"]["mean"] for part in report["placements"]}
    assert vanilla["oracle"] == 1.0 and vanilla["no gold"] == 0.0


def test_without_documents_only_what_can_answer_so(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(source, "--setting", "closed_book")) == 2
    assert "entry 'bm25 top_k=1': the method retrieve_read cannot answer without" in capsys.readouterr().err
    assert main(arguments(source, "--setting", "closed_book", "--limit", "1", methods="vanilla")) == 0
    (line,) = lines(tmp_path / "out")
    assert (line["id"], line["status"], line["stages"][0]["documents"]) == ("q0-0@closed_book", "ok", [])


def test_more_entries_and_questions_take_what_is_there(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(arguments(source, "--limit", "2", methods="a=bm25")) == 0
    first = lines(out)
    assert main(arguments(source, "--limit", "3", methods="vanilla,a=bm25")) == 0
    ids = ["q0-0", "q1-0", "q2-0"]
    assert keys(out) == [(entry, item) for entry in ("vanilla", "a") for item in ids]
    assert [line for line in lines(out) if line["entry"] == "a"][:2] == first
    unchanged = (out / "results.jsonl").read_bytes()
    assert main(arguments(source, "--limit", "1", methods="a=bm25")) == 0
    assert sorted(keys(out)) == sorted((entry, item) for entry in ("vanilla", "a") for item in ids)
    assert len(json.loads((out / "report.json").read_text())["entries"]) == 2, "a report is about the whole file"
    assert sorted((out / "results.jsonl").read_bytes().splitlines()) == sorted(unchanged.splitlines())


def test_other_settings_under_the_same_label_are_refused(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(source, methods="a=bm25", output="out")) == 0
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    for changed in (arguments(source, methods="a=bm25:top_k=1"), arguments(source, "--seed", "1", methods="a=bm25")):
        capsys.readouterr()
        assert main(changed) == 2
        assert "other settings" in capsys.readouterr().err
    write_input(source, 1).write_text(source.read_text().replace("Rye bread", "White bread"))
    assert main(arguments(source, methods="a=bm25")) == 2
    assert "documents of question 'q0-0'" in capsys.readouterr().err
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


def test_files_of_answer_and_evaluate_do_not_mix(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(arguments(source, "--limit", "1", methods="vanilla")) == 0
    fixed = ["--model", "scripted", "--method", "direct", "--input", str(source), "--limit", "1", "--quiet"]
    assert main(["answer", *fixed, "--output", str(out / "results.jsonl")]) == 2
    assert "entry 'vanilla' instead of None" in capsys.readouterr().err
    assert main(["answer", *fixed, "--output", str(tmp_path / "a.jsonl")]) == 0
    results = [str(out / "results.jsonl"), str(tmp_path / "a.jsonl")]
    assert main(["score", "--results", *results, "--input", str(source)]) == 2
    assert "score it alone" in capsys.readouterr().err
    (tmp_path / "a.jsonl").replace(out / "results.jsonl")
    assert main(arguments(source, methods="vanilla")) == 2
    assert "no line of evaluate" in capsys.readouterr().err


def test_failures_are_recorded_and_can_be_run_again(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(row) for row in source.read_text().splitlines()]
    rows[1]["documents"][1]["text"] = "word " * 9000
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(arguments(source)) == 1
    out = tmp_path / "out"
    assert [line["status"] for line in lines(out)] == ["ok", "failed", "ok", "ok", "ok", "ok"] * 2
    err = capsys.readouterr().err
    assert "vanilla: question 'q1-0' failed" in err
    assert "2 of 12 runs failed" in err
    found = json.loads((out / "report.json").read_text())
    assert [(row["n"], row["failed"]) for row in found["entries"]] == [(5, 1), (5, 1)]
    assert found["entries"][0]["errors"][0]["type"] == "PromptTooLong"
    assert main(arguments(source)) == 1, "they are kept"
    assert main(arguments(source, "--retry-failed", "--overflow", "shorten")) == 0
    ids = [f"q{i}-0" for i in range(6)]
    assert keys(out) == [(entry, item) for entry in ("vanilla", "bm25 top_k=1") for item in ids], "back in their places"
    assert {line["status"] for line in lines(out)} == {"ok"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--methods", "nothing"], "unknown method"),
        (["--methods", "cafe"], "calibrate"),
        (["--methods", "vanilla", "--positions", "9"], "no question can be placed"),
        (["--methods", "vanilla", "--positions", "1,1"], "twice"),
        (["--methods", "vanilla", "--positions", "0"], "above zero"),
        (["--methods", "vanilla", "--setting", "oracle", "--positions", "1"], "leaves nothing to place"),
        (["--methods", "vanilla", "--setting", "closed_book", "--documents", "2"], "says how many there are"),
        (["--methods", "vanilla", "--models", "a,b"], "--model and --models"),
        (["--report-only"], "results.jsonl: there is no such file"),
        ([], "one of the arguments"),
        (["--methods", "vanilla", "--plan", "p.json"], "not allowed"),
    ],
)
def test_bad_arguments_are_one_line(
    source: Path, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(source, *more, methods="")) == 2
    err = capsys.readouterr().err
    assert words in err
    assert not source.with_name("out").joinpath("report.md").exists()


def test_a_killed_evaluation_goes_on_to_the_same_file(tmp_path: Path) -> None:
    source = write_input(tmp_path / "in.jsonl", copies=40)
    process = subprocess.Popen(command(*arguments(source)), cwd=ROOT, env=environment(tmp_path), stderr=subprocess.PIPE)
    results = tmp_path / "out" / "results.jsonl"
    deadline = time.monotonic() + 120
    while not results.exists() or results.read_bytes().count(b"\n") < 20:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not (tmp_path / "out" / "report.json").exists()
    written = results.read_bytes()[: results.read_bytes().rfind(b"\n") + 1]
    assert 20 <= written.count(b"\n") < 480
    results.write_bytes(written + b'{"id": "q')  # at worst, the kill left half a line
    assert main(arguments(source)) == 0
    assert main(arguments(source, output="whole")) == 0
    assert results.read_bytes().startswith(written)
    killed, whole = (list(map(without_times, lines(tmp_path / name))) for name in ("out", "whole"))
    assert killed == whole
    assert _without_seconds(tmp_path / "out") == _without_seconds(tmp_path / "whole")


def _without_seconds(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "report.json").read_text())
    for row in found["entries"]:
        row.pop("median_seconds")
        for costs in (row["cost"], row.get("cost_ratio", {})):
            costs.pop("seconds", None)
    return found


def test_lines_that_come_in_another_order_are_put_in_theirs(source: Path, tmp_path: Path) -> None:
    """As after an evaluation with several workers."""
    assert main(arguments(source)) == 0
    results = tmp_path / "out" / "results.jsonl"
    whole = results.read_bytes()
    results.write_bytes(b"".join(whole.splitlines(keepends=True)[::-1][2:]))
    assert main(arguments(source)) == 0
    assert [without_times(line) for line in lines(tmp_path / "out")] == [
        without_times(json.loads(line)) for line in whole.splitlines()
    ]
