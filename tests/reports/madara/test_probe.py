"""The probe from profiles, the two routers and the thresholds; the paper's own numbers where it prints them."""

from __future__ import annotations

import pytest

from mdqa.methods.madara.published import ROUTED
from mdqa.records import Profile
from mdqa.reports.madara import coupling, routers, thresholds
from mdqa.reports.madara.routers import ENTROPY, RSC, Case
from tests.methods.madara.helpers import make_profile
from tests.reports.madara.builders import RHO, many, pairs_of

ENTROPIES = (0.75, 0.89, 0.91, 0.80, 0.84, 0.58, 0.82, 0.44, 0.85, 0.61)
"""Table 12, in the order of ROUTED."""

SDA_COT = {"Qwen3-8B / CONFLICTS": 0.639, "Llama-3.1-8B / FEVER": 0.885, "Gemma-2-9B / FEVER": 0.927}
"""Where Table 12 names SDA over CoT scores as the best."""


def published() -> list[Case]:
    made = []
    for cell, entropy in zip(ROUTED, ENTROPIES, strict=True):
        assert cell.rho is not None
        more = {"sda_cot": SDA_COT[cell.name]} if cell.name in SDA_COT else {}
        made.append(Case(cell.name, cell.rho, entropy, {**cell.em, **more}))
    return made


@pytest.mark.parametrize(("router", "counts"), [(RSC, (8, 6, 3)), (ENTROPY, (7, 5, 1))])
def test_the_papers_table_3_follows_from_its_table_12(router: str, counts: tuple[int, ...]):
    # The paper prints one less each against the 3-Agent Baseline: Gemma-2 on FEVER, 92.5 against 92.4, is no win there
    found = [case.outcomes(router) for case in published()]
    assert tuple(sum(each[measure] for each in found) for measure in routers.MEASURES) == counts
    assert sum(case.choices[RSC] == case.choices[ENTROPY] for case in published()) == 6


def profile(rho: tuple[float, ...] = RHO, **more: object) -> Profile:
    """A profile of the runs' model; five of six grades alike have an entropy of 0.25 of the largest."""
    return make_profile(rho, **{"histogram": {"0": 5, "5": 1}, **more}).model_copy(update={"model": "m"})


def test_both_routers_over_stored_runs():
    runs = many(
        {"nf": "100", "three_agent": "000", "cot": "110", "sda": "111"}, nf=0.5, options={"rho1_threshold": 0.9}
    )
    [row] = routers.report(runs, [profile()]).rows
    assert (row["class"], row["by_rsc"], row["by_entropy"]) == (
        "quality-ordered",
        "CoT De-Polarization",
        "CoT De-Polarization",
    )
    assert (row["rsc"], row["best"]) == (pytest.approx(2 / 3), 1.0)
    assert row["entropy"] == pytest.approx(0.2515, abs=1e-4)  # (5/6 log2 6/5 + 1/6 log2 6) / log2 6
    found = {
        (row["measure"], row["router"]): (row["count"], row["n"]) for row in routers.summary(runs, [profile()]).rows
    }
    assert found["Beats the NF baseline", RSC] == (1, 1) and found["Matches the oracle", ENTROPY] == (0, 1)


def test_without_a_profile_there_is_no_entropy():
    runs = many({"nf": "1", "three_agent": "0", "cot": "1", "sda": "1"}, nf=0.5, options={"rho1_threshold": 0.9})
    assert routers.report(runs).needs and routers.summary(runs).needs
    other = profile().model_copy(update={"model": "another"})
    assert routers.report(runs, [other]).needs


def test_a_profile_that_the_runs_name_goes_before_another():
    runs = many(
        {"nf": "1", "three_agent": "0", "cot": "1", "sda": "1"}, profile="mine", nf=0.5, options={"rho1_threshold": 0.9}
    )
    mine = profile((0.1, 0.2, 0.3)).model_copy(update={"name": "mine"})
    assert routers.report(runs, [profile(), mine]).rows[0]["class"] == "stochastic"
    assert routers.report(runs, [profile(), profile().model_copy(update={"name": "b"})]).needs  # which one?


def test_correlations_of_a_profile():
    values = {"intervals": [[0, 1], [0.5, 0.7], [0.3, 0.5], [0.1, 0.3]], "stability": 0.9, "pairs_used": [9, 8, 7, 6]}
    [row] = coupling.report((), [profile(**values, queries=4, control=0.8)]).rows
    assert (row["shuffled"], row["shuffled_low"], row["shuffled_high"]) == (0.6, 0.5, 0.7)
    assert (row["contradicted"], row["random"], row["random_low"]) == (0.4, 0.2, 0.1)
    assert (row["trend"], row["mean"], row["class"]) == (pytest.approx(-1), pytest.approx(0.4), "quality-ordered")
    assert (row["stability"], row["control"], row["pairs"], row["n"]) == (0.9, 0.8, 6, 4)


def test_a_damaged_profile_is_counted_and_other_methods_are_none():
    damaged = profile().model_copy(update={"values": {"rho": [1]}})
    found = coupling.report((), [damaged, profile(), profile().model_copy(update={"method": "cafe"})])
    assert (found.n, found.counted) == (1, "profile") and "1 damaged" in found.note
    assert coupling.report((), [damaged]).needs


def test_within_each_query():
    up, down = (1, 2, 3), (3, 2, 1)
    same = [list(row) for row in zip(up, up, up, down, (2, 2, 2), strict=True)]  # per document: normal, control, ...
    turned = [list(row) for row in zip(up, up, down, down, up, strict=True)]
    rows = coupling.by_question((), [profile(pairs=pairs_of([*same, *turned]), control=1.0)]).rows
    found = {row["level"]: row for row in rows}
    assert (found["control"]["rho"], found["control"]["n"]) == (pytest.approx(1.0), 2)
    assert (found["shuffled"]["rho"], found["shuffled"]["sd"]) == (pytest.approx(0.0), pytest.approx(1.0))  # 1 and -1
    assert (found["shuffled"]["q25"], found["shuffled"]["q75"]) == (pytest.approx(-0.5), pytest.approx(0.5))
    assert found["contradicted"]["rho"] == pytest.approx(-1.0)
    assert (found["random"]["rho"], found["random"]["n"]) == (pytest.approx(1.0), 1)  # equal scores say nothing
    assert coupling.by_question((), [profile()]).needs  # no pairs are stored


def test_halves_and_subsets():
    halves = {
        "first": {"model_class": "quality_ordered", "queries": 50},
        "second": {"model_class": "stochastic", "queries": 50},
    }
    [row] = coupling.stability((), [profile(split_half=halves, subsets={"quality_ordered": 0.62, "draws": 100})]).rows
    assert (row["first"], row["second"]) == ("quality-ordered (50)", "stochastic (50)")
    assert (row["quality_ordered"], row["stochastic"], row["draws"]) == (0.62, pytest.approx(0.38), 100)
    [few] = coupling.stability((), [profile()]).rows
    assert (few["first"], few["quality_ordered"]) == (None, None)


def test_threshold_of_coupling():
    runs = many({"nf": "00", "three_agent": "10", "cot": "11", "sda": "00", "pde": "00"})
    rows = {row["threshold"]: row for row in thresholds.coupling(runs).rows}
    assert (rows[0.5]["to_cot"], rows[0.5]["matches"], rows[0.5]["gap"]) == (0, 0, 0.5)  # rho 1 is 0.6: 3-Agent
    assert (rows[0.7]["to_cot"], rows[0.7]["matches"], rows[0.7]["gap"], rows[0.7]["n"]) == (1, 1, 0.0, 1)
    assert thresholds.coupling(many({"nf": "0", "pde": "0"})).needs


def test_no_filter_beside_the_threshold():
    runs = many({"nf": "1110", "atf": "1111"}, nf=0.75)
    found = thresholds.no_filter(runs, [profile()])
    first, second = found.rows
    assert (first["origin"], first["nf"], first["n"]) == ("profile", 0.139, 100)
    assert first["margin"] == pytest.approx(0.139 - 0.3) and first["treatment"] == "Per-Document Extraction (PDE)"
    assert (second["origin"], second["nf"], second["margin"]) == ("runs", 0.75, pytest.approx(0.45))
    assert second["treatment"] == "Adaptive Threshold Filtering (ATF)"
    assert (first["changed"], second["changed"]) == (0, 0)
    assert "Any threshold above 13.9% and up to 75.0%" in found.note
    [middle] = thresholds.no_filter((), [profile(nf=0.32)]).rows
    assert middle["changed"] == 3  # 35, 40 and 45% would read documents alone
    assert thresholds.no_filter((), [profile(nf=None)]).needs
