"""What a person does on the page, and what they then see."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

from playwright.sync_api import Page, expect

TITLES = {"duquad": "DuQUAD", "madara": "MADARA", "cafe": "CAFE"}


def open_page(page: Page, url: str) -> None:
    """Open an address and wait until the form stands."""
    page.goto(url)
    expect(page.locator("#mdqa-run")).to_be_enabled(timeout=60_000)
    page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for


def choose_example(page: Page, title: str) -> None:
    """Pick a built-in example by its title, another one than the one in front, and wait until it is there."""
    question = page.locator("#mdqa-question textarea")
    before = question.input_value()
    page.locator("#mdqa-example input").click()
    page.get_by_role("option", name=title).click()
    expect(question).not_to_have_value(before)


def choose_methods(page: Page, *titles: str) -> None:
    """Tick exactly these methods."""
    for label in page.locator("#mdqa-methods label").all():
        label.locator("input").set_checked(label.inner_text().strip() in titles)


def run(page: Page, timeout: float) -> str:
    """Press Run and wait for the result; the id of the run."""
    before = page.url
    page.locator("#mdqa-run").click()
    expect(page.locator(".mdqa-live, .mdqa-message").first).to_be_visible(timeout=5_000)
    return _new_run(page, before, timeout)


def run_again(page: Page, timeout: float) -> str:
    """Press Run again under a result and wait for the new one; the id of the new run."""
    before = page.url
    page.locator("#mdqa-again").click()
    return _new_run(page, before, timeout)


def _new_run(page: Page, before: str, timeout: float) -> str:
    page.wait_for_function("before => location.href !== before", arg=before, timeout=timeout)
    (run_id,) = parse_qs(urlparse(page.url).query)["run"]
    expect(page.locator(f'#mdqa-result button[data-copy="?run={run_id}"]')).to_be_visible(timeout=timeout)
    return run_id


def open_tab(page: Page, name: str) -> None:
    """Open a tab of the page or of the result."""
    page.get_by_role("tab", name=name).click()


def assert_result(page: Page, method: str, documents: int, timeout: float = 20_000) -> str:
    """A finished run: an answer, and a score or a status for every document. Returns the answer."""
    head = page.locator(".mdqa-result")
    expect(head.locator(".mdqa-badge.method")).to_have_text(TITLES[method], timeout=timeout)
    expect(head.locator(".mdqa-badges").first).to_contain_text("Finished")
    answer = page.get_by_test_id("answer").inner_text().strip()
    assert answer
    open_tab(page, "Documents")
    cards = page.locator("#mdqa-documents .mdqa-card")
    expect(cards).to_have_count(documents)
    for card in cards.all():
        assert card.locator(".mdqa-signal-row").count() >= 1
    open_tab(page, "Prompts")
    expect(page.locator("#mdqa-prompts .mdqa-call").first).to_be_visible()
    if method == "madara":
        open_tab(page, "Decisions")
        expect(page.get_by_test_id("routing")).to_contain_text("Treatment")
        assert page.locator(".mdqa-axis").count() >= 4
    if method == "duquad":
        open_tab(page, "Decisions")
        expect(page.get_by_test_id("agents")).to_contain_text("Judge")
    if method == "cafe":
        open_tab(page, "Heads")
        expect(page.locator("#mdqa-head-map [data-head]").first).to_be_attached(timeout=timeout)
        expect(page.locator("#mdqa-head-documents .heatmaplayer image").first).to_be_attached(timeout=timeout)
    open_tab(page, "Flow")
    assert page.locator("#mdqa-flow .mark.start").count() == documents
    return answer


def count_of_documents(page: Page) -> int:
    """How many documents the preview counts."""
    found = re.search(r"([\d,]+) documents?", page.locator("#mdqa-preview").inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))
