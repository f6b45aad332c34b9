"""As somebody who has never seen the program: which document misled the model, and what if it had not been there?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from storage.store import Store
from tests.browser import steps
from tests.browser.conftest import Server
from ui.queueing import TO_LOOK_AT

pytestmark = pytest.mark.browser

PATIENCE = 60_000


def test_the_misleading_document_is_found_switched_off_and_the_case_sent_to_a_queue(
    page: Page, scripted_server: Server
) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_example(page, "An old source and a new one")
    steps.choose_methods(page, "Direct answering (No-Filter)")
    first = steps.run(page, PATIENCE)
    answer = page.get_by_test_id("answer").inner_text()
    expect(page.locator(".mdqa-result")).to_contain_text("Not correct")
    expect(page.get_by_test_id("diagnosis")).to_contain_text("stands in 1. Lindqvist Museum")

    # From here on the keyboard alone: the document whose text has the wrong answer is marked; it is switched off.
    what_if = page.locator("#mdqa-whatif")
    what_if.locator("summary", has_text="Documents: switch off").focus()
    page.keyboard.press("Enter")
    rows = what_if.locator("li[data-document]")
    misleading = rows.filter(has_text="says the answer given").filter(has_not_text="gold")
    expect(misleading).to_have_count(1)
    misleading.get_by_role("checkbox", name="Use: Lindqvist Museum").focus()
    page.keyboard.press("Space")
    summary = page.locator("#mdqa-whatif-summary")
    expect(summary).to_contain_text("Switched off document 1 “Lindqvist Museum", timeout=10_000)
    page.locator("#mdqa-again").focus()
    page.keyboard.press("Enter")
    change = page.get_by_test_id("change")
    expect(change).to_contain_text("Another answer", timeout=PATIENCE)
    expect(change).to_contain_text("Switched off document 1")
    expect(change).to_contain_text(answer)
    expect(page.get_by_test_id("answer")).not_to_have_text(answer)
    expect(page.locator("#mdqa-flow .mark.start")).to_have_count(4)

    page.locator("#mdqa-queue-send").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#mdqa-queue-status")).to_contain_text("Sent to", timeout=10_000)
    second = page.evaluate("new URLSearchParams(location.search).get('run')")
    assert page.evaluate("new URLSearchParams(location.search).get('before')") == first != second
    with Store.open(scripted_server.database) as store:
        assert [item.run for item in store.queues.items(TO_LOOK_AT)] == [second]

    # The address shows the same again; what was switched off can be put back, and the list stayed open.
    page.reload()
    expect(page.get_by_test_id("change")).to_contain_text("Another answer", timeout=PATIENCE)
    what_if.get_by_text("Documents: switch off").click()
    expect(rows).to_have_count(5)
    off = what_if.get_by_role("checkbox", name="Use: Lindqvist Museum")
    expect(off).not_to_be_checked()
    place = what_if.get_by_role("spinbutton", name="Position of: Canal brewery")
    expect(place).to_have_value("3")
    place.fill("1")
    place.press("Enter")
    expect(summary).to_contain_text("Moved document 3 “Canal brewery” to position 1", timeout=10_000)
    what_if.get_by_role("button", name="Edit").nth(1).click()
    box = rows.nth(1).get_by_label("Text")
    box.fill("  ")
    expect(summary.locator(".mdqa-message.bad")).to_contain_text("is empty", timeout=10_000)
    page.locator("#mdqa-again").click()
    expect(page.locator("#mdqa-whatif-problem")).to_contain_text("is empty", timeout=10_000)
    expect(box).to_have_value("  ")
    page.locator("#mdqa-whatif-reset").click()
    expect(summary).to_contain_text("Nothing is changed yet", timeout=10_000)
    off.check()
    expect(summary).to_contain_text("Put back “Lindqvist Museum", timeout=10_000)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_options_are_changed_under_the_answer(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "CAFE")
    first = steps.run(page, PATIENCE)
    documents = page.locator("#mdqa-flow .mark.start").count()
    delta, again = page.locator("#mdqa-whatif").get_by_label("Delta"), page.locator("#mdqa-again")
    expect(page.locator("#mdqa-whatif").get_by_label("M1")).to_have_value("4")
    delta.fill("-3")
    again.click()
    expect(page.locator("#mdqa-whatif-problem .mdqa-message.bad")).to_contain_text("'delta'", timeout=20_000)
    assert delta.input_value() == "-3" and f"run={first}" in page.url
    delta.fill("9")
    second = steps.run_again(page, PATIENCE)
    assert second != first
    change = page.get_by_test_id("change")
    expect(change).to_contain_text("Delta 2.56495 → 9")
    expect(change).to_contain_text("reused")
    expect(delta).to_have_value("9")
    assert steps.assert_result(page, "cafe", documents, PATIENCE)
    steps.open_page(page, f"{scripted_server.url}/?run={second}")  # the new run's own address, from where it goes on
    expect(delta).to_have_value("9", timeout=20_000)
    page.locator("#mdqa-whatif").get_by_label("M1").fill("2")
    page.locator("#mdqa-whatif").get_by_label("M1").press("Enter")
    expect(page.get_by_test_id("change")).to_contain_text("M1 4 → 2", timeout=PATIENCE)
    expect(page.locator("#mdqa-flow .mark.start")).to_have_count(documents)
