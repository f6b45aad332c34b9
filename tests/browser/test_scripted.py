"""The page in a real browser with the scripted backend: quick to answer, always the same."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.store import Store
from tests.browser import steps
from tests.browser.conftest import Server
from tests.ui.disagreeing import disagreeing, stored
from ui.queueing import DISAGREEMENT

pytestmark = pytest.mark.browser

PATIENCE = 120_000
EVIL = '<img src=x onerror="window.hacked = 1"><b>bold</b>'


def test_each_method_is_seen_kept_and_found_after_a_restart(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_example(page, "Two documents must be joined")
    documents = steps.count_of_documents(page)
    found = {}
    for method, title in steps.TITLES.items():
        steps.choose_methods(page, title)
        run_id = steps.run(page, PATIENCE)
        found[method] = (run_id, steps.assert_result(page, method, documents))
    page.goto("about:blank")  # a page whose server goes away logs errors of its own
    scripted_server.stop()
    scripted_server.start()
    steps.open_page(page, scripted_server.url)
    steps.open_tab(page, "Failures")
    rows = page.locator("#mdqa-failures tr[data-run]")
    expect(rows).to_have_count(3, timeout=20_000)
    for method, (run_id, _) in found.items():
        expect(page.locator(f'#mdqa-failures tr[data-run="{run_id}"]')).to_contain_text(steps.TITLES[method])
    for method, (run_id, answer) in found.items():
        steps.open_page(page, f"{scripted_server.url}/?run={run_id}")
        assert steps.assert_result(page, method, documents) == answer


def test_a_row_of_the_list_opens_its_own_run(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "Direct answering (No-Filter)")
    run_id = steps.run(page, PATIENCE)
    steps.open_tab(page, "Failures")
    page.locator(f'#mdqa-failures tr[data-run="{run_id}"] a').click()
    page.wait_for_url(f"**/?run={run_id}")
    expect(page.locator(f'#mdqa-result a[href="?run={run_id}"]').first).to_be_visible(timeout=30_000)


def test_several_methods_at_once_share_an_address(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "CAFE", "Direct answering (No-Filter)")
    page.locator("#mdqa-run").click()
    choice = page.locator("#mdqa-run-choice")
    expect(choice).to_be_visible(timeout=PATIENCE)
    choice.get_by_label("Direct answering").check()
    expect(page.locator(".mdqa-result .mdqa-badge.method")).to_have_text("Direct answering (No-Filter)")
    page.reload()
    expect(page.locator("#mdqa-run-choice")).to_be_visible(timeout=30_000)


def test_both_stages_of_cafe_are_seen(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "CAFE")
    steps.run(page, PATIENCE)
    heads = page.locator("#mdqa-flow text.head")
    for title in ("Coarse filtering", "Fine steering"):
        expect(heads.filter(has_text=title.split()[0]).first).to_be_visible()
    result = page.locator("#mdqa-result")
    steps.open_tab(page, "Heads")
    for stage, rings in (("Coarse filtering", 4), ("Fine steering", 2)):
        result.get_by_label("Attention map").click()
        page.get_by_role("option", name=stage).first.click()
        expect(page.locator("#mdqa-head-map button.ring")).to_have_count(rings, timeout=20_000)
    steps.open_tab(page, "Documents")
    expect(page.locator("#mdqa-documents .heat")).to_have_count(0)
    result.get_by_label("Highlight in the text").click()
    page.get_by_role("option", name="Fine steering").first.click()
    expect(page.locator("#mdqa-documents .heat").first).to_be_visible(timeout=20_000)


def test_the_first_sign_of_life_comes_within_a_second(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "Direct answering (No-Filter)")
    page.evaluate(
        """() => {
            const live = document.querySelector('#mdqa-live');
            document.querySelector('#mdqa-run').addEventListener('click', () => {
                const began = performance.now();
                new MutationObserver((_, o) => { window.firstSign = performance.now() - began; o.disconnect(); })
                    .observe(live, {childList: true, subtree: true, characterData: true});
            }, {once: true});
        }"""
    )
    steps.run(page, PATIENCE)
    assert page.evaluate("window.firstSign") < 1_000


def test_markup_stays_text(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    page.get_by_role("tab", name="Paste").click()
    page.locator("#mdqa-question textarea").fill(f"What is {EVIL}?")
    page.locator("#mdqa-paste textarea").fill(f"### {EVIL}\nFirst {EVIL} text.\n\n### Other\n{EVIL} second text.")
    steps.choose_methods(page, "CAFE", "DuQUAD")
    page.locator("#mdqa-run").click()
    expect(page.locator("#mdqa-run-choice")).to_be_visible(timeout=PATIENCE)
    for title in ("DuQUAD", "CAFE"):
        page.locator("#mdqa-run-choice").get_by_label(title).check()
        for name in ("Flow", "Documents", "Decisions", "Heads", "Prompts"):
            steps.open_tab(page, name)
            page.wait_for_timeout(400)
    steps.open_tab(page, "Failures")
    expect(page.locator("#mdqa-failures tr[data-run]").first).to_contain_text("<img")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("#mdqa-result b", has_text="bold").count() == 0


def test_a_verdict_is_given_by_keyboard_and_there_after_a_reload(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "Direct answering (No-Filter)")
    run_id = steps.run(page, PATIENCE)
    verdict, note, back = (page.locator(f"#mdqa-verdict{part}") for part in ("", "-note", "-back"))
    yes, no = verdict.get_by_label("Yes"), verdict.get_by_label("No")
    expect(verdict).to_contain_text("Is this answer right?")
    expect(back).to_have_count(0)
    with Store.open(scripted_server.database) as store:
        store.annotations.add(run_id, "correct", True, annotator=EVIL)
        yes.focus()
        page.keyboard.press("Space")
        expect(note).to_have_text("Kept · 1 other person: 1 yes, 0 no", timeout=10_000)
        assert [(x.value, x.annotator) for x in store.annotations.list(run_id)] == [(True, EVIL), (True, "local")]
        no.check()
        expect(note).to_have_text("Kept · 1 other person: 1 yes, 0 no")
        expect(back).to_be_visible()
        steps.open_page(page, f"{scripted_server.url}/?run={run_id}")
        expect(no).to_be_checked(timeout=20_000)
        back.focus()
        page.keyboard.press("Enter")
        expect(no).not_to_be_checked(timeout=10_000)
        expect(note).to_have_text("1 other person judged it")  # what they said is not shown before one's own verdict
        assert [label.value for label in store.annotations.list(run_id)] == [True, True, False, None]
        assert [label.annotator for label in store.annotations.latest(run_id)] == [EVIL]
    assert page.get_by_test_id("answer").bounding_box()["y"] < verdict.bounding_box()["y"]  # type: ignore[index]


def test_a_disagreement_is_seen_side_by_side_and_queued_by_one_click(page: Page, scripted_server: Server) -> None:
    with Store.open(scripted_server.database) as store:
        run_id = stored(store, disagreeing(compare_ablations=True))
        steps.open_page(page, f"{scripted_server.url}/?run={run_id}")
        steps.open_tab(page, "Decisions")
        expect(page.get_by_test_id("agreement")).to_contain_text("Local and Global disagree", timeout=20_000)
        local, everything = (page.locator(f"[data-voice={view}_agent]") for view in ("local", "global"))
        expect(local).to_contain_text("1912")
        expect(everything).to_contain_text("1921")
        one, two = local.bounding_box(), everything.bounding_box()
        assert one is not None and two is not None and one["y"] == two["y"] and one["x"] + one["width"] <= two["x"]
        expect(page.get_by_test_id("docscores").locator("li")).to_have_count(4)
        expect(page.get_by_test_id("ablations").locator("tbody tr")).to_have_count(4)

        local.get_by_role("button", name="Raw reply").click()
        reply = page.locator("#mdqa-reply")
        expect(reply).to_contain_text('"important_documents": [2, 1]', timeout=20_000)
        reply.get_by_role("button", name="Close").click()

        everything.get_by_role("link", name="4. Public works").focus()
        page.keyboard.press("Enter")
        card = page.locator("#mdqa-document-4")
        expect(card).to_be_in_viewport(timeout=10_000)
        expect(card.locator("mark")).to_have_count(2)
        expect(card.locator("summary").first).to_be_focused()

        send, status = page.locator("#mdqa-queue-send"), page.locator("#mdqa-queue-status")
        send.click()
        expect(status).to_contain_text(f"Sent to “{DISAGREEMENT}”.", timeout=10_000)
        send.click()
        expect(status).to_contain_text("already; nothing was changed", timeout=10_000)
        assert [item.run for item in store.queues.items(DISAGREEMENT)] == [run_id]
        status.get_by_role("button", name="Take out").click()
        expect(status).to_contain_text("Taken out", timeout=10_000)
        assert store.queues.items(DISAGREEMENT) == []
        send.click()
        expect(status).to_contain_text("Sent to", timeout=10_000)

        page.set_viewport_size({"width": 390, "height": 844})
        steps.open_tab(page, "Decisions")
        one, two = local.bounding_box(), everything.bounding_box()
        assert one is not None and two is not None and one["y"] + one["height"] <= two["y"]
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        steps.open_tab(page, "Failures")
        row = page.locator(f'#mdqa-failures tr[data-run="{run_id}"]')
        expect(row).to_contain_text(f"queued: {DISAGREEMENT}", timeout=10_000)


def test_files_are_loaded_and_bad_lines_named(page: Page, scripted_server: Server, tmp_path: Path) -> None:
    good = {"id": "a", "question": "Who sings?", "documents": [{"id": "d", "title": "T", "text": "Ann sings."}]}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(good) + "\n{broken\n" + json.dumps(good | {"id": "b", "question": "Who dances?"}) + "\n")
    steps.open_page(page, scripted_server.url)
    page.get_by_role("tab", name="File", exact=True).click()
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator("#mdqa-preview")).to_contain_text("line 2", timeout=20_000)
    expect(page.locator("#mdqa-question textarea")).to_have_value("Who sings?")
    page.get_by_label("Question of the file").click()
    page.get_by_role("option", name="Who dances?").click()
    expect(page.locator("#mdqa-question textarea")).to_have_value("Who dances?")
    steps.choose_methods(page, "Direct answering (No-Filter)")
    steps.run(page, PATIENCE)
    expect(page.locator(".mdqa-result .mdqa-question")).to_have_text("Who dances?")


def test_what_is_missing_is_said_and_nothing_runs(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    page.get_by_role("tab", name="Paste").click()
    page.locator("#mdqa-run").click()
    expect(page.locator("#mdqa-live .mdqa-message.bad")).to_contain_text(
        "Documents: there are none to read", timeout=10_000
    )
    expect(page.locator("#mdqa-run")).to_be_enabled()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("0123456789abcdef", id="unknown"),
        pytest.param("../../x", id="path"),
        pytest.param("<script>alert(1)</script>", id="markup"),
        pytest.param(",,", id="commas"),
        pytest.param("a" * 3000, id="long"),
    ],
)
def test_an_address_without_a_run_says_so(page: Page, scripted_server: Server, name: str) -> None:
    steps.open_page(page, f"{scripted_server.url}/?run={name}")
    expect(page.locator("#mdqa-live .mdqa-message.bad")).to_contain_text("There is no run", timeout=10_000)


def test_the_keyboard_alone_is_enough(page: Page, scripted_server: Server) -> None:
    steps.open_page(page, scripted_server.url)
    page.locator("#mdqa-question textarea").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "mdqa-run":
            break
    assert page.evaluate("document.activeElement.id") == "mdqa-run"
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("answer")).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(page: Page, scripted_server: Server, scheme: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    steps.open_page(page, scripted_server.url)
    steps.choose_methods(page, "CAFE")
    steps.run(page, PATIENCE)
    time.sleep(0.5)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
