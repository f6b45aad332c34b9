"""MADARA's profiles: correlations with all that speaks for and against them, old profiles, two profiles compared."""

from __future__ import annotations

import re
from typing import Any

import gradio as gr
import pytest

from mdqa.calibration import builtin_profiles
from mdqa.errors import ProfileError
from mdqa.records import Profile
from tests.methods.madara.helpers import make_profile
from tests.ui.hostile import EVIL, assert_harmless
from ui.components.profile_panel import build_profile_panel
from ui.context import Context
from ui.profiles import comparable, implied_routing, listed
from ui.views.probe import correlations, probe_view, probes_compared, span_line

FULL: dict[str, Any] = {
    "rho": [0.41, 0.22, -0.05],
    "control": 0.71,
    "intervals": [[0.6, 0.8], [0.3, 0.5], [0.1, 0.33], [-0.2, 0.1]],
    "stability": 0.913,
    "pairs_used": [960, 1958, 957, 960],
    "rho_bar": 0.193,
    "model_class": "quality_ordered",
    "degenerate": False,
    "histogram": {"0": 40, "4": 301, "5": 68},
    "nf": {"em_squad": 0.412, "em_strict": 0.39, "n": 100},
    "nf_source": "gold",
    "parse_failures": {"normal": 0.021, "control": 0.0, "shuffled": 0.002, "contradicted": 0.03, "random": 0.0},
    "unchanged_shuffles": 0.08,
    "per_query": {
        "control": {"mean": 0.66, "sd": 0.21, "n": 88},
        "shuffled": {"mean": 0.35, "sd": 0.31, "n": 87},
        "contradicted": {"mean": 0.18, "sd": 0.36, "n": 85},
        "random": {"mean": None, "sd": None, "n": 0},
    },
    "split_half": {
        "first": {"rho": [0.44, 0.25, 0.01], "model_class": "quality_ordered", "queries": 50},
        "second": {"rho": [0.38, 0.19, 0.21], "model_class": "stochastic", "queries": 50},
    },
    "subsets": {"size": 30, "draws": 100, "quality_ordered": 0.84, "status": "ok", "detail": ""},
    "entropy": {"bits": 2.31, "normalised": 0.894},
}


def made(**values: Any) -> Profile:
    return make_profile().model_copy(update={"values": {**FULL, **values}})


def text_of(profile: Profile) -> str:
    return assert_harmless(probe_view(profile.values, *implied_routing(profile))).text


def test_everything_that_is_measured_is_shown() -> None:
    text = text_of(made())
    for words in (
        "0.300 to 0.500", "1,958", "0.35 ± 0.31 (87)", "undefined everywhere", "under 1 %", "3 %",
        "2 % of the first grades could not be read", "8 % of the shuffles changed nothing", "quality ordered",
        "91 % of the same class", "First half (50 questions)", "stochastic ρ 0.38 0.19 0.21", "84 % quality-ordered",
        "The two halves disagree", "409 first grades", "Entropy 0.89 of 1 (2.31 bits)",
        "0.412 over 100 questions, by gold answers", "Strict matching: 0.390", "CoT De-Polarization",
    ):  # fmt: skip
        assert words in text, words


def test_grades_are_bars_with_those_that_were_not_given() -> None:
    html = probe_view(made().values, None)
    grades = html[html.index('class="mdqa-histogram"') :]
    widths = re.findall(r"left:0;width:([\d.]+)%", grades)
    assert [float(width) for width in widths[:6]] == pytest.approx([13.3, 0, 0, 0, 100, 22.6], abs=0.1)


def test_what_cannot_be_trusted_is_said() -> None:
    doubtful = made(
        degenerate=True, commonest_share=0.97, commonest_score="0", nf={"em_squad": 0.31, "n": 16, "labels": 12},
        nf_source="labels", split_half=None,
        subsets={"size": 30, "draws": 0, "quality_ordered": None, "status": "unavailable", "detail": "16 queries"},
    )  # fmt: skip
    text = text_of(doubtful)
    assert "degenerate scores: 97 % of the grades are 0" in text
    assert "over 16 questions, 12 of them judged by people learned from labels" in text
    assert "Random subsets16 queries" in text and "halves" not in text
    unknown = text_of(made(nf=None, nf_source=None))
    assert "the probe alone decides" in unknown and "No-Filter accuracy unknown" in unknown


def test_old_profiles_are_shown_as_far_as_they_go() -> None:
    (old,) = [profile for profile in builtin_profiles() if profile.method == "madara"]
    bare = make_profile((0.28, 0.09, 0.01), 0.907)
    older = {name: FULL[name] for name in ("rho", "control", "intervals", "histogram", "nf", "model_class")}
    for profile in (old, bare, bare.model_copy(update={"values": older})):
        text = text_of(profile)
        assert "Reasoning-score coupling" in text and "Treatment" in text
    text = text_of(bare.model_copy(update={"values": older}))
    assert "Within a question" not in text and "Unreadable" not in text and "How far" not in text
    assert "Entropy 0.42 of 1" in text  # worked out from the grades


@pytest.mark.parametrize("bad", [None, EVIL, [], [EVIL] * 4, {EVIL: EVIL}, {"first": EVIL, "shuffled": {"mean": EVIL}}])
@pytest.mark.parametrize("name", [name for name in FULL if name != "rho"])
def test_damaged_values_are_left_out(name: str, bad: object) -> None:
    assert_harmless(probe_view({**FULL, name: bad}, None, EVIL))


def test_correlations_have_their_interval_or_none() -> None:
    assert correlations({"rho": [0.3, "x", 0.1], "control": None, "intervals": [None, [0.2, 0.4], None, ["a", 1]]}) == {
        "shuffled": (0.3, 0.2, 0.4),
        "random": (0.1, None, None),
    }
    line = span_line(0.5, 0.2, 0.6, {"mean": 0.0, "sd": 0.5})
    assert 'class="span" style="left:60.0%;width:20.0%"' in line and 'class="point" style="left:75.0%"' in line
    assert 'class="spread" style="left:25.0%;width:50.0%"' in line


def test_two_profiles_are_set_side_by_side() -> None:
    other = made(
        rho=[0.02, 0.0, 0.03], control=0.05, model_class="stochastic", stability=None, degenerate=True,
        intervals=[[-0.1, 0.2], [-0.1, 0.1], [-0.12, 0.1], [-0.05, 0.12]],
    ).model_copy(update={"name": "b", "model": "another"})  # fmt: skip
    html = probes_compared(made(), other, (implied_routing(made())[0], implied_routing(other)[0]))
    text = assert_harmless(html).text
    assert "p was made with scripted, b with another" in text
    assert "−0.390intervals apart" in text and "−0.220" in text and html.count("intervals apart") == 2
    assert "quality orderedstochasticdiffers" in text and "91 %–" in text
    assert "CoT De-PolarizationScore Distribution Alignment (SDA)differs" in text
    same = probes_compared(made(), made(), (implied_routing(made())[0],) * 2)
    assert "differs" not in same and "intervals apart" not in same
    hostile = made(rho=[EVIL, 0.1, 0.2], intervals=EVIL, nf=EVIL, entropy=[], model_class=EVIL).model_copy(
        update={"name": EVIL, "model": EVIL, "data": EVIL}
    )
    assert EVIL in assert_harmless(probes_compared(hostile, made(), (None, None))).text


def test_probes_can_be_set_against_probes_only(context: Context) -> None:
    context.store.profiles.save(made().model_copy(update={"name": "full"}))
    entries = {(entry.profile.method, entry.profile.name): entry for entry in listed(context)}
    full, hand = entries["madara", "full"], entries["madara", "hand"]
    names = [words.partition(" · ")[0] for words, _ in comparable(context, full)]
    assert names == ["hand", "madara-builtin"]
    others = [words.partition(" · ")[0] for words, _ in comparable(context, entries["cafe", "hand"])]
    assert others == ["cafe-builtin"]
    with gr.Blocks():
        panel, _, _ = build_profile_panel(context, gr.State(""))
    shown = dict(zip(panel.outputs, panel.show(full.key), strict=True))
    assert shown[panel.other].visible and "Grades given" in shown[panel.rest]
    assert not dict(zip(panel.outputs, panel.show(""), strict=True))[panel.other].visible
    assert "Two profiles side by side" in panel.compare(full.key, hand.key)
    assert panel.compare(full.key, "") == panel.compare(full.key, None) == ""
    with pytest.raises(ProfileError, match="not there any more"):
        panel.compare(full.key, "stored-0")
