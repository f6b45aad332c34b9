"""Annotating by keys: label, evidence, note, skip, undo, practice, and a line that breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from storage.queue_settings import PracticeItem
from storage.store import Store
from tests.browser.conftest import Server, watched
from tests.ui.disagreeing import disagreeing, stored

pytestmark = pytest.mark.browser

QUEUE = "Local and Global disagree"
BROKEN = "Failed to load resource"
"""What the browser logs itself while its line is cut."""


@pytest.fixture
def annotator(browser: Browser) -> Iterator[Page]:
    yield from watched(browser, "localStorage.setItem('mdqa-tour', 'seen')", expected=(BROKEN,))


def filled(server: Server, number: int) -> list[str]:
    """A queue of real runs in which DuQUAD's agents disagree, the first of them for practice."""
    with Store.open(server.database) as store:
        runs = []
        for _ in range(number):
            runs.append(stored(store, disagreeing()))
            store.queues.send(runs[-1], QUEUE, "ada")
        practice = PracticeItem(runs[0], "second", "Document 4 speaks of the bridge that stands today.")
        store.queue_settings.change(QUEUE, "ada", guidelines="- Read **all** documents.", practice_items=[practice])
    return runs


def test_a_queue_is_worked_through_by_keys(annotator: Page, scripted_server: Server) -> None:
    runs = filled(scripted_server, 4)
    page = annotator
    page.goto(f"{scripted_server.url}/?tab=annotate")
    page.locator(".mdqa-queue-card").click(timeout=60_000)
    sheet, status = page.locator("[data-sheet]"), page.locator("[data-status]")
    expect(page.locator("[data-asked]")).to_be_focused()
    expect(sheet).to_contain_text("Practice item 1 of 1")
    expect(page.locator(".mdqa-guidelines")).to_be_visible()
    expect(page.locator(".mdqa-read mark, .mdqa-read .mdqa-key")).to_have_count(0)

    expect(page.locator("dialog[data-keys]")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("dialog[data-keys]")).to_be_visible()
    expect(page.locator('[data-key-of="B"]')).to_contain_text("B is right")
    page.keyboard.press("b")  # no label while the list is open
    page.keyboard.press("Escape")
    expect(page.locator("dialog[data-keys]")).to_be_hidden()
    page.keyboard.press("4")
    page.keyboard.press("2")
    page.keyboard.press("2")
    expect(page.locator('[data-evidence-of][aria-pressed="true"]')).to_have_count(1)
    page.keyboard.press("w")
    page.keyboard.type("a note with b and n")
    page.keyboard.press("Escape")
    right = page.locator(".mdqa-option", has_text="1921").locator("h3").inner_text()[-1]
    page.keyboard.press(right.lower())
    expect(page.locator("[data-feedback]")).to_contain_text("As expected")
    expect(page.locator("[data-feedback]")).to_contain_text("stands today")
    expect(status).to_have_text("Saved.")

    page.keyboard.press("s")
    page.locator("[data-ask-text]").fill("needs a map")
    page.keyboard.press("Enter")
    expect(status).to_have_text("Skipped.")
    expect(sheet).to_contain_text("1 skipped, 2 left")
    page.keyboard.press("u")
    expect(status).to_have_text("Taken back.")
    page.keyboard.press("o")
    expect(sheet).to_contain_text("1 labelled, 0 skipped, 2 left")

    page.locator("[data-note-text]").fill("typed before the line broke")
    page.context.set_offline(True)
    page.locator('[data-mark="neither"]').click()
    expect(status).to_contain_text("Not saved, trying again", timeout=10_000)
    page.context.set_offline(False)
    expect(status).to_have_text("Saved.", timeout=20_000)
    page.locator("[data-note-text]").fill("half a thought")
    page.reload()
    expect(page.locator("[data-note-text]")).to_have_value("half a thought", timeout=60_000)
    page.keyboard.press("c")
    expect(sheet).to_contain_text("Nothing is left for you")
    expect(page.locator("#mdqa-queue-states")).to_contain_text("3 of 6 (2 per item)")  # without Refresh

    with Store.open(scripted_server.database) as store:
        log = store.labels.log(QUEUE)
    assert [entry.action for entry in log] == ["label", "skip", "undo", "label", "label", "label"]
    practice, skipped, _, both, neither, cannot = log
    assert (practice.run, practice.label, practice.practice) == (runs[0], "second", True)
    assert (practice.evidence, practice.note) == (("d4",), "a note with b and n")
    assert 0 < practice.seconds + practice.idle_seconds < 120
    assert (skipped.note, both.label, neither.label, cannot.label) == ("needs a map", "both", "neither", "cannot_tell")
    assert (neither.note, cannot.note) == ("typed before the line broke", "half a thought")
    assert {entry.annotator for entry in log} == {"local"}


def test_guidelines_are_changed(page: Page, scripted_server: Server) -> None:
    page.goto(f"{scripted_server.url}/?tab=annotate")
    page.get_by_role("button", name="Guidelines, overlap and practice items of a queue").click(timeout=60_000)
    page.locator("#mdqa-settings-queue input").click()
    page.get_by_role("option", name=QUEUE).click()
    rules = page.locator("#mdqa-queue-settings").get_by_label("Guidelines")
    expect(rules).to_have_value("- Read **all** documents.")
    expect(page.locator("#mdqa-practice")).to_contain_text("stands today")
    rules.fill("Read twice.")
    page.locator("#mdqa-settings-keep").click()
    expect(page.locator("#mdqa-settings-said")).to_contain_text("Version 2 holds")
    expect(page.locator("#mdqa-queue-states")).to_contain_text("version 2")
