"""Compare in a real browser: a question set side by side, a benchmark compared, a number followed to its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.store import Store
from tests.browser.conftest import Server
from tests.ui.compared import answer_all, placed

pytestmark = pytest.mark.browser


def test_one_question_and_one_benchmark(page: Page, scripted_server: Server, tmp_path: Path) -> None:
    with Store.open(scripted_server.database) as store:
        entries = (("direct", {}), ("direct", {"context": "none"}), ("retrieve_read", {"ranker": "bm25", "top_k": 1}))
        runs = answer_all(store, placed(), entries)
    page.goto(f"{scripted_server.url}/?tab=compare")
    questions, sides = page.locator("#mdqa-compare-questions"), page.get_by_test_id("sides")
    expect(questions.locator("button")).to_have_count(6, timeout=60_000)
    page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for

    page.get_by_label("Search questions").fill("river ostra")
    page.keyboard.press("Enter")
    expect(questions.locator("button")).to_have_count(4, timeout=10_000)
    questions.locator("button").first.focus()
    page.keyboard.press("Enter")
    expect(sides.locator(".mdqa-side")).to_have_count(2, timeout=20_000)
    expect(page.locator("#mdqa-compare-ranks .scatterlayer .trace").first).to_be_attached(timeout=20_000)
    address = page.url
    page.reload()
    expect(sides.locator(".mdqa-side")).to_have_count(2, timeout=60_000)
    assert page.url == address
    expect(page.locator(".mdqa-result")).to_have_count(0)

    page.get_by_role("tab", name="One benchmark").click()
    page.locator("#mdqa-compare-make").click()
    table, listed = page.locator("#mdqa-compare-table table"), page.get_by_test_id("listed")
    expect(table.locator("tbody tr")).to_have_count(3, timeout=30_000)
    expect(page.locator("#mdqa-compare-scatter .scatterlayer .trace").first).to_be_attached(timeout=20_000)
    expect(page.locator("#mdqa-compare-places .scatterlayer .trace")).to_have_count(3, timeout=20_000)
    page.locator('#mdqa-compare-matrix [data-cell="who:100"]').focus()
    page.keyboard.press("Enter")
    expect(listed.locator("tbody tr")).to_have_count(1, timeout=10_000)
    expect(listed.locator("h3")).to_be_focused()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as JSON").click()
    saved.value.save_as(tmp_path / "comparison.json")
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [row["n"] for row in found["entries"]] == [10, 10, 10]

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    (one,) = [run for run in runs["direct"] if run.question.id == "q4@p1"]
    listed.locator(f'a[href="?run={one.id}"]').click()
    expect(page.get_by_test_id("answer")).to_have_text(one.answer, timeout=60_000)
