"""Every published routing decision, and what the router says about its decisions."""

import math

import pytest

from mdqa.errors import ConfigError
from mdqa.methods.madara.router import Thresholds, chosen_by_hand, decide, model_class, trend

PUBLISHED = [  # model, task, rho, EM_NF, treatment (Tables 2, 4 and 6)
    ("Llama-3.1-8B", "CONFLICTS", (0.76, 0.43, 0.08), 0.139, "pde"),
    ("Llama-3.1-8B", "FEVER", (0.65, 0.49, 0.10), 0.887, "atf"),
    ("Mistral-7B-v0.3", "CONFLICTS", (0.35, 0.22, 0.18), 0.181, "pde"),
    ("Mistral-7B-v0.3", "FEVER", (0.28, 0.09, 0.01), 0.907, "cot"),
    ("Qwen3-8B", "CONFLICTS", (0.39, 0.04, 0.14), 0.608, "sda"),
    ("Qwen3-8B", "FEVER", (0.63, 0.51, 0.14), 0.896, "atf"),
    ("Qwen2.5-7B", "CONFLICTS", (0.46, -0.26, 0.08), 0.599, "sda"),
    ("Qwen2.5-7B", "FEVER", (0.62, 0.21, 0.06), 0.871, "atf"),
    ("Gemma-2-9B", "CONFLICTS", (0.79, 0.40, 0.40), 0.608, "sda"),
    ("Gemma-2-9B", "FEVER", (0.58, 0.41, 0.18), 0.922, "atf"),
    ("Qwen2.5-7B", "MuSiQue", (0.83, 0.54, 0.03), 0.14, "pde"),
    ("Llama-3.1-8B", "TriviaQA (degenerate)", (0.0, 0.0, 0.0), 0.298, "pde"),
]

CLASSES = [  # TriviaQA rows of Table 4, for which only the class is published
    ((0.47, 0.05, 0.02), "quality_ordered"),
    ((0.64, 0.45, 0.45), "stochastic"),
    ((0.55, -0.28, 0.15), "stochastic"),
    ((0.83, 0.19, 0.48), "stochastic"),
]


@pytest.mark.parametrize(("model", "task", "rho", "nf", "treatment"), PUBLISHED)
def test_published_row(model, task, rho, nf, treatment):
    assert decide(rho, nf).treatment == treatment


@pytest.mark.parametrize(("rho", "expected"), CLASSES)
def test_published_class(rho, expected):
    assert model_class(rho) == expected


@pytest.mark.parametrize(
    ("rho", "expected"),
    [
        ((0.9, 0.5, 0.1), -1.0),
        ((0.9, 0.1, 0.5), -0.5),
        ((0.5, 0.9, 0.1), -0.5),
        ((0.1, 0.9, 0.5), 0.5),
        ((0.1, 0.5, 0.9), 1.0),
        ((0.9, 0.4, 0.4), -math.sqrt(3) / 2),
        ((0.4, 0.4, 0.9), math.sqrt(3) / 2),
        ((0.4, 0.9, 0.4), 0.0),
        ((0.4, 0.4, 0.4), 0.0),
    ],
)
def test_trend_values(rho, expected):
    assert trend(rho) == pytest.approx(expected, abs=1e-12)
    assert (trend(rho) <= -1 + 1e-12) == (model_class(rho) == "quality_ordered")


def test_ordering_uses_unrounded_values():
    assert model_class((0.79, 0.4000001, 0.4)) == "quality_ordered"
    assert model_class((0.79, 0.4, 0.4000001)) == "stochastic"


def test_threshold_is_strict():
    rho = (0.5, 0.3, 0.1)
    assert decide(rho, 0.30).treatment == "atf"
    assert decide(rho, math.nextafter(0.30, 0)).treatment == "pde"
    assert decide((math.nextafter(0.5, 0), 0.3, 0.1), 0.30).treatment == "cot"


def test_no_filter_comes_before_the_class():
    assert decide((0.1, 0.5, 0.3), 0.1).treatment == "pde"
    assert decide((0.1, 0.5, 0.3), 0.9).treatment == "sda"


@pytest.mark.parametrize(("model", "task", "rho", "nf", "treatment"), PUBLISHED)
def test_alternatives_come_true(model, task, rho, nf, treatment):
    routing = decide(rho, nf)
    for alternative in routing.alternatives:
        other = decide(rho, nf, Thresholds(**{alternative.threshold: alternative.value}))
        assert other.treatment == alternative.treatment != treatment


def test_appendix_d2_the_one_cell_that_flips():
    routing = decide((0.35, 0.22, 0.18), 0.181)
    assert [(a.threshold, a.value, a.treatment) for a in routing.alternatives] == [("tau_nf", 0.181, "cot")]
    assert decide((0.35, 0.22, 0.18), 0.181, Thresholds(tau_nf=0.15)).treatment == "cot"


def test_alternatives_of_a_scoring_decision_name_both_thresholds():
    routing = decide((0.65, 0.49, 0.10), 0.887)
    assert {a.threshold: a.treatment for a in routing.alternatives} == {"tau_nf": "pde", "rho1_threshold": "cot"}
    assert decide((0.39, 0.04, 0.14), 0.608).alternatives[0].threshold == "tau_nf"
    assert len(decide((0.39, 0.04, 0.14), 0.608).alternatives) == 1  # rho_1 decides nothing for a stochastic model


def test_measures_margins_and_labels():
    routing = decide((0.76, 0.43, 0.08), 0.139)
    assert routing.measures["rho_bar"] == pytest.approx(1.27 / 3)
    assert routing.measures["rho_star"] == -1.0
    assert routing.margins["EM_NF"] == pytest.approx(-0.161)
    assert routing.margins["rho1"] == pytest.approx(0.26)
    assert routing.margins["rho_gap"] == pytest.approx(0.33)
    assert set(routing.margins) == set(routing.thresholds)
    assert (routing.model_class, routing.coupling) == ("quality_ordered", "strong")
    assert decide((0.28, 0.09, 0.01), 0.9).coupling == "weak"
    assert decide((0.39, 0.04, 0.14), 0.9).coupling == "none"
    assert "0.139" in routing.reason and "0.3" in routing.reason


def test_unknown_no_filter_accuracy_is_said():
    routing = decide((0.76, 0.43, 0.08), None)
    assert routing.treatment == "atf"
    assert "unknown" in routing.note
    assert routing.measures["EM_NF"] is None and "EM_NF" not in routing.margins
    assert [a.threshold for a in routing.alternatives] == ["rho1_threshold"]


def test_degenerate_profile_is_said():
    routing = decide((0.0, 0.0, 0.0), 0.6, degenerate=True)
    assert routing.treatment == "sda" and "degenerate" in routing.note


def test_low_accuracy_needs_no_probe_and_high_accuracy_does():
    assert decide(None, 0.1).treatment == "pde"
    assert decide(None, 0.1).alternatives == ()
    with pytest.raises(ConfigError, match="three correlations"):
        decide(None, 0.6)
    with pytest.raises(ConfigError, match="no No-Filter accuracy"):
        decide(None, None)


@pytest.mark.parametrize("nf", [13.9, -0.1, math.nan])
def test_accuracy_out_of_range(nf):
    with pytest.raises(ConfigError, match="fraction from 0 to 1"):
        decide((0.3, 0.2, 0.1), nf)


def test_correlation_out_of_range():
    with pytest.raises(ConfigError, match="from -1 to 1"):
        decide((0.3, math.nan, 0.1), 0.5)


def test_chosen_by_hand_says_what_the_router_would_do():
    routing = chosen_by_hand("sda", decide((0.76, 0.43, 0.08), 0.139))
    assert (routing.treatment, routing.reason) == ("sda", "treatment chosen by hand")
    assert "would choose Per-Document Extraction" in routing.note
    assert routing.measures["EM_NF"] == 0.139 and routing.alternatives == ()
    assert chosen_by_hand("nf").measures == {}


MUSIQUE = (0.83, 0.54, 0.03)


def test_multi_hop_sends_strong_coupling_to_scoring():
    routing = decide(MUSIQUE, 0.14, multi_hop=True)
    assert (routing.treatment, routing.coupling) == ("three_agent", "strong")
    assert "multi-hop rule" in routing.reason and "0.140" in routing.reason
    assert "ours, after section 6.5" in routing.note and "would choose Per-Document Extraction" in routing.note
    assert decide(MUSIQUE, 0.14).treatment == "pde"


@pytest.mark.parametrize(
    ("rho", "nf", "treatment"),
    [
        ((0.4, 0.3, 0.1), 0.14, "pde"),  # weakly coupled
        ((0.8, 0.1, 0.3), 0.14, "pde"),  # stochastic
        ((0.5, 0.3, 0.1), 0.29, "three_agent"),
        (MUSIQUE, 0.30, "atf"),
        (MUSIQUE, None, "atf"),
        ((0.4, 0.3, 0.1), 0.6, "cot"),
        ((0.8, 0.1, 0.3), 0.6, "sda"),
    ],
)
def test_multi_hop_changes_nothing_else(rho, nf, treatment):
    routing = decide(rho, nf, multi_hop=True)
    assert routing.treatment == treatment
    assert ("cannot join facts" in routing.note) == (treatment == "pde")


@pytest.mark.parametrize("rho", [MUSIQUE, (0.4, 0.3, 0.1), (0.8, 0.1, 0.3)])
@pytest.mark.parametrize("nf", [0.14, 0.6])
def test_alternatives_of_multi_hop_come_true(rho, nf):
    routing = decide(rho, nf, multi_hop=True)
    for other in routing.alternatives:
        moved = decide(rho, nf, Thresholds(**{other.threshold: other.value}), multi_hop=True)
        assert moved.treatment == other.treatment != routing.treatment
    names = {other.threshold for other in routing.alternatives}
    assert ("rho1_threshold" in names) == (model_class(rho) == "quality_ordered")


def test_multi_hop_needs_the_probe():
    with pytest.raises(ConfigError, match="not multi-hop"):
        decide(None, 0.14, multi_hop=True)


def test_the_nearest_threshold_that_changes_the_decision():
    """Every alternative is the nearest: a bar between it and the one in force decides as now."""
    for _, _, rho, nf, treatment in PUBLISHED:
        for other in decide(rho, nf).alternatives:
            now = getattr(Thresholds(), other.threshold)
            near = math.nextafter(other.value, now)
            assert decide(rho, nf, Thresholds(**{other.threshold: near})).treatment == treatment
