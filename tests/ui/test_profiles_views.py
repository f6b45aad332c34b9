"""Views of profiles and calibrations: hostile texts stay text, damaged values are left out, numbers are right."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mdqa.calibration import builtin_profiles
from mdqa.records import Profile
from tests.ui.helpers import scripted_profiles
from tests.ui.hostile import EVIL, assert_harmless
from ui.profiles import implied_routing
from ui.views.calibration import CalibrationState, Plan, calibration_list, duration, plan_view
from ui.views.heads_compared import heads_compared
from ui.views.probe import probe_view
from ui.views.profiles import (
    ListedProfile,
    head_scores,
    maps_intro,
    profile_head,
    profile_list,
    quality_table,
    ranked_heads,
    score_map,
)

CAFE, MADARA = scripted_profiles()
HOSTILE = Profile(
    name=EVIL,
    method="madara",
    model=EVIL,
    data=EVIL,
    n=3,
    seed=1,
    created=EVIL,
    versions={EVIL: EVIL},
    note=EVIL,
    values={
        "options": {EVIL: EVIL},
        "rho": [0.3, EVIL, 0.1],
        "control": 0.2,
        "intervals": [[0.1, 0.2], EVIL, [EVIL, 1], None],
        "pairs_used": [EVIL] * 4,
        "nf": {"em_squad": 0.5, "n": EVIL},
        "parse_failures": {EVIL: 0.1},
        "histogram": {EVIL: EVIL},
        "stability": 0.9,
        "quality": {"n": EVIL, "rows": [{"name": EVIL, "recall": {"mean": 0.5, "low": EVIL}}, EVIL], "m1": EVIL},
    },
)
QUALITY = {
    "n": 20,
    "kept": 7.25,
    "documents": 20.0,
    "m1": 4,
    "rows": [
        {"name": "retrieval heads", **{m: {"mean": 0.9, "low": 0.8, "high": 1.0, "n": 20} for m in ("recall", "top1")}},
        {"name": "BM25", **{m: {"mean": 0.7, "low": 0.5, "high": 0.8, "n": 20} for m in ("recall", "top1", "mrr")}},
    ],
}


def entry(profile: Profile, *, builtin: bool = False, offered: bool = True) -> ListedProfile:
    return ListedProfile(f"key-{profile.method}", profile, profile.method.upper(), builtin, offered)


STATE = CalibrationState(
    id="i", title=EVIL, model=EVIL, name=EVIL, status="running", preparing=EVIL, done=1, total=3, doing=EVIL, found=2
)


@pytest.mark.parametrize(
    "html",
    [
        profile_list([entry(HOSTILE, offered=False)], ""),
        profile_head(entry(HOSTILE)),
        probe_view(HOSTILE.values, None, EVIL),
        quality_table(HOSTILE.values["quality"]),
        calibration_list([STATE]),
        calibration_list([CalibrationState("i", "T", "m", EVIL, "failed", error=EVIL, resumes=True)]),
        calibration_list([CalibrationState("i", "T", "m", EVIL, "ok", profile=EVIL + "2")]),
        plan_view(Plan(EVIL, read=3, taken=2, split=EVIL, unmarked=1, used=1, obstacles=(EVIL,))),
    ],
)
def test_hostile_texts_stay_text(html: str) -> None:
    assert "onerror" in assert_harmless(html).text


def test_the_chosen_one_is_pressed_and_only_that() -> None:
    html = profile_list([entry(CAFE), entry(MADARA, builtin=True, offered=False)], "key-cafe")
    pressed = re.findall(r'data-profile="([^"]+)" aria-pressed="([^"]+)"', html)
    assert pressed == [("key-cafe", "true"), ("key-madara", "false")]
    assert html.count("ships with the program") == 1 and html.count("not offered here") == 1
    assert "import" in profile_list([], "")


def test_the_shown_json_is_the_profile() -> None:
    for profile in (CAFE, HOSTILE):
        text = assert_harmless(profile_head(entry(profile))).text
        whole = text[text.index("{") if profile is CAFE else text.index('{\n "name"') :]
        assert Profile.model_validate_json(whole) == profile
    save = re.findall(r'data-save="([^"]+)"', profile_head(entry(HOSTILE)))[0]
    assert re.fullmatch(r"madara-[A-Za-z0-9-]+\.json", save)


@pytest.mark.parametrize(
    "values", [{}, {"coarse": None}, {"coarse": {"scores": "x"}}, {"coarse": {"scores": [[1], []]}}]
)
def test_no_table_of_scores(values: dict[str, Any]) -> None:
    assert head_scores(CAFE.model_copy(update={"values": values}), "coarse") is None
    for bad in ([], [[]], [1, 2], [[1, None]], [["a"]], [[float("inf")]], {"a": 1}):
        assert head_scores(CAFE.model_copy(update={"values": {"coarse": {"scores": bad}}}), "coarse") is None


def test_the_map_shows_scores_ranks_and_rings() -> None:
    scores = np.array([[0.1, 0.5], [0.4, 0.2]])
    figure = score_map(scores, 2, "coarse")
    heat, rings = figure.data
    np.testing.assert_allclose(np.asarray(heat.z), scores)
    assert np.array_equal(np.asarray(heat.customdata), [[4, 1], [2, 3]])
    assert "rank %{customdata}" in heat.hovertemplate and "score" in heat.hovertemplate
    assert list(zip(rings.y, rings.x, strict=True)) == [(0, 1), (1, 0)]
    assert [tuple(found) for found in rings.customdata] == [(0.5, 1), (0.4, 2)]
    assert len(score_map(np.full((3, 2), 0.2), 0, "fine").data) == 1


def test_maps_of_large_models_stay_small() -> None:
    scores = np.random.default_rng(0).random((80, 64))
    assert len(score_map(scores, 4, "fine").to_json()) < 300_000


def test_heads_are_ranked_and_the_used_ones_marked() -> None:
    (profile,) = [p for p in builtin_profiles() if p.method == "cafe"]
    tables = {stage: scores for stage in ("coarse", "fine") if (scores := head_scores(profile, stage)) is not None}
    html = ranked_heads(tables, {"coarse": 4, "fine": 2})
    assert html.count(">used<") == 6
    best = np.unravel_index(int(tables["coarse"].argmax()), tables["coarse"].shape)
    first = re.findall(r"<td>1</td><td>(\d+-\d+) ", html)[0]
    assert first == f"{best[0]}-{best[1]}"
    assert "Coarse filtering: best heads" in html and "Fine steering: best heads" in html
    assert "4 for coarse filtering and 2 for fine steering" in maps_intro(tables, {"coarse": 4, "fine": 2})
    assert maps_intro({}, {}) == ""


def test_the_quality_table_marks_the_best_and_gives_intervals() -> None:
    html = quality_table(QUALITY)
    assert html.count('<strong class="mdqa-number">0.900</strong>') == 2
    assert '<span class="mdqa-number">0.700</span><span class="mdqa-quiet">0.500 to 0.800</span>' in html
    assert "7.2 of 20.0 documents" in html and "20 questions" in html
    for nothing in (None, {}, {"rows": "x"}, []):
        assert quality_table(nothing) == ""


def test_the_probe_shows_correlations_with_intervals_and_the_route() -> None:
    (profile,) = [p for p in builtin_profiles() if p.method == "madara"]
    html = probe_view(profile.values, *implied_routing(profile))
    for value, (low, high) in zip(profile.values["rho"], profile.values["intervals"][1:], strict=True):
        assert f"{value:.3f}".replace("-", "−") in html
        assert f"{low:.3f} to {high:.3f}".replace("-", "−") in html
    stability = round(100 * profile.values["stability"])
    assert "Per-Document Extraction" in html and f"{stability} %" in html
    bare = probe_view(MADARA.values, *implied_routing(MADARA))
    assert bare.count("not measured") == 3 and "0.907" in bare and "over" not in bare.split("0.907")[1][:20]


def test_progress_says_how_far_and_how_long() -> None:
    state = CalibrationState(
        "i", "CAFE", "m", "x", "running", elapsed=125, done=3, total=12, doing="coarse", remaining=400, found=2
    )
    html = calibration_list([state])
    assert 'role="progressbar"' in html and 'aria-valuenow="3"' in html and "width:25.0%" in html
    assert "3 of 12 · 2 pieces found · coarse · 2 min 05 s so far · about 6 min 40 s left" in html
    stopping = calibration_list([CalibrationState("i", "CAFE", "m", "x", "running", stopping=True)])
    assert "Stopping after this step" in stopping
    first = calibration_list([CalibrationState("i", "CAFE", "m", "x", "running", elapsed=9)])
    assert "first pass is under way · 9 s so far" in first
    waiting = calibration_list([CalibrationState("i", "CAFE", "m", "x", "running", place=2)])
    assert "Waiting, number 2 in line" in waiting and "first pass" not in waiting
    assert "go on from here" in calibration_list([CalibrationState("i", "C", "m", "x", "cancelled", resumes=True)])
    assert "from the start" in calibration_list([CalibrationState("i", "C", "m", "x", "cancelled")])
    assert "stored as x (2)" in calibration_list([CalibrationState("i", "C", "m", "x", "ok", profile="x (2)")])
    assert calibration_list([]) == ""


@pytest.mark.parametrize(
    ("value", "words"), [(0.2, "1 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3600, "1 h 00 min"), (7505, "2 h 05 min")]
)
def test_durations_are_rough(value: float, words: str) -> None:
    assert duration(value) == words


def test_the_plan_names_what_is_there_and_what_is_not() -> None:
    made = Plan("CAFE", read=40, part=22, split="calibration", taken=20, unmarked=2, used=18, held_out=7, passes=43)
    html = plan_view(made)
    for words in ("20 questions of 22 in the calibration half", "2 without gold marks", "7 held out", "43 passes"):
        assert words in html
    assert "CAFE uses 18 of them" in html
    assert "keeps no finished pieces" in html
    found = plan_view(Plan("CAFE", read=4, taken=4, used=4, passes=8, pieces=3))
    assert "3 finished pieces of an earlier attempt will be used" in found and "keeps no" not in found
    assert "finished piece" not in plan_view(Plan("CAFE", read=4, taken=4, used=4, passes=8, pieces=0))
    assert "No questions yet" in plan_view(Plan("CAFE"))


def test_profiles_of_one_model_share_heads_or_not() -> None:
    table = np.array(CAFE.values["coarse"]["scores"])
    turned = {"n": 8, "scores": table[::-1].tolist()}
    other = CAFE.model_copy(update={"name": "turned", "values": {"coarse": turned, "quality": QUALITY}})
    used = {"coarse": 4, "fine": 2}
    words = assert_harmless(heads_compared(CAFE, other, (used, used))).text
    assert "a run uses (4 and 4), 0 are the same" in words
    assert "Spearman's correlation of all 16 scores: −" in words
    assert "3-30.500 rank 1 used0.100 rank 13 −0.400" in words.replace("  ", " ")
    assert "turned has no scores of this stage" in words  # the fine one
    assert "0.900" in words and "0.800 to 1.000" in words
    same = assert_harmless(heads_compared(CAFE, CAFE, (used, used))).text
    assert "4 are the same. Spearman's correlation of all 16 scores: 1.000" in same
    assert "Neither profile was measured" in same


def test_heads_of_different_models_are_not_matched() -> None:
    [builtin] = [profile for profile in builtin_profiles() if profile.method == "cafe"]
    used = {"coarse": 4, "fine": 2}
    words = assert_harmless(heads_compared(builtin, CAFE, (used, used))).text
    assert "are not the same heads" in words and "Spearman" not in words
    assert "30 layers of 9 heads18-7, 18-6, 17-3, 17-4" in words and "100% of the depth" in words
    assert_harmless(heads_compared(HOSTILE, CAFE, (used, used)))
    assert_harmless(heads_compared(HOSTILE, HOSTILE, ({}, {})))
