"""The routing panel: measures on their axes, bars, sides and margins, marks, and what a moved bar would choose."""

from __future__ import annotations

import re

import pytest

from mdqa.methods.madara.deciding import by_conflict, route_profile
from mdqa.methods.madara.entropy import decide_by_entropy
from mdqa.methods.madara.router import Rho, Thresholds, chosen_by_hand, decide
from mdqa.records import Routing
from tests.methods.madara.helpers import make_profile
from tests.ui.hostile import assert_harmless
from ui.views.routing import measure_axis, routing_panel

WEAK: Rho = (0.28, 0.09, 0.01)
STRONG: Rho = (0.65, 0.49, 0.10)
STOCHASTIC: Rho = (0.39, 0.04, 0.14)


def shown(routing: Routing) -> str:
    return assert_harmless(routing_panel(routing)).text


def test_the_panel_says_treatment_measures_bars_and_margins() -> None:
    text = shown(decide(WEAK, 0.907))
    for words in ("CoT De-Polarization", "model: quality ordered", "coupling: weak", "bar 0.30 · margin +0.607"):
        assert words in text
    assert "bar 0.50 · margin −0.220" in text and "bar 0.00 · margin +0.080" in text
    html = routing_panel(decide(WEAK, 0.907))
    assert len(re.findall(r'class="mdqa-axis(?: sided)?"', html)) == 7
    assert 'style="left:30.0%"></b>' in html and 'style="left:90.7%"></i>' in html
    assert 'style="left:64.0%"></i>' in html  # rho1 0.28 on a line from -1 to 1


@pytest.mark.parametrize(
    ("rho", "nf", "sentences"),
    [
        (
            WEAK,
            0.907,
            [
                "Per-Document Extraction (PDE) if the bar of No-Filter accuracy, now 0.30, were above 0.907 · 0.607",
                "Adaptive Threshold Filtering (ATF) if the bar of ρ₁ (shuffled), now 0.50, were 0.280 or lower · 0.220",
            ],
        ),
        (STRONG, 0.887, ["CoT De-Polarization if the bar of ρ₁ (shuffled), now 0.50, were above 0.650 · 0.150 away"]),
        (STRONG, 0.139, ["(ATF) if the bar of No-Filter accuracy, now 0.30, were 0.139 or lower · 0.161 away"]),
    ],
)
def test_alternatives_are_sentences(rho: Rho, nf: float, sentences: list[str]) -> None:
    text = shown(decide(rho, nf))
    for sentence in sentences:
        assert sentence in text


def test_a_decision_that_no_bar_can_change_says_so() -> None:
    assert "No single bar, moved alone, would change this decision" in shown(decide(STOCHASTIC, None))
    assert "No single bar" not in shown(chosen_by_hand("cot", decide(WEAK, 0.907)))


@pytest.mark.parametrize(
    ("routing", "marks"),
    [
        (decide(WEAK, None), {"No-Filter accuracy unknown"}),
        (decide(WEAK, 0.9, degenerate=True), {"degenerate scores"}),
        (chosen_by_hand("atf"), {"chosen by hand"}),
        (chosen_by_hand("atf", decide(WEAK, None)), {"chosen by hand", "No-Filter accuracy unknown"}),
        (decide(STRONG, 0.139, multi_hop=True), {"multi-hop rule"}),
        (decide(WEAK, 0.139, multi_hop=True), {"multi-hop task"}),
        (by_conflict(decide(WEAK, 0.907)), {"decided for this question"}),
        (decide(WEAK, 0.907), set()),
    ],
)
def test_what_is_out_of_the_ordinary_is_marked(routing: Routing, marks: set[str]) -> None:
    badges = set(re.findall(r'class="mdqa-badge (?:warn|info)">([^<]+)<', routing_panel(routing))) - {"not measured"}
    assert badges == marks


def test_accuracy_learned_from_labels_is_marked() -> None:
    profile = make_profile(WEAK, 0.907)
    nf = {**profile.values["nf"], "labels": 12}
    learned = profile.model_copy(update={"values": {**profile.values, "nf": nf}})
    thresholds = Thresholds()
    assert "learned from labels" in shown(route_profile(learned, thresholds))
    assert "learned from labels" not in shown(route_profile(profile, thresholds))


def test_bars_that_were_not_come_to_are_shown_back() -> None:
    def settled(routing: Routing) -> int:
        return routing_panel(routing).count("not asked")

    assert settled(decide(STRONG, 0.139)) == 2  # PDE: neither the class nor the coupling was asked for
    assert settled(decide(STOCHASTIC, 0.608)) == 1  # SDA: the coupling was not
    assert settled(decide(WEAK, 0.907)) == 0
    assert settled(decide(STRONG, 0.139, multi_hop=True)) == 0
    assert settled(chosen_by_hand("pde", decide(STRONG, 0.139))) == 0


def test_sides_say_what_follows_below_and_above_a_bar() -> None:
    html = routing_panel(decide(WEAK, 0.907))
    assert '<small style="right:70.0%">PDE</small><small style="left:30.0%">the probe decides</small>' in html
    assert '<small style="right:25.0%">CoT</small><small style="left:75.0%">ATF</small>' in html
    multi = routing_panel(decide(STRONG, 0.139, multi_hop=True))
    assert ">3-Agent</small>" in multi and ">ATF</small>" not in multi


def test_the_entropy_router_has_its_own_measure() -> None:
    text = shown(decide_by_entropy(0.82, bits=2.12))
    assert "score entropy (of 1)" in text and "bar 0.70 · margin +0.120" in text
    assert "CoT De-Polarization if the bar of score entropy (of 1), now 0.70, were above 0.820" in text
    assert "2.6" in text  # where the axis of bits ends


def test_an_axis_reaches_as_far_as_its_value() -> None:
    low = measure_axis("rho_gap", -1.4, 0.0, -1.4)
    assert "−1.4" in low and 'style="left:0.0%"></i>' in low
    assert "not measured" in measure_axis("EM_NF", None, 0.3, None)
