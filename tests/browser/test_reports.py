"""A report in a real browser: chosen, made from stored runs, drawn, saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.store import Store
from tests.browser.conftest import Server
from tests.reports.builders import duquad, placed, question
from ui.reporting import offered
from ui.views.reports import entry

pytestmark = pytest.mark.browser


def store_runs(server: Server) -> None:
    with Store.open(server.database) as store:
        for model in ("m1", "m2"):
            for item in placed(question("a", documents=5), 1, 4):
                run = duquad(item, attention=(1.0, 2.0, 3.0, 4.0, 9.0), model=model)
                run = run.model_copy(update={"id": f"{model}-{item.id[-2:]}"})
                store.runs.begin(run.model_copy(update={"status": "running"}))
                store.runs.finish(run)


def test_a_report_is_made_drawn_and_saved(page: Page, scripted_server: Server, tmp_path: Path) -> None:
    store_runs(scripted_server)
    page.goto(f"{scripted_server.url}/?tab=reports")
    head, table = page.locator("#mdqa-report-head"), page.locator("#mdqa-report-table table")
    expect(head).to_contain_text("No report yet", timeout=60_000)
    page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for

    page.locator("#mdqa-report-make").click()
    expect(head).to_contain_text("DuQUAD, its ablations", timeout=20_000)

    page.locator("#mdqa-report-name input").click()
    page.get_by_role("option", name=entry(offered("attention_by_position")), exact=True).click()
    expect(page.locator("#mdqa-report-about")).to_contain_text("Figure 1", timeout=10_000)
    page.locator("#mdqa-report-make").click()
    expect(head).to_contain_text("4 runs", timeout=20_000)
    expect(table.locator("tbody tr")).to_have_count(2 * (1 + 2 * 5))
    lines = page.locator("#mdqa-report-picture .scatterlayer .trace")
    expect(lines).to_have_count(4, timeout=20_000)  # two lines with their bands
    page.locator("#mdqa-report-group input").click()
    page.get_by_role("option", name="All", exact=True).click()
    expect(page.locator("#mdqa-report-picture .legendtext")).to_have_count(4, timeout=20_000)

    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as JSON").click()
    saved.value.save_as(tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["name"], report["n"], len(report["rows"])) == ("attention_by_position", 4, 20)
