"""Agreement in a real browser: the values of a hand calculation, an item decided, the labels saved and brought back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.label_files import import_lines, snapshot
from storage.store import Store
from tests.browser.conftest import Server
from tests.browser.steps import open_tab
from tests.ui.labelled import QUEUE, fill

pytestmark = pytest.mark.browser


def test_agreement_is_computed_decided_and_exported(page: Page, scripted_server: Server, tmp_path: Path) -> None:
    with Store.open(scripted_server.database) as store:
        fill(store)
    page.goto(f"{scripted_server.url}/?tab=agreement")
    expect(page.locator("#mdqa-agreement-queue input")).to_have_value(QUEUE, timeout=60_000)
    page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for
    page.locator("#mdqa-agreement-compute").click()
    row = page.locator("#mdqa-agreement-table tr", has_text="ann · bob")
    expect(row).to_contain_text("62.5%", timeout=30_000)
    expect(row).to_contain_text("0.38")  # Cohen
    expect(row).to_contain_text("0.42")  # Krippendorff
    expect(page.locator("#mdqa-agreement-time .scatterlayer .trace")).to_have_count(2, timeout=20_000)

    contested = page.locator("#mdqa-contested li")
    expect(contested).to_have_count(3)
    contested.first.get_by_role("button").click()
    item = page.get_by_test_id("contested-item")
    expect(item).to_contain_text("<b>bob</b> on r2", timeout=20_000)
    expect(item.get_by_role("link", name="Open the run")).to_have_attribute("href", "?run=r2")
    page.locator("#mdqa-decision").get_by_label("local", exact=True).check()
    page.locator("#mdqa-decision-note textarea").fill("Document 1 says so.")
    page.locator("#mdqa-decide").click()
    expect(item).to_contain_text("Decided by local", timeout=20_000)
    expect(contested.last).to_contain_text("decided")

    page.locator("#mdqa-use-judge").click()
    expect(page.locator("#mdqa-use-table")).to_contain_text("Disagreement", timeout=20_000)
    page.locator("#mdqa-labels-make").click()
    button = page.locator("#mdqa-labels-file")
    expect(button).to_be_visible(timeout=20_000)
    with page.expect_download() as saved:
        button.click()
    saved.value.save_as(tmp_path / "labels.jsonl")
    with (
        Store.open(scripted_server.database) as one,
        Store.open(tmp_path / "other.db") as other,
        (tmp_path / "labels.jsonl").open(encoding="utf-8") as lines,
    ):
        import_lines(other, lines)
        assert snapshot(other) == snapshot(one)
        assert [rating.label for rating in other.labels.adjudicated(QUEUE).values()] == ["first"]
    open_tab(page, "Ask")
