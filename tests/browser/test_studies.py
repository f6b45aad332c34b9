"""Studies in a real browser: leave one out started, followed and read, its address opened again, a sweep beside it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from storage.store import Store
from tests.browser import steps
from tests.browser.conftest import Server

pytestmark = pytest.mark.browser

PATIENCE = 120_000


def test_documents_are_left_out_and_positions_swept(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "CAFE")
    base = steps.run(page, PATIENCE)
    documents = steps.count_of_documents(page)
    steps.open_tab(page, "Studies")
    table = page.locator("#mdqa-study-table tbody").first.locator("tr")
    expect(page.locator("#mdqa-leave-estimate")).to_contain_text(f"{documents} runs, about")
    page.locator("#mdqa-leave").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#mdqa-study-progress")).to_contain_text(f"{documents} of {documents} runs", timeout=PATIENCE)
    expect(table).to_have_count(documents, timeout=20_000)
    expect(page.locator("#mdqa-study-plot .scatterlayer .trace")).to_have_count(1, timeout=20_000)
    expect(page.locator("#mdqa-study-findings")).to_contain_text("not computed again")

    page.get_by_role("checkbox", name="Direct answering (No-Filter)").last.check()
    expect(page.locator("#mdqa-sweep-estimate")).to_contain_text(re.compile(r"[56] runs, about"), timeout=10_000)
    page.locator("#mdqa-sweep").click()
    expect(page.locator("#mdqa-study-findings")).to_contain_text("Moved: the gold document", timeout=PATIENCE)
    expect(table).to_have_count(6, timeout=PATIENCE)
    expect(table.last).to_contain_text("Open", timeout=PATIENCE)
    with Store.open(scripted_server.database) as store:
        sweep, leaving = store.studies.of_run(base)
        assert (sweep.kind, leaving.kind) == ("position_sweep", "leave_one_out")

    page.set_viewport_size({"width": 390, "height": 844})
    steps.open_page(page, f"{scripted_server.url}/?study={leaving.id}")
    expect(table).to_have_count(documents, timeout=PATIENCE)  # its tab and the study that was asked for are in front
    expect(page.locator("#mdqa-study-which input")).to_have_value(re.compile("Leave one out"))
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    table.first.get_by_role("link").click()
    page.wait_for_function("base => location.href.includes(`before=${base}`)", arg=base, timeout=20_000)
    expect(page.get_by_role("tab", name="Studies")).to_be_visible(timeout=PATIENCE)
    steps.open_tab(page, "Studies")
    expect(page.get_by_test_id("member")).to_contain_text("Back to the study", timeout=20_000)
