"""Failures in a real browser: from all runs to the ones of a kind, the right row, and a queue with what was ticked."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from mdqa.diagnosis.facets import facets_of
from mdqa.records import RunResult
from storage.store import Store
from tests.browser import steps
from tests.browser.conftest import Server
from tests.diagnosis.builders import IDS, run, stage, voice, whole

pytestmark = pytest.mark.browser


def keep(store: Store, result: RunResult) -> None:
    store.runs.begin(result.model_copy(update={"status": "running"}))
    store.runs.finish(result, correct=result.answer == "Vienna", facets=facets_of(result))


def made() -> tuple[RunResult, ...]:
    """The evidence is dropped; a right answer is overruled; a right answer."""
    scores = {"s": dict(zip(IDS, (0.2, 0.9, 0.5, 0.4, 0.1), strict=True))}
    agents = (voice("local_agent", "Graz", chosen=True), voice("global_agent", "Vienna"))
    day = "2026-11-0{}T10:00:00.000+00:00"
    return (
        run("Graz", stage("selection", IDS, ("d2", "d3"), scores=scores), whole("answer", ("d2", "d3")), id="lost",
            method="cafe", created=day.format(1)),
        run("Graz", whole(), id="overruled", method="duquad", opinions=agents, created=day.format(2)),
        run("Vienna", whole(), id="right", method="duquad", created=day.format(3)),
    )  # fmt: skip


def test_from_all_runs_to_a_queue(page: Page, scripted_server: Server) -> None:
    with Store.open(scripted_server.database) as store:
        for result in made():
            keep(store, result)
        steps.open_page(page, f"{scripted_server.url}/?tab=history")  # an address from before
        runs = page.locator("#mdqa-failures")
        rows, total = runs.locator("tr[data-run]"), runs.get_by_test_id("total")
        expect(rows).to_have_count(3, timeout=20_000)
        expect(total).to_have_text("3 runs")

        bar = runs.get_by_test_id("diagnoses").get_by_role("link", name="Evidence dropped")
        bar.focus()
        page.keyboard.press("Enter")
        expect(rows).to_have_count(1)
        expect(rows.first).to_have_attribute("data-run", "lost")
        expect(bar).to_be_focused()
        assert "diagnosis=dropped" in page.url
        page.reload()  # the address is all there is to a list
        expect(rows).to_have_count(1, timeout=20_000)
        runs.get_by_role("link", name="Clear all").click()
        expect(rows).to_have_count(3)

        runs.locator("[name=sort]").select_option("oldest")
        expect(rows.first).to_have_attribute("data-run", "lost")
        expect(runs.get_by_role("button", name="Run again")).to_be_disabled()
        for name in ("lost", "overruled"):
            runs.locator(f'[data-pick="{name}"]').check()
        search = runs.get_by_label("Search in question and answer")
        search.fill("VIENNA")
        search.press("Enter")
        expect(rows).to_have_count(1)
        expect(runs.locator("[data-count]")).to_have_text("2 ticked, 2 of them on other pages")
        runs.get_by_label("Queue", exact=True).fill("Mine")
        runs.get_by_role("button", name="Send to the queue").click()
        expect(page.locator("#mdqa-failures-said")).to_contain_text("2 runs sent to “Mine”.", timeout=10_000)
        assert {item.run for item in store.queues.items("Mine")} == {"lost", "overruled"}

        search.fill("")
        search.press("Enter")
        expect(rows).to_have_count(3)
        expect(runs.locator('[data-pick="lost"]')).to_be_checked()
        expect(runs.get_by_role("link", name="Compare 2")).to_have_attribute("href", "?run=lost,overruled&tab=compare")
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        runs.locator('tr[data-run="lost"] a').click()
        page.wait_for_url("**/?run=lost")
        told = page.get_by_test_id("diagnosis")
        expect(told).to_contain_text("Evidence dropped", timeout=30_000)
        expect(told).to_contain_text("In its place: 2. Text 2, 3. Text 3.")
