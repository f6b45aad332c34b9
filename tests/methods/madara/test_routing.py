"""Which treatment a whole run takes: by the profile, without one, by hand, and with a profile that is no help."""

from __future__ import annotations

import pytest

from .helpers import REPLIES, make_profile, run_madara


def test_auto_follows_the_profile():
    run = run_madara(REPLIES, profile=make_profile())
    assert run.result.routing.treatment == "pde" and "extraction" in run.stages
    assert run.result.routing.margins["EM_NF"] == pytest.approx(-0.161)
    strong = run_madara(REPLIES, profile=make_profile((0.65, 0.49, 0.10), 0.887))
    assert strong.result.routing.treatment == "atf" and strong.stage("selection").branch == "atf"
    assert run_madara(REPLIES, profile=make_profile((0.28, 0.09, 0.01), None)).result.routing.treatment == "cot"
    moved = run_madara(REPLIES, profile=make_profile(), tau_nf=0.1)
    assert moved.result.routing.treatment == "atf"


def test_auto_without_a_profile_says_what_to_do():
    run = run_madara(REPLIES)
    assert run.result.status == "failed" and run.result.error.type == "ProfileError"
    assert "calibrate --method madara" in run.result.error.message and "treatment" in run.result.error.message
    assert run.calls() == []


def test_by_hand_with_and_without_a_profile():
    plain = run_madara(REPLIES, treatment="sda").result.routing
    assert (plain.treatment, plain.reason, plain.measures) == ("sda", "treatment chosen by hand", {})
    known = run_madara(REPLIES, treatment="sda", profile=make_profile()).result.routing
    assert known.measures["EM_NF"] == 0.139 and "would choose Per-Document Extraction" in known.note


def test_degenerate_profile():
    routing = run_madara(REPLIES, profile=make_profile((0, 0, 0), 0.5, degenerate=True)).result.routing
    assert routing.treatment == "sda" and "degenerate" in routing.note


def test_profile_of_another_model_is_noticed():
    profile = make_profile().model_copy(update={"model": "other"})
    assert any("'other'" in notice for notice in run_madara(REPLIES, profile=profile).result.notices)
    assert not run_madara(REPLIES, profile=make_profile()).result.notices


@pytest.mark.parametrize(
    "values", [{}, {"rho": [0.1, 0.2]}, {"rho": ["x", 1, 1]}, {"rho": None}, {"rho": [0.3, 0.2, 0.1], "nf": {"n": 3}}]
)
def test_damaged_profile(values):
    profile = make_profile().model_copy(update={"values": values})
    run = run_madara(REPLIES, profile=profile)
    assert run.result.error.type == "ProfileError" and "calibrate again" in run.result.error.message
