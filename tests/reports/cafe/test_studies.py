"""CAFE with parts left out and other settings, and the masking probes: by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mdqa.records import RunResult
from mdqa.reports.cafe import masking, studies
from mdqa.reports.duquad import local_rankers
from tests.reports.builders import duquad, question
from tests.reports.cafe.builders import cafe

SHARES = {"0-0": (0.7, 0.1, 0.1, 0.1)}


def setting(right: str, **options: Any) -> list[RunResult]:
    """One run per question; ``right`` has a 1 where it is right."""
    return [
        cafe(
            question(f"q{number}"),
            SHARES if options.get("coarse_filtering", True) else None,
            answer="Danube" if digit == "1" else "Rhine",
            options={"m1": 2, **options},
            steered=("d1",) if options.get("fine_steering", True) else (),
        )
        for number, digit in enumerate(right)
    ]


def test_ablations():
    whole, without = setting("1110"), setting("1000", coarse_filtering=False)
    mixed = setting("0110", order="random", fine_steering=False)
    found = studies.ablations([*without, *mixed, *whole])
    assert [row["setting"] for row in found.rows] == [
        "CAFE",
        "w/o coarse filtering",
        "w/o fine steering, w/o re-ranking",
    ]
    assert [row["sub_em"] for row in found.rows] == [0.75, 0.25, 0.5]
    assert [row["sub_em_change"] for row in found.rows] == [None, -0.5, -0.25]
    assert [(row["b"], row["c"]) for row in found.rows] == [(None, None), (0, 2), (0, 1)]
    assert [row["p_holm"] for row in found.rows] == [None, 1.0, 1.0]  # 2 * 0.5, 1
    assert [row["coarse_recall"] for row in found.rows] == [1.0, None, 1.0]
    assert [row["kept"] for row in found.rows] == [2.0, None, 2.0]
    assert (found.n, found.needs) == (12, "")


def test_runs_that_differ_in_more_are_no_ablation():
    found = studies.ablations([*setting("11"), *setting("00", fine_steering=False, m2=7)])
    assert found.needs and not found.rows and "4 of 4 runs are left out" in found.note


def test_granularity_and_what_is_steered_to():
    runs = [*setting("11"), *setting("10", granularity="sentence"), *setting("00", fine_steering=False)]
    rows = studies.granularity(runs).rows
    assert [row["setting"] for row in rows] == ["Document level", "Sentence level", "w/o steering"]
    assert [row["steered_recall"] for row in rows] == [1.0, 1.0, None]


def test_strength_of_steering_in_the_papers_words():
    runs = [*setting("1", delta=math.log(5)), *setting("1"), *setting("1", delta=0.0), *setting("0", delta=2.0)]
    rows = studies.delta(runs).rows
    assert [row["setting"] for row in rows] == ["log 13", "log 5", "log 1", "2"]  # the default comes first


def test_hyperparameters():
    rows = studies.hyperparameters([*setting("10", k1=2), *setting("11")]).rows
    assert [row["setting"] for row in rows] == ["K1 4, M1 2, K2 2, M2 2", "K1 2, M1 2, K2 2, M2 2"]
    assert rows[1]["sub_em_change"] == -0.5


def test_local_rankers_of_duquad():
    signals = {"sim": (0.1, 0.2, 0.3, 0.9), "ppl": (0.0,) * 4, "cont": (0.0,) * 4}
    runs = [duquad(question("a", gold=(4,)), signals=signals, options={"k": 1})]
    runs.append(duquad(question("a", gold=(4,)), answer="Rhine", options={"k": 1, "local_ranker": "bm25"}))
    rows = local_rankers.report(runs).rows
    assert [row["setting"] for row in rows] == ["Structural Fusion Score", "BM25"]
    assert [row["sub_em"] for row in rows] == [1.0, 0.0] and rows[0]["recall"] == 1.0
    assert rows[1]["recall"] is None  # its ranking was not stored
    assert local_rankers.report(runs[:1]).needs


def probe(name: str, *, plain: float, evidence: float, second: float | None = None) -> dict[str, Any]:
    modes = {"none": {"sub_em": plain}, "question_to_evidence1": {"sub_em": evidence}}
    modes |= {} if second is None else {"question_to_evidence2": {"sub_em": second}}
    return {
        "id": name,
        "method": "masking",
        "model": "m",
        "status": "ok",
        "modes": modes,
        "config": {"rows": "question"},
    }


def test_masks():
    lines = [
        probe("a", plain=1, evidence=0, second=1),
        probe("b", plain=1, evidence=1),
        {"id": "c", "status": "failed"},
    ]
    found = masking.report((), lines)
    assert [(row["mask"], row["sub_em"], row["difference"], row["n"]) for row in found.rows] == [
        ("no mask", 1.0, None, 2),
        ("question -> evidence 1", 0.5, -0.5, 2),
        ("question -> evidence 2", 1.0, 0.0, 1),
    ]
    assert found.n == 2 and "1 of 3 runs are left out" in found.note
    assert masking.report(()).needs == masking.NEEDS


@pytest.mark.parametrize("study", [studies.ablations, studies.granularity, studies.delta, studies.hyperparameters])
def test_one_setting_is_not_enough(study: Any):
    assert study(setting("11")).needs
