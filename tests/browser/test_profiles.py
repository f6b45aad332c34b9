"""Profiles in a real browser: calibrated on a tiny real model, stopped, taken up again, looked at, used, deleted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from mdqa.records import Profile
from storage.store import Store
from tests.browser import steps
from tests.browser.conftest import Server
from tests.methods.cafe.helpers import place_question

pytestmark = pytest.mark.browser

PATIENCE = 180_000


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "places.jsonl"
    made = [place_question(40, i % 8, f"place{i}") for i in range(400)]  # long enough to be stopped
    path.write_text("".join(question.model_dump_json() + "\n" for question in made), encoding="utf-8")
    return path


def open_profiles(page: Page, url: str) -> None:
    page.goto(f"{url}/?tab=profiles")
    expect(page.locator("#mdqa-profiles [data-profile]").first).to_be_visible(timeout=60_000)
    page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for


def fill(page: Page, questions: Path, name: str, number: int) -> None:
    page.locator("#mdqa-calibration-files input[type=file]").set_input_files(questions)
    page.get_by_label("All questions").check()
    page.get_by_label("Questions", exact=True).fill(str(number))
    page.get_by_label("Held-out questions").fill("2")
    page.locator("#mdqa-calibration-name").locator("input, textarea").fill(name)
    expect(page.locator("#mdqa-plan")).to_contain_text(f"about {2 * number + 2} passes", timeout=20_000)


def row(page: Page, name: str) -> object:
    return page.locator("#mdqa-profiles [data-profile]").filter(
        has=page.locator("strong", has_text=re.compile(f"^{name}$"))
    )


def import_file(page: Page, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.locator("#mdqa-profile-import").click()
    chooser.value.set_files(path)


def test_calibrate_stop_take_up_and_use(page: Page, tiny_server: Server, questions: Path) -> None:
    open_profiles(page, tiny_server.url)
    fill(page, questions, "places", 300)
    going, start, stop = (page.locator(f"#mdqa-{name}") for name in ("calibrations", "calibrate", "calibration-stop"))
    start.click()
    expect(stop).to_be_enabled(timeout=10_000)
    expect(going).to_contain_text(re.compile(r"[1-9]\d* of 602"), timeout=PATIENCE)
    stop.click()
    expect(going).to_contain_text("Stopped", timeout=60_000)
    expect(stop).to_be_disabled(timeout=10_000)
    expect(page.locator("#mdqa-plan")).to_contain_text("of an earlier attempt will be used", timeout=10_000)

    open_profiles(page, tiny_server.url)  # what happened belongs to the program and not to the page
    expect(going).to_contain_text("Finished pieces are kept")
    fill(page, questions, "places", 6)
    expect(page.locator("#mdqa-plan")).to_contain_text("of an earlier attempt will be used")
    start.click()
    expect(going).to_contain_text("The profile places is stored", timeout=PATIENCE)
    expect(going).to_contain_text(re.compile(r"14 of 14 · \d+ pieces? found"))

    expect(page.locator("#mdqa-profile h3")).to_have_text("places", timeout=20_000)
    for stage, rings in (("coarse", 4), ("fine", 2)):
        map_ = page.locator(f"#mdqa-map-{stage}")
        expect(map_.locator(".heatmaplayer image").first).to_be_attached(timeout=20_000)
        expect(map_.locator(".scatterlayer .point")).to_have_count(rings, timeout=20_000)
    expect(page.locator("#mdqa-profile-rest")).to_contain_text("Fine steering: best heads")
    expect(page.locator(".mdqa-table.quality")).to_contain_text("BM25")

    steps.open_tab(page, "Ask")
    page.get_by_text("Profile, long documents, seed").click()
    page.get_by_label("Calibration profile").click()
    page.get_by_role("option", name="places (cafe)").click()
    steps.choose_methods(page, "CAFE")
    run_id = steps.run(page, PATIENCE)
    with Store.open(tiny_server.database) as store:
        assert store.runs.get(run_id).profile == "places"


def test_a_profile_is_saved_deleted_and_brought_back(page: Page, scripted_server: Server, tmp_path: Path) -> None:
    open_profiles(page, scripted_server.url)
    row(page, "cafe-builtin").click()
    expect(page.locator("#mdqa-profile h3")).to_have_text("cafe-builtin")
    expect(page.locator("#mdqa-profile-delete")).to_have_count(0)
    cafe = page.locator("#mdqa-profiles [data-profile]", has_text="CAFE").filter(has_text="stored")
    cafe.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#mdqa-profile h3")).to_have_text("hand")
    expect(cafe).to_have_attribute("aria-pressed", "true")
    expect(cafe).to_be_focused()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "cafe-hand.json"
    profile = Profile.model_validate_json(saved.read_text())
    page.locator("#mdqa-profile-delete").click()
    page.locator("#mdqa-profile-keep").click()
    expect(page.locator("#mdqa-profile-sure")).to_have_count(0)
    page.locator("#mdqa-profile-delete").click()
    page.locator("#mdqa-profile-sure").click()
    expect(page.locator("#mdqa-profile-notice")).to_contain_text("hand is deleted", timeout=10_000)
    expect(cafe).to_have_count(0)
    import_file(page, saved)
    expect(page.locator("#mdqa-profile-notice")).to_contain_text("hand is in the list", timeout=10_000)
    expect(cafe).to_have_attribute("aria-pressed", "true")
    with Store.open(scripted_server.database) as store:
        assert store.profiles.get("hand", method="cafe") == profile


def test_what_is_wrong_is_said_and_nothing_typed_is_lost(
    page: Page, scripted_server: Server, questions: Path, tmp_path: Path
) -> None:
    open_profiles(page, scripted_server.url)
    page.locator("#mdqa-calibrate").click()
    expect(page.locator("#mdqa-calibration-said")).to_contain_text("load a file of questions first", timeout=10_000)
    fill(page, questions, "hand", 5)
    expect(page.locator("#mdqa-plan")).to_contain_text("already is a profile", timeout=10_000)
    page.locator("#mdqa-calibrate").click()
    expect(page.locator("#mdqa-calibration-said")).to_contain_text("already is a profile", timeout=10_000)
    expect(page.locator("#mdqa-calibration-name").locator("input, textarea")).to_have_value("hand")
    page.get_by_label("Replace a profile of this name").check()
    expect(page.locator("#mdqa-plan")).not_to_contain_text("already is a profile", timeout=10_000)
    expect(page.locator("#mdqa-calibration-said")).not_to_contain_text("already is a profile")
    bad = tmp_path / "<img src=x onerror=hacked=1>.json"
    bad.write_text(json.dumps({"name": "<b>x</b>"}))
    import_file(page, bad)
    expect(page.locator("#mdqa-profile-notice")).to_contain_text("not a calibration profile", timeout=10_000)
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_page(page: Page, scripted_server: Server, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_profiles(page, scripted_server.url)
    for name in ("cafe-builtin", "madara-builtin"):
        row(page, name).click()
        expect(page.locator("#mdqa-profile h3")).to_have_text(name, timeout=20_000)
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
