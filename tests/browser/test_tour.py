"""A first visit by keyboard alone: the tour, a run, what happened to the evidence."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.conftest import Server

pytestmark = pytest.mark.browser

PATIENCE = 120_000


def tab_to(page: Page, selector: str, limit: int = 80) -> None:
    """Press Tab until the element has the keyboard's place."""
    for _ in range(limit):
        if page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(
        f"{selector} is not reached in {limit} steps; now on {page.evaluate('document.activeElement.outerHTML')}"
    )


def test_a_first_visit_by_keyboard(first_visit: Page, scripted_server: Server) -> None:
    page = first_visit
    steps.open_page(page, scripted_server.url)
    tour, run = page.locator("#mdqa-tour"), page.locator("#mdqa-run")
    expect(tour).to_contain_text("Step 1 of 3", timeout=10_000)
    expect(page.locator("#mdqa-example.mdqa-tour-target")).to_be_visible()
    assert page.evaluate("document.activeElement === document.body")  # it takes no focus
    place = run.bounding_box()
    steps.open_tab(page, "Failures")
    expect(page).to_have_url(f"{scripted_server.url}/?tab=failures")
    expect(tour).to_be_hidden()  # it speaks of Ask
    steps.open_tab(page, "Ask")
    expect(tour).to_be_visible()
    page.locator("body").click(position={"x": 2, "y": 2})  # the keyboard begins at the top again
    tab_to(page, "[data-tour=next]")
    page.keyboard.press("Enter")
    expect(tour).to_contain_text("Run it")
    expect(page.locator("#mdqa-run.mdqa-tour-target")).to_be_visible()

    tab_to(page, "#mdqa-run")
    page.keyboard.press("Enter")
    expect(tour).to_contain_text("See what happened to the evidence")
    expect(page.get_by_test_id("answer")).to_be_visible(timeout=PATIENCE)
    expect(page.locator("#mdqa-result.mdqa-tour-target")).to_be_visible()
    page.keyboard.press("Escape")
    expect(tour).to_be_hidden()
    assert page.locator(".mdqa-tour-target").count() == 0 and place is not None
    assert run.bounding_box()["width"] == place["width"]  # type: ignore[index]

    expect(page.get_by_test_id("lesson")).to_contain_text("Only “Skerrow lighthouse” gives the year")
    tab_to(page, "#mdqa-flow .mark")
    page.keyboard.press("ArrowRight")
    said = page.locator("#mdqa-flow [data-said]")
    expect(said).to_contain_text("1. Skerrow Island · ")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text("2. Skerrow lighthouse (gold)")

    steps.open_tab(page, "Heads")
    expect(page.locator("#mdqa-head-map [data-head]").first).to_be_visible(timeout=20_000)
    tab_to(page, "#mdqa-head-map [data-head]")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    layer, head = page.evaluate("document.activeElement.dataset.head.split('-')")
    assert head == "1"
    expect(page.locator("#mdqa-head-facts")).to_contain_text(f"Layer {layer}, head 1 puts", timeout=20_000)
    expect(page.locator("#mdqa-head-tokens")).to_contain_text("Not kept for this head")
    assert page.evaluate("document.activeElement.dataset.head") == f"{layer}-1"  # the place is not lost

    page.locator("[data-part=Documents]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#mdqa-documents .mdqa-journey").first).to_contain_text("given as", timeout=20_000)

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(scripted_server.url)
    expect(run).to_be_enabled(timeout=60_000)
    page.wait_for_timeout(1_500)
    expect(tour).to_be_hidden()  # it was seen
    opener = page.locator("#mdqa-tour-open")
    opener.focus()
    page.keyboard.press("Enter")
    expect(tour.get_by_role("heading", name="Take an example")).to_be_focused()
    box = tour.bounding_box()
    assert box is not None
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] + box["height"] <= 844
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, summary, [role=tab]')].filter((one) => one.checkVisibility())
            .filter((one) => !one.closest('[aria-hidden=true]')).map((one) => [one, one.getBoundingClientRect()])
            .filter(([, box]) => box.height < 24 || box.width < 24).map(([one]) => one.outerHTML.slice(0, 120))"""
    )
    assert small == []
    page.keyboard.press("Escape")
    expect(tour).to_be_hidden()
    expect(opener).to_be_focused()
