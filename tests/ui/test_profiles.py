"""Stored and packaged profiles: listed, imported, deleted; files from anywhere are refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.calibration import builtin_profiles
from mdqa.errors import InputError, MdqaError, ProfileError
from mdqa.records import Profile
from tests.ui.helpers import SCRIPTED, scripted_profiles
from ui.components.model_picker import AUTOMATIC, build_model_picker
from ui.context import Context
from ui.profiles import delete, find, implied_routing, import_profile, listed, ringed_heads

CAFE, MADARA = scripted_profiles()


def write(folder: Path, profile: Profile | dict[str, object], name: str = "mine.json") -> str:
    path = folder / name
    data = profile.model_dump(mode="json") if isinstance(profile, Profile) else profile
    path.write_text(json.dumps(data))
    return str(path)


def changed(profile: Profile, **changes: object) -> dict[str, object]:
    return profile.model_dump(mode="json") | changes


def test_stored_ones_come_first_and_each_has_its_own_key(context: Context) -> None:
    entries = listed(context)
    packaged = builtin_profiles()
    assert [entry.builtin for entry in entries] == [False, False, *(True for _ in packaged)]
    assert [entry.profile for entry in entries] == [MADARA, CAFE, *packaged]
    assert len({entry.key for entry in entries}) == len(entries)
    assert [entry.title for entry in entries[:2]] == ["MADARA", "CAFE"]
    assert all(entry.offered for entry in entries)
    assert find(context, entries[1].key) == entries[1]
    for key in ("", None, "stored-", "../../etc/passwd", 3):
        with pytest.raises(ProfileError, match="not there any more"):
            find(context, key)


def test_a_stored_profile_is_deleted_and_a_packaged_one_is_not(context: Context) -> None:
    stored, *_, packaged = listed(context)
    assert delete(context, stored.key) == stored.profile
    assert [entry.key for entry in listed(context)].count(stored.key) == 0
    assert len(context.store.profiles.list()) == 1
    with pytest.raises(ProfileError, match="not there any more"):
        delete(context, stored.key)
    with pytest.raises(ProfileError, match="ships with the program"):
        delete(context, packaged.key)


def test_an_exported_profile_comes_back(context: Context, tmp_path: Path) -> None:
    stored = listed(context)[1]
    path = write(tmp_path, stored.profile)
    assert import_profile(context, path) == stored  # it is there: nothing happens
    delete(context, stored.key)
    assert import_profile(context, path).profile == stored.profile
    assert context.profile_for("cafe", SCRIPTED, "hand") == stored.profile
    for profile in builtin_profiles():
        assert import_profile(context, write(tmp_path, profile)).builtin


def test_an_import_never_overwrites(context: Context, tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="there already is another profile 'hand' of CAFE"):
        import_profile(context, write(tmp_path, changed(CAFE, n=99)))
    assert context.store.profiles.get("hand", method="cafe").n == 8
    other = import_profile(context, write(tmp_path, changed(CAFE, model="elsewhere/model")))
    assert not other.offered


TABLE = CAFE.values["coarse"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "not a calibration profile"),
        (changed(CAFE, extra=1), "not a calibration profile"),
        (changed(CAFE, method="direct"), "for the method 'direct'"),
        (changed(CAFE, name=" "), "no name"),
        (changed(CAFE, model=""), "no name or no model"),
        (changed(CAFE, name="a\u202eb"), "cannot be seen"),
        (changed(CAFE, name="x" * 200), "200 characters"),
        (changed(CAFE, created="soon"), "not a date"),
        (changed(CAFE, values={}), "no table"),
        (changed(CAFE, values={"coarse": TABLE}), "fine stage"),
        (changed(CAFE, values={"coarse": TABLE, "fine": {"n": 1, "scores": [[1, 2]]}}), r"\(1, 2\)"),
        (changed(CAFE, values={"coarse": {"scores": [["a", "b"]]}, "fine": TABLE}), "no table"),
        (changed(CAFE, values={"coarse": TABLE, "fine": TABLE | {"n": None}}), "its values"),
        (changed(CAFE, values=CAFE.values | {"options": {"doc_pool": "median"}}), "doc_pool"),
        (changed(CAFE, values=CAFE.values | {"more": float("nan")}), "nan"),
        (changed(MADARA, values={"rho": [0.1, 0.2]}), "2 correlations"),
        (changed(MADARA, values={"rho": [3, 2, 1]}), "-1 to 1"),
        (changed(MADARA, values={"rho": "abc"}), "damaged"),
    ],
)
def test_files_that_no_method_could_use_are_refused(
    context: Context, tmp_path: Path, data: dict[str, object], words: str
) -> None:
    with pytest.raises(ProfileError, match=rf"^mine\.json: .*{words}"):
        import_profile(context, write(tmp_path, data))
    assert len(context.store.profiles.list()) == 2


def test_no_file_and_huge_files(context: Context, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose a JSON file"):
        import_profile(context, None)
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (8 * 2**20 + 1))
    with pytest.raises(ProfileError, match=r"huge\.json: has more than 8 MB"):
        import_profile(context, str(huge))
    deep = tmp_path / "deep.json"
    deep.write_text(
        '{"name":"x","method":"cafe","model":"m","data":"","n":1,"seed":1,"created":"2026-01-01","values":{"a":'
        + "[" * 150
        + "]" * 150
        + "}}"
    )
    with pytest.raises(MdqaError, match=r"^deep\.json"):
        import_profile(context, str(deep))


def test_rings_follow_the_profile_or_the_methods_defaults() -> None:
    assert ringed_heads(CAFE) == {"coarse": 4, "fine": 2}
    given = CAFE.model_copy(update={"values": CAFE.values | {"options": {"k1": 7, "k2": "many"}}})
    assert ringed_heads(given) == {"coarse": 7, "fine": 0}


def test_the_routing_is_the_routers() -> None:
    routing, problem = implied_routing(MADARA)
    assert routing is not None and routing.treatment == "cot" and not problem
    routing, problem = implied_routing(CAFE)
    assert routing is None and "damaged" in problem


def test_the_ask_page_offers_what_is_stored_now(context: Context) -> None:
    import gradio as gr  # noqa: PLC0415 (only this test lays out components)

    with gr.Blocks():
        picker = build_model_picker(context)
    context.store.profiles.save(CAFE.model_copy(update={"name": "fresh"}))
    now = picker.profiles_now(SCRIPTED, "", "fresh")
    assert ("fresh (cafe)", "fresh") in [tuple(choice) for choice in now.choices] and now.value == "fresh"
    assert picker.profiles_now(SCRIPTED, "", "gone").value == AUTOMATIC
    assert len(picker.profiles_now("no such model", "", AUTOMATIC).choices) == 1
