"""MADARA's decisions in a real browser: the other treatments tried from the page, scores pressed, replies read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.conftest import Server

pytestmark = pytest.mark.browser

PATIENCE = 120_000


def test_the_other_treatments_are_tried_and_a_reply_is_read(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "MADARA")
    first = steps.run(page, PATIENCE)
    steps.open_tab(page, "Decisions")
    treatments, scores, reply = (page.locator(f"#mdqa-{name}") for name in ("treatments", "scores", "reply"))
    expect(treatments).to_contain_text("Only the chosen treatment was carried out")
    page.locator("#mdqa-compare-all").click()
    page.wait_for_function("id => !location.href.includes(`run=${id}`)", arg=first, timeout=PATIENCE)
    expect(treatments.locator("tbody tr")).to_have_count(9, timeout=PATIENCE)
    expect(treatments.locator("tbody tr").first).to_contain_text("✓ chosen")
    expect(page.get_by_test_id("change")).to_contain_text("Compare none → all")
    expect(page.get_by_test_id("change")).to_contain_text("same answer")
    expect(page.locator("#mdqa-compare-all")).to_have_count(0)

    documents = scores.locator("tbody tr").count()
    expect(scores.locator("thead")).to_contain_text("After reasoning (CoT)")
    cell = scores.locator("button[data-call]").first
    cell.focus()
    page.keyboard.press("Enter")
    expect(reply).to_contain_text("Agent on document", timeout=20_000)
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(cell).to_be_focused()
    shown = reply.locator(".mdqa-reply").bounding_box()
    assert shown is not None and shown["y"] + shown["height"] <= 900  # in view beside the score, however long the table
    reply.get_by_role("button", name="Close").click()
    expect(reply.locator(".mdqa-reply")).to_be_hidden()
    scores.locator("button.said").first.click()
    expect(reply).to_contain_text("Generator on document", timeout=20_000)
    expect(scores.locator('button[aria-pressed="true"]')).to_have_count(1)

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    steps.open_tab(page, "Flow")
    expect(page.locator("#mdqa-flow .mark.start")).to_have_count(documents)
    expect(page.locator("#mdqa-flow .mark.answer").first).to_be_attached()
