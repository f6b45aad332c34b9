"""``python -m mdqa bench``: what is written and what is refused, on a folder with a tiny model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.examples import examples
from mdqa.calibration import write_profile
from mdqa.methods.base import Tools
from mdqa.registry import CALIBRATIONS, load
from tests.tiny import tiny_backend, tiny_model, tiny_tokenizer

PROMISED = {"name", "value", "unit", "baseline", "ratio"}


pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model and, beside its files, a CAFE profile of it."""
    folder = tmp_path_factory.mktemp("bench") / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    questions = [one.question for one in examples() if one.question.gold_ids][:2]
    made = load(CALIBRATIONS, "cafe", "calibration")(questions, Tools(tiny_backend("llama")), name="tiny", seed=1)
    write_profile(made.model_copy(update={"model": str(folder)}), folder / "cafe.json")
    return folder


def bench(name: str, model: Path | str, output: Path, *more: object) -> int:
    fixed: Sequence[object] = (name, "--model", model, "--device", "cpu", "--output", output, "--repeats", 1)
    return main(["bench", *map(str, fixed), *map(str, more)])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_attention(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.jsonl"
    assert bench("attention", model, output, "--lengths", "9000,600") == 0
    machine, *figures = lines(output)
    assert all(set(row) >= PROMISED for row in [machine, *figures])
    assert machine["name"] == "machine"
    assert (machine["model"], machine["device"], machine["dtype"]) == (str(model), "cpu", "float32")
    assert all(machine[fact] for fact in ("cpu", "cores", "threads", "torch", "transformers", "memory_source"))
    assert {row["bench"] for row in figures} == {"attention"}
    short = {row["name"]: row for row in figures if row["tokens"] and row["tokens"] <= 600}
    assert short["captured.time"]["ratio"] > 0
    assert short["captured.time"]["goal"] == "<= 1.05"
    assert short["eager.time"]["goal"] == ">= 5"
    assert short["captured.time"]["met"] in (True, False)
    long = [row for row in figures if row["tokens"] and row["tokens"] > 8000]
    assert [row["value"] for row in long] == [None]
    assert long[0]["note"].startswith("skipped: ")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "captured.time" in captured.err
    assert "600 tokens: eager" in captured.err  # the progress bar


def test_cafe_with_a_profile_and_own_questions(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.jsonl"
    chosen = [one.question for one in examples()[:3]]
    source.write_text("".join(item.model_dump_json() + "\n" for item in chosen), encoding="utf-8")
    more = ("--profile", model / "cafe.json", "--input", source, "--limit", 2, "--quiet")
    assert bench("cafe", model, tmp_path / "out.jsonl", *more) == 0
    found = {row["name"]: row for row in lines(tmp_path / "out.jsonl")}
    assert found["cafe.time"]["n"] == 2  # one round per question
    assert found["cafe.time"]["baseline"] > 0
    assert found["cafe.documents_kept"]["baseline"] == 5.5  # of 5 and 6
    assert found["steered_prefill.rows"]["ratio"] == 1.0
    assert "it/s" not in capsys.readouterr().err


def test_madara_with_options_of_the_method(model: Path, tmp_path: Path) -> None:
    short = [f"--set={name}_max_tokens=16" for name in ("agent", "conflict")]
    source, item = tmp_path / "in.jsonl", examples()[0].question
    source.write_text(item.with_documents(item.documents[:2]).model_dump_json(), encoding="utf-8")
    more = ("--input", source, *short, "--set", "generator_max_tokens=1", "--quiet")
    assert bench("madara", model, tmp_path / "out.jsonl", *more) == 0
    found = {row["name"]: row for row in lines(tmp_path / "out.jsonl")}
    assert {row["bench"] for name, row in found.items() if name != "machine"} == {"madara"}
    assert found["assessment.one_at_a_time.time"]["ratio"] > 0
    computed = found["assessment.prompt_tokens_computed"]
    assert 0 < computed["value"] < computed["baseline"]
    assert computed["documents"] == 2
    assert found["assessment.equal_replies"]["value"] > 0
    assert found["one_at_a_time.peak_memory"]["against"] == "batched"


def test_data_to_standard_output(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("attention", model, Path("-"), "--lengths", "600", "--quiet") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["name"] == "machine"
    assert len(rows) > 10


def test_a_model_without_a_profile_leaves_an_older_output_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("older\n")
    assert bench("cafe", model, output, "--lengths", "600", "--quiet") == 2
    assert "calibrate --method cafe" in capsys.readouterr().err
    assert output.read_text() == "older\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "--output", "-"], "invalid choice: 'nothing'"),
        (["attention"], "--output"),
        (["attention", "--output", "-", "--lengths", "1000,x"], "--lengths"),
        (["attention", "--output", "-", "--lengths", "0"], "--lengths"),
        (["attention", "--output", "-", "--repeats", "0"], "not above zero"),
        (["attention", "--output", "-", "--model", "scripted"], "scripted"),
        (["attention", "--output", "-", "--lengths", "5", "--input", "x.jsonl"], "--lengths goes with made prompts"),
        (["attention", "--output", "no/such/folder/x.jsonl"], "there is no folder"),
        (["madara", "--output", "-", "--set", "treatment"], "write it as key=value"),
        (["cafe", "--output", "-", "--model", "scripted"], "scripted"),
        (["attention", "--output", "-", "--input", "missing.jsonl"], "missing.jsonl"),
        (["annotate", "--output", "-", "--model", "builtin"], "--model has no meaning for annotate"),
        (["annotate", "--output", "-", "--lengths", "600"], "--lengths has no meaning for annotate"),
        (["people", "--output", "-", "--set", "people=99", "--quiet"], "people='99' is not between 1 and 32"),
    ],
)
def test_bad_arguments(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_a_length_that_holds_no_documents(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("attention", model, Path("-"), "--lengths", "30", "--quiet") == 2
    assert "30 tokens are too few" in capsys.readouterr().err


def test_a_profile_that_does_not_exist(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("cafe", model, Path("-"), "--lengths", "600", "--profile", "nobody", "--quiet") == 2
    assert "no profile 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["attention", "cafe"])
def test_fixed_options_are_not_set(name: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--profile", model / "cafe.json", "--lengths", "600", "--set", "k=3", "--quiet")
    assert bench(name, model, Path("-"), *more) == 2
    assert f"bench {name} measures with fixed options; leave out --set k" in capsys.readouterr().err


def test_annotate_loads_no_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MDQA_MODEL", "no/such/model")
    assert main(["bench", "annotate", "--output", "-", "--set", "kill=maybe", "--quiet"]) == 2
    assert "kill='maybe' is not no, yes or both" in capsys.readouterr().err


@pytest.mark.slow
def test_the_built_in_model_needs_neither_data_nor_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MDQA_CACHE")
    output = tmp_path / "out.jsonl"
    assert bench("cafe", "builtin", output, "--lengths", "600", "--quiet") == 0
    found = {row["name"]: row for row in lines(output)}
    assert found["cafe.time"]["value"] > 0
    assert found["steered_prefill.rows"]["ratio"] == 1.0
    stopped = found["coarse_pass_stopped.time"]
    assert stopped["note"].startswith("runs ")
    assert "of 30 layers" in stopped["note"]
