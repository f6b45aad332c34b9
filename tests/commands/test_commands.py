"""The short commands, called in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdqa.__main__ import COMMANDS, main
from mdqa.calibration import read_profile, typed_options, write_profile
from mdqa.commands.options import choose_profile, json_line, parse_set
from mdqa.errors import ConfigError, ProfileError
from mdqa.records import Profile
from mdqa.registry import CALIBRATIONS, METHODS, load, method_class
from storage.export import export
from storage.store import Store

DATA = Path(__file__).parents[2].parent / "shared" / "data"


pytestmark = pytest.mark.usefixtures("own_places")


def profile(name: str = "mine", method: str = "madara", model: str = "scripted") -> Profile:
    return Profile(name=name, method=method, model=model, data="d", n=3, seed=1, created="2026-01-01T00:00:00+00:00")


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in COMMANDS:
        assert name in overview
        assert main([name, "--help"]) == 0
        assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["answer"], ["route", "--what"]])
def test_bad_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("package", ["pydantic", "rank_bm25"])
def test_a_package_that_is_missing_is_named(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from mdqa.__main__ import main; sys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2 and done.stderr == (
        f"mdqa: the package {package!r} is missing; run: pip install -r requirements.txt\n"
    )


# The published measurements of the paper's tables 2 and 4 with the treatment each got.
PUBLISHED = [
    (".76,.43,.08", ".139", "pde"),
    (".65,.49,.10", ".887", "atf"),
    (".28,.09,.01", ".907", "cot"),
    (".39,.04,.14", ".608", "sda"),
    (".46,-.26,.08", ".599", "sda"),
]


@pytest.mark.parametrize(("rho", "nf", "treatment"), PUBLISHED)
def test_route(rho: str, nf: str, treatment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "--rho", rho, "--nf", nf]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["treatment"] == treatment
    assert {"class", "coupling", "margins", "alternatives"} <= set(found)


def test_route_takes_thresholds_and_negative_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "--rho", ".65,.49,.10", "--nf", ".887", "--set", "tau_nf=0.9"]) == 0
    assert json.loads(capsys.readouterr().out)["treatment"] == "pde"
    assert main(["route", "--rho", "-0.1,.2,.3"]) == 0
    assert json.loads(capsys.readouterr().out)["treatment"] == "sda"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rho", "1,2"],
        ["--rho", "a,b,c"],
        ["--rho", ".1,.2,nan"],
        ["--rho", ".1,.2,7"],
        ["--rho", ".3,.2,.1", "--nf", "13.9"],
        ["--rho", ".3,.2,.1", "--nf", "x"],
        ["--rho", ".3,.2,.1", "--set", "tau=0.1"],
        [],
    ],
)
def test_route_refuses(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", *arguments]) == 2
    problem = capsys.readouterr()
    assert problem.out == ""
    assert len(problem.err.splitlines()) == 1


def test_score_finds_the_mismatch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {"metric": "squad_v1_em", "prediction": "The Ostra", "answers": ["ostra"], "expected": 1.0},
        {"metric": "squad_v1_em", "prediction": "Danube", "answers": ["ostra"], "expected": 1.0},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(cases[0]) + "\n")
    assert main(["score", "--cases", str(path)]) == 0
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    capsys.readouterr()
    assert main(["score", "--cases", str(path)]) == 1
    output = capsys.readouterr().out.splitlines()
    assert len(output) == 1
    assert "line 2" in output[0]
    path.write_text("{broken\n")
    assert main(["score", "--cases", str(path)]) == 2


def test_score_agrees_with_the_official_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "metric_cases.jsonl"
    if not path.is_file():
        pytest.skip("needs ../shared/data/metric_cases.jsonl")
    assert main(["score", "--cases", str(path)]) == 0, capsys.readouterr().out


def test_methods_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "--output", "-"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == list(METHODS)
    for row in rows:
        assert set(row["options"]) == set(method_class(row["name"]).Config.model_fields)
    assert main(["methods"]) == 0
    readable = capsys.readouterr().out
    assert all(row["summary"].split()[0] in readable for row in rows)


def test_models_says_what_each_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--output", str(tmp_path / "models.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "models.jsonl").read_text().splitlines()]
    assert "builtin" in {row["id"] for row in rows}
    assert all(row["needs"] for row in rows)
    assert capsys.readouterr().out == ""


def test_profiles_come_from_the_database_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "mdqa.db") as store:
        store.profiles.save(profile())
    assert main(["profiles", "--output", "-", "--model", "scripted"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["name"], row["where"]) for row in rows] == [("mine", "database")]
    assert main(["profiles", "--method", "nothing"]) == 0
    assert "no such profile" in capsys.readouterr().out


def test_export_of_an_empty_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--output", "-"]) == 2
    assert "no such database" in capsys.readouterr().err
    Store.open(tmp_path / "mdqa.db").close()
    assert main(["export", "--output", str(tmp_path / "runs.csv"), "--format", "csv"]) == 0
    assert "0 runs" in capsys.readouterr().err
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1
    assert main(["export", "--output", "-", "--what", "nonsense"]) == 2


def test_outputs_that_are_no_files_stay_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store.open(tmp_path / "mdqa.db").close()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (["export"], ["methods"], ["route", "--rho", ".3,.2,.1"]):
        assert main([*arguments, "--output", str(pipe)]) == 2
        assert "device or a pipe" in capsys.readouterr().err
        assert pipe.is_fifo()
    with Store.open(tmp_path / "mdqa.db") as store, pytest.raises(ConfigError, match="device or a pipe"):
        export(store, pipe)
    assert pipe.is_fifo()


def test_calibration_refuses_places_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = questions_file(tmp_path / "in.jsonl")
    before = source.read_bytes()
    fixed = ["calibrate", "--method", "cafe", "--model", "scripted", "--input", str(source), "--name", "x", "--replace"]
    assert main([*fixed, "--output", str(source)]) == 2
    assert "the same file" in capsys.readouterr().err
    assert source.read_bytes() == before
    assert main([*fixed, "--db", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert "is a folder" in message
    assert len(message.splitlines()) == 1, "before the questions were read"
    assert main(["profiles", "--db", str(tmp_path)]) == 1


def test_messages_are_one_line_without_control_characters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"question": "x", "\x1b[2J\nkey": 1}))
    arguments = ["--method", "direct", "--model", "scripted", "--input", str(path), "--output", "-"]
    assert main(["answer", *arguments]) == 2
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 1
    assert "\\x1b[2J key" in message
    assert "\x1b" not in message


def test_score_takes_numbers_beyond_all_floats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"metric": "f1", "prediction": "a", "answers": ["a"], "expected": 10**400}))
    assert main(["score", "--cases", str(path)]) == 1
    assert "1 mismatches" in capsys.readouterr().err


def test_a_home_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MDQA_DATABASE", "~nobody-of-this-name/mdqa.db")
    assert main(["profiles"]) == 2
    assert "MDQA_DATABASE" in capsys.readouterr().err


def test_set_reads_lists_and_leaves_text() -> None:
    assert parse_set(["a=1", "b=[1, 2]", "c=null", "d=x=y", "e="]) == {
        "a": "1",
        "b": [1, 2],
        "c": None,
        "d": "x=y",
        "e": "",
    }
    for bad in (["a"], ["=1"], ["a=1", "a=2"], ["a=[1"]):
        with pytest.raises(ConfigError):
            parse_set(bad)


def test_lines_survive_lone_surrogates() -> None:
    line = json_line({"text": "é \ud800"})
    assert "é" in line
    assert json.loads(line.encode("utf-8"))["text"] == "é \ud800"


def test_calibration_options_get_their_types() -> None:
    cafe, madara = (load(CALIBRATIONS, name) for name in ("cafe", "madara"))
    assert typed_options(cafe, {"k1": "3", "shuffle": "false"}) == {"k1": 3, "shuffle": False}
    assert typed_options(madara, {"max_questions": "3"}) == {"max_questions": 3}
    for given in ({"k1": "many"}, {"nothing": "1"}, {"seed": "1"}):
        with pytest.raises(ConfigError, match=next(iter(given))):
            typed_options(cafe, given)


def questions_file(path: Path) -> Path:
    documents = [
        {"id": "a", "title": "Velden", "text": "The river Ostra flows through Velden.", "gold": True},
        {"id": "b", "title": "Bread", "text": "Rye bread keeps for a week.", "gold": False},
    ]
    rows = [
        {"id": f"q{i}", "question": "Which river flows through Velden?", "answers": ["Ostra"], "documents": documents}
        for i in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("method", list(CALIBRATIONS))
def test_a_calibrated_profile_is_used_by_name(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = questions_file(tmp_path / "in.jsonl")
    fixed = ["--method", method, "--model", "scripted", "--input", str(source)]
    make = ["calibrate", *fixed, "--name", "mine", "--split", "all", "--quiet"]
    assert main(make) == 0, capsys.readouterr().err
    assert main(make) == 2
    assert "--replace" in capsys.readouterr().err
    assert main([*make, "--replace"]) == 0
    assert main([*make, "--output", str(tmp_path / "p.json")]) == 0
    assert read_profile(tmp_path / "p.json").data == "in.jsonl (all)"
    for number, name in enumerate(("mine", str(tmp_path / "p.json"))):
        out = tmp_path / f"out{number}.jsonl"
        arguments = ["answer", *fixed, "--profile", name, "--output", str(out), "--limit", "1", "--quiet"]
        assert main(arguments) == 0, capsys.readouterr().err
        row = json.loads(out.read_text())
        assert (row["status"], row["profile"]) == ("ok", "mine")


def test_a_missing_profile_is_said_before_the_first_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = questions_file(tmp_path / "in.jsonl")
    out = tmp_path / "out.jsonl"
    fixed = ["--method", "cafe", "--model", "scripted", "--input", str(source), "--output", str(out)]
    assert main(["answer", *fixed]) == 2
    assert "calibrate" in capsys.readouterr().err
    assert main(["answer", *fixed, "--profile", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
    assert not out.exists()


def test_profile_files(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    write_profile(profile(), path)
    assert read_profile(path) == profile()
    assert choose_profile("madara", "scripted", str(path), ()) == profile()
    with pytest.raises(ProfileError, match="was made for madara"):
        choose_profile("cafe", "scripted", str(path), ())
    with pytest.raises(ProfileError, match="mine"):
        choose_profile("madara", "scripted", "other", (profile(),))
    assert choose_profile("madara", "scripted", "mine", (profile(),)) == profile()
    path.write_text('{"name": 1}')
    with pytest.raises(ProfileError, match=r"p\.json"):
        read_profile(path)
