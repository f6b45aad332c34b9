"""What every calibration says about itself: its options, how much work it is; and reading profile files."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.calibration import GIVEN, calibration_options, parse_profile, planned, typed_options
from mdqa.errors import ConfigError, InputError, ProfileError
from mdqa.methods.base import Tools
from mdqa.registry import CALIBRATIONS, load
from tests.methods.cafe.helpers import place_question
from tests.ui.helpers import WordEncoder, scripted_profiles

QUESTIONS = [place_question(5, i % 5, f"q{i}") for i in range(6)]


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_options_have_defaults_descriptions_and_limits(name: str) -> None:
    config = calibration_options(load(CALIBRATIONS, name))
    assert config.model_fields and not set(GIVEN) & set(config.model_fields)
    for field, info in config.model_fields.items():
        assert not info.is_required(), field
        assert info.description or field == "data", f"{name}.{field} has no description"
    for field, part in config.model_json_schema()["properties"].items():
        if part.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & set(part), f"{name}.{field} has no lower limit"
            assert {"maximum", "exclusiveMaximum"} & set(part), f"{name}.{field} has no upper limit"


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_what_is_planned_is_what_is_done(name: str) -> None:
    calibrate = load(CALIBRATIONS, name)
    seen: list[tuple[int, int]] = []
    used, passes = planned(calibrate, QUESTIONS[:4], held_out=QUESTIONS[4:], seed=1, options={})
    more: dict[str, Any] = {"held_out": QUESTIONS[4:]} if name == "cafe" else {}
    profile = calibrate(
        QUESTIONS[:4],
        Tools(ScriptedBackend(), make_encoder=WordEncoder),
        name="x",
        seed=1,
        progress=lambda done, total, text: seen.append((done, total)),
        **more,
    )
    assert profile.n == used == 4
    assert max(total for _, total in seen) == passes
    assert seen[-1][0] == seen[-1][1] <= passes


def test_what_cannot_be_used_is_said_without_a_model() -> None:
    bare = [
        item.with_documents(tuple(d.model_copy(update={"gold": None}) for d in item.documents)) for item in QUESTIONS
    ]
    with pytest.raises(InputError, match="none of 6 questions"):
        planned(load(CALIBRATIONS, "cafe"), bare, seed=1, options={})
    assert planned(load(CALIBRATIONS, "cafe"), [*bare[:2], QUESTIONS[0]], seed=1, options={})[0] == 1
    with pytest.raises(InputError, match="at least two"):
        planned(load(CALIBRATIONS, "madara"), QUESTIONS[:1], seed=1, options={})


def test_options_out_of_their_limits_name_the_option() -> None:
    cafe = load(CALIBRATIONS, "cafe")
    for given in ({"k1": 0}, {"m1": "0"}, {"doc_pool": "median"}, {"cancel": None}):
        with pytest.raises(ConfigError, match=f"option '{next(iter(given))}'"):
            typed_options(cafe, given)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff\xfe", b"{" * 5000, b'{"name": "\\ud800"}', b'{"a":' * 3000 + b"1" + b"}" * 3000]
)
def test_damaged_profile_files_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(ProfileError, match=r"^mine\.json: not a calibration profile"):
        parse_profile(data, "mine.json")


def test_a_written_profile_is_read_again() -> None:
    profile = scripted_profiles()[0]
    assert parse_profile(profile.model_dump_json().encode(), "x") == profile
