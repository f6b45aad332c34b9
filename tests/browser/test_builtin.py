"""The main path in a real browser on the real built-in model: minutes, not seconds."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.conftest import Server

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PATIENCE = 900_000


def test_the_main_job_on_the_built_in_model(page: Page, builtin_server: Server) -> None:
    steps.open_page(page, builtin_server.url)
    steps.choose_example(page, "Two documents must be joined")
    documents = steps.count_of_documents(page)
    found = {}
    for method, title in steps.TITLES.items():
        steps.choose_methods(page, title)
        run_id = steps.run(page, PATIENCE)
        found[method] = (run_id, steps.assert_result(page, method, documents, PATIENCE))
    page.goto("about:blank")  # a page whose server goes away logs errors of its own
    builtin_server.stop()
    builtin_server.start()
    steps.open_page(page, builtin_server.url)
    steps.open_tab(page, "Failures")
    expect(page.locator("#mdqa-failures tr[data-run]")).to_have_count(3, timeout=30_000)
    for method, (run_id, answer) in found.items():
        steps.open_page(page, f"{builtin_server.url}/?run={run_id}")
        assert steps.assert_result(page, method, documents, PATIENCE) == answer


def test_stop_stops_between_tokens(page: Page, builtin_server: Server) -> None:
    steps.open_page(page, builtin_server.url)
    steps.choose_methods(page, "DuQUAD")
    page.locator("#mdqa-run").click()
    expect(page.locator("#mdqa-stop")).to_be_enabled(timeout=10_000)
    expect(page.locator(".mdqa-stages li").first).to_be_visible(timeout=PATIENCE)
    page.locator("#mdqa-stop").click()
    expect(page.locator("#mdqa-live")).to_contain_text("Stopped", timeout=60_000)
    expect(page.locator("#mdqa-run")).to_be_enabled(timeout=10_000)
