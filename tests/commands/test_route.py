"""``route``: given measurements, profiles, cells and the paper's own; sweeps; a learned threshold."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mdqa.__main__ import main
from mdqa.calibration import write_profile
from storage.store import Store
from tests.methods.madara.helpers import make_profile

pytestmark = pytest.mark.usefixtures("own_places")


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["route", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["route", *arguments]) == 2
    problem = capsys.readouterr()
    assert problem.out == "" and len(problem.err.splitlines()) == 1
    return problem.err


def test_everything_a_decision_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = rows(capsys, "--rho", "0.76,0.43,0.08", "--nf", "0.139")
    assert (row["treatment"], row["class"], row["coupling"], row["router"]) == (
        "pde",
        "quality_ordered",
        "strong",
        "rsc",
    )
    assert row["margins"]["EM_NF"] == pytest.approx(-0.161) and row["thresholds"]["rho1"] == 0.5
    assert row["alternatives"] == [{"threshold": "tau_nf", "value": 0.139, "treatment": "atf"}]
    assert "name" not in row


def test_multi_hop(capsys: pytest.CaptureFixture[str]) -> None:
    measures = ("--rho", ".83,.54,.03", "--nf", ".14")
    [row] = rows(capsys, *measures, "--task", "multi-hop")
    assert row["treatment"] == "three_agent" and "multi-hop" in row["reason"]
    for task in ("auto", "factoid", "fever"):
        assert rows(capsys, *measures, "--task", task)[0]["treatment"] == "pde"


def test_entropy_beside_rsc_and_alone(capsys: pytest.CaptureFixture[str]) -> None:
    both = rows(capsys, "--rho", ".76,.43,.08", "--nf", ".9", "--entropy", "0.75")
    assert [(row["router"], row["treatment"]) for row in both] == [("rsc", "atf"), ("entropy", "sda")]
    [alone] = rows(capsys, "--entropy", "0.75", "--set", "entropy_threshold=0.8")
    assert alone["treatment"] == "cot" and alone["measures"] == {"entropy": 0.75}
    [chosen] = rows(capsys, "--rho", ".76,.43,.08", "--entropy", "0.75", "--router", "rsc")
    assert chosen["router"] == "rsc"
    assert "needs the entropy" in refused(capsys, "--rho", ".7,.4,.1", "--router", "entropy")


def test_thresholds_have_the_names_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = rows(capsys, "--rho", ".65,.49,.10", "--nf", ".887", "--set", "rho1_threshold=0.7")
    assert row["treatment"] == "cot"
    assert "entropy_threshold, rho1_threshold, tau_nf" in refused(capsys, "--nf", ".1", "--set", "kappa=1")


def test_profiles_by_name_and_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, own_places: Path) -> None:
    histogram = {"0": 5, "5": 5}
    with Store.open(own_places) as store:
        store.profiles.save(make_profile(nf=0.9, histogram=histogram).model_copy(update={"name": "mine"}))
    write_profile(make_profile(nf=None).model_copy(update={"model": "other"}), tmp_path / "p.json")
    file = str(tmp_path / "p.json")
    found = rows(capsys, "--profiles", "mine", file, "madara-builtin")
    assert [(row["name"], row["treatment"]) for row in found] == [
        ("mine (scripted)", "atf"),
        ("p (other)", "atf"),
        ("madara-builtin (builtin)", "pde"),
    ]
    assert "unknown" in found[1]["note"]
    both = rows(capsys, "--profile", "mine", "--router", "both")
    assert [row["treatment"] for row in both] == ["atf", "cot"]
    assert both[1]["measures"]["entropy"] == pytest.approx(1 / math.log2(6))
    assert "no profile 'yours'" in refused(capsys, "--profile", "yours")
    assert "given 2 times" in refused(capsys, "--profile", "mine", "mine")
    cafe = make_profile().model_copy(update={"method": "cafe"})
    write_profile(cafe, tmp_path / "cafe.json")
    assert "a profile of cafe" in refused(capsys, "--profile", str(tmp_path / "cafe.json"))


def cells_file(tmp_path: Path, *cells: object) -> str:
    path = tmp_path / "cells.jsonl"
    path.write_text("".join(f"{cell if isinstance(cell, str) else json.dumps(cell)}\n" for cell in cells))
    return str(path)


def test_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = cells_file(
        tmp_path,
        {"name": "a", "rho": [0.35, 0.22, 0.18], "nf": 0.181, "em": {"pde": 0.435, "cot": 0.228}},
        "",
        {"name": "b", "nf": 0.2, "entropy": 0.9},
    )
    assert [(r["name"], r["treatment"]) for r in rows(capsys, "--cells", path)] == [("a", "pde"), ("b", "pde")]
    swept = rows(capsys, "--cells", path, "--sweep")
    first = swept[0]
    assert (first["sweep"], first["value"], first["changed"]) == ("tau_nf", 0.15, ["a", "b"])
    assert first["treatments"] == {"a": "cot", "b": None} and first["gap"] == pytest.approx(0.207)
    assert {row["sweep"] for row in swept} == {"tau_nf", "rho1_threshold", "cot_or_three_agent"}
    assert len(swept) == 7 + 6 + 6


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1"),
        ({"rho": [0.1, 0.2, 0.3]}, "line 1: name"),
        ({"name": "x", "nf": 18.1}, "line 1: nf"),
        ({"name": "x", "rho": [0.1, 0.2]}, "line 1: rho"),
        ({"name": "x", "em": {"pde": 43.5}}, "line 1: em.pde"),
        ({"name": "x", "accuracy": 1}, "line 1: accuracy"),
    ],
)
def test_a_bad_cell_is_named(line: object, says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert says in refused(capsys, "--cells", cells_file(tmp_path, line))


def test_cells_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "cannot be read" in refused(capsys, "--cells", str(tmp_path / "none.jsonl"))
    assert "give measurements" in refused(capsys, "--cells", cells_file(tmp_path))


def test_the_paper_s_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "--published", "--sweep")
    by_tau = {row["value"]: row for row in found if row["sweep"] == "tau_nf"}
    assert {value: len(row["changed"]) for value, row in by_tau.items()} == {
        0.15: 1, 0.2: 0, 0.25: 0, 0.3: 0, 0.35: 0, 0.4: 0, 0.45: 0,
    }  # fmt: skip
    table_8 = [row for row in found if row["sweep"] == "cot_or_three_agent"]
    assert [len(row["to_cot"]) for row in table_8] == [1, 2, 2, 3, 6, 7]
    assert len(rows(capsys, "--published", "all")) == 13


def test_a_threshold_from_profiles(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = []
    for name, nf in (("weak", 0.35), ("strong", 0.55), ("stronger", 0.6), ("unknown", None)):
        write_profile(make_profile(nf=nf).model_copy(update={"name": name}), tmp_path / f"{name}.json")
        files.append(str(tmp_path / f"{name}.json"))
    learned, *decisions = rows(capsys, "--profile", *files, "--threshold-from-profiles")
    assert learned["learned"] == "tau_nf" and learned["threshold"] == pytest.approx(0.45)
    assert (learned["below"], learned["above"], learned["n"]) == (0.35, 0.55, 3)
    assert learned["without_accuracy"] == ["unknown (scripted)"]
    assert [row["treatment"] for row in decisions] == ["pde", "atf", "atf", "atf"]
    assert decisions[0]["thresholds"]["EM_NF"] == learned["threshold"]
    assert "keep the fixed one" in refused(capsys, "--profile", *files[1:], "--threshold-from-profiles")
    both = ("--profile", *files, "--threshold-from-profiles", "--set", "tau_nf=0.2")
    assert "leave out --set tau_nf" in refused(capsys, *both)


def test_tables_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["route", "--rho", ".35,.22,.18", "--nf", ".181", "--format", "table"]) == 0
    text = capsys.readouterr().out
    for words in ("Per-Document Extraction (PDE)", "margin -0.119", "with tau_nf at 0.181: CoT De-Polarization"):
        assert words in text
    assert main(["route", "--nf", ".1", "--format", "table"]) == 0
    assert main(["route", "--rho", ".3,.2,.1", "--format", "table"]) == 0
    assert "EM_NF        unknown" in capsys.readouterr().out
    assert main(["route", "--published", "--sweep", "--threshold-from-profiles", "--format", "table"]) == 0
    text = capsys.readouterr().out
    assert "--set tau_nf=0.390" in text and "0.181 to 0.599" in text
    assert "0.60  to CoT  3/10  best 9/10  mean gap 0.06 pp" in text
    assert all(len(line) <= 160 for line in text.splitlines())
    file = str(tmp_path / "x.txt")
    assert "JSON lines" in refused(capsys, "--nf", ".1", "--format", "table", "--output", file)


def test_a_decision_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert "three correlations" in refused(capsys, "--nf", "0.6")
    assert "not multi-hop" in refused(capsys, "--nf", "0.1", "--task", "multi-hop")
    assert "fraction from 0 to 1" in refused(capsys, "--nf", "13.9", "--sweep")
    assert "share from 0 to 1" in refused(capsys, "--entropy", "2.1")
