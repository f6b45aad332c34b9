"""From a profile of any age and a run's options to its treatment."""

import pytest

from mdqa.calibration import builtin_profiles
from mdqa.errors import ProfileError
from mdqa.methods.madara.deciding import measured, route_profile
from mdqa.methods.madara.router import Thresholds
from tests.methods.madara.helpers import make_profile, run_madara

MUSIQUE = (0.83, 0.54, 0.03)


def test_a_multi_hop_run_scores_and_answers_like_a_factoid_one():
    profile = make_profile(MUSIQUE, nf=0.14)
    multi, plain = (run_madara(profile=profile, task=task) for task in ("multi-hop", "factoid"))
    assert (multi.result.routing.treatment, plain.result.routing.treatment) == ("three_agent", "pde")
    assert "multi-hop rule" in multi.result.routing.reason and "section 6.5" in multi.result.routing.note
    assert multi.result.status == "ok" and multi.stages == ["assessment", "selection", "generation"]
    [generator], [extractor, *_] = multi.calls("generator"), plain.calls("extractor")
    assert generator.prompt.partition("Document [1]")[0] == extractor.prompt.partition("Document [1]")[0]


def test_labels_are_said():
    nf = {"em_squad": 0.4, "em_strict": 0.4, "n": 10, "labels": 10}
    routing = route_profile(
        make_profile().model_copy(update={"values": {"rho": [0.6, 0.4, 0.1], "nf": nf}}), Thresholds()
    )
    assert routing.treatment == "atf" and "10 answers that people judged" in routing.note


def test_the_profile_that_ships_has_everything_for_both_routers():
    [profile] = [p for p in builtin_profiles() if p.method == "madara"]
    found = measured(profile)
    assert found.nf is not None and found.entropy is not None and not found.labels
    for router in ("rsc", "entropy"):
        assert route_profile(profile, Thresholds(), router=router).treatment


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "KeyError"),
        ({"rho": [0.1, 0.2], "nf": None}, "2 correlations instead of 3"),
        ({"rho": ["x", 0.2, 0.1], "nf": None}, "ValueError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": 0.5}, "TypeError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": {"n": 3}}, "KeyError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": None, "histogram": [1]}, "AttributeError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": None, "histogram": {"a": 1}}, "ValueError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": None, "histogram": {"inf": 1}}, "OverflowError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": None, "histogram": {"1": "many"}}, "TypeError"),
        ({"rho": [0.3, 0.2, 0.1], "nf": None, "histogram": {"1": -1, "2": 3}}, "ValueError"),
    ],
)
def test_a_damaged_profile_is_named(values, says):
    damaged = make_profile().model_copy(update={"values": values})
    with pytest.raises(ProfileError, match=f"'p'.*{says}"):
        route_profile(damaged, Thresholds())
