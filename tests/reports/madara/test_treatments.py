"""MADARA's treatments, isolation and routing over constructed runs: by hand."""

from __future__ import annotations

import pytest

from mdqa.reports.madara import isolation, routing, treatments
from mdqa.reports.madara.stored import pairs
from tests.reports.builders import question, run
from tests.reports.madara.builders import alone, compared, many

PATTERN = {
    "nf": "100000",
    "three_agent": "111111",
    "cot": "110000",
    "sda": "000001",
    "pde": "111110",
    "pde_uniform": "111100",
    "pde_random": "110000",
}


def test_every_treatment_against_no_filter():
    found = treatments.report(many(PATTERN))
    rows = {row["key"]: row for row in found.rows}
    assert [rows[key]["em"] for key in PATTERN] == pytest.approx([digits.count("1") / 6 for digits in PATTERN.values()])
    assert rows["nf"]["em_change"] is None and rows["nf"]["p"] is None
    agents = rows["three_agent"]
    assert (agents["em_change"], agents["b"], agents["c"]) == (pytest.approx(5 / 6), 5, 0)
    assert (agents["p"], agents["odds"]) == (pytest.approx(2 / 32), None)  # no pair speaks against it
    assert agents["p_holm"] == pytest.approx(3 * 2 / 32)  # of three scoring treatments the smallest p
    assert (rows["sda"]["b"], rows["sda"]["c"], rows["sda"]["odds"]) == (1, 1, 1.0)
    assert (rows["pde"]["b"], rows["pde"]["p"]) == (4, pytest.approx(2 / 16))
    assert rows["pde"]["p_holm"] == pytest.approx(3 * 2 / 16)  # three ways of isolation are the other family
    assert rows["pde"]["lost_vote"] == pytest.approx(1 / 6) and rows["nf"]["lost_vote"] is None
    assert rows["gold_alone"]["em"] == 0.0 and rows["any_alone"]["em"] == 1.0  # d1 is gold, d2 is read well
    assert (found.n, found.needs) == (6, "")


def test_families_go_over_all_models():
    other = many({"nf": "00", "sda": "11"}, nf=None, rho=(0.2, 0.4, 0.1), model="m2")
    rows = treatments.report([*many(PATTERN), *other]).rows
    agents = next(row for row in rows if row["key"] == "three_agent")
    assert agents["p_holm"] == pytest.approx(4 * 2 / 32)


def test_runs_of_one_treatment_each_are_put_together():
    runs = [run for i in range(2) for run in (alone(i, "nf", False), alone(i, "pde", i == 0))]
    rows = {row["key"]: row for row in treatments.report(runs).rows}
    assert (rows["nf"]["em"], rows["pde"]["em"], rows["pde"]["b"], rows["pde"]["c"]) == (0.0, 0.5, 1, 0)
    [pair] = pairs([*runs, alone(0, "pde", False, created="2026-12-01T00:00:00+00:00")])
    assert pair.em == {"nf": 0.0, "pde": 0.0}  # the newer run of a question counts


def test_a_run_that_compared_goes_before_a_newer_one_that_did_not():
    [pair] = pairs(
        [compared(0, {"nf": False, "pde": True}), alone(0, "pde", False, created="2026-12-01T00:00:00+00:00")]
    )
    assert pair.em == {"nf": 0.0, "pde": 1.0}


def test_one_treatment_is_nothing_to_compare():
    assert treatments.report([alone(0, "nf", True)]).needs
    assert treatments.report([run(question("q"))]).needs


def test_isolation_of_weak_and_strong_pairs():
    weak = [*many(PATTERN), *many(PATTERN, data="tqa")]
    strong = many({"nf": "1110", "pde": "1100"}, nf=0.75, data="fever", options={"tau_nf": 0.9})
    found = isolation.report([*weak, *strong])
    first, second, third, mean = found.rows
    assert (first["case"], first["kind"], third["kind"]) == ("m, cfl", "weak", "strong")
    assert [first[key] for key in isolation.VARIANTS] == pytest.approx([1 / 6, 2 / 6, 4 / 6, 5 / 6])
    assert (first["em_change"], first["b"], first["c"], first["p"]) == (
        pytest.approx(4 / 6),
        4,
        0,
        pytest.approx(0.125),
    )
    assert (third["nf"], third["pde"], third["em_change"], third["pde_random"]) == (0.75, 0.5, -0.25, None)
    assert first["p_holm"] == second["p_holm"] == pytest.approx(3 * 0.125)
    assert (mean["case"], mean["kind"], mean["em_change"], mean["n"]) == ("mean of 2", "weak", pytest.approx(4 / 6), 12)
    assert "Spearman's correlation -1.00" in found.note


def test_isolation_needs_both():
    assert isolation.report(many({"nf": "1", "three_agent": "1", "sda": "1"}, nf=None, rho=(0, 0.1, 0))).needs


def test_what_the_router_decides():
    models = [*many(PATTERN), *many(PATTERN, model="m2", nf=0.8, rho=(0.1, 0.3, 0.2))]
    first, second, mean = routing.report(models).rows
    assert (first["class"], first["rho1"], first["strategy"]) == (
        "quality-ordered",
        0.6,
        "Per-Document Extraction (PDE)",
    )
    assert (first["own"], first["nf"], first["em_change"]) == pytest.approx((5 / 6, 1 / 6, 4 / 6))
    assert (second["class"], second["strategy"]) == ("stochastic", "Score Distribution Alignment (SDA)")
    assert (second["own"], second["b"], second["c"]) == (pytest.approx(1 / 6), 1, 1)
    assert (mean["case"], mean["own"]) == ("mean of 2, cfl", pytest.approx(3 / 6))
    assert (first["p"], first["p_holm"]) == pytest.approx((0.125, 0.25))


def test_routers_of_other_thresholds_are_told_apart():
    rows = routing.report([*many(PATTERN), *many({"nf": "1", "atf": "0"}, options={"tau_nf": 0.05})]).rows
    assert [row["strategy"] for row in rows[:2]] == [
        "Per-Document Extraction (PDE)",
        "Adaptive Threshold Filtering (ATF)",
    ]
    assert "tau_nf=0.3" in str(rows[0]["case"]) and "tau_nf=0.05" in str(rows[1]["case"])


def test_a_treatment_set_by_hand_is_no_decision():
    assert routing.report([alone(0, "nf", True)]).needs
