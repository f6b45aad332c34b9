"""The loop of annotation on real disagreements: a queue, two people, agreement by hand, decisions, export, import."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mdqa.__main__ import main
from mdqa.backends.base import InspectableBackend
from mdqa.benchmarks.base import read_questions
from mdqa.benchmarks.placing import place
from mdqa.candidates import candidates_of
from mdqa.diagnosis.facets import disagreements_in
from mdqa.methods.base import Tools
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.records import RunResult
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.run import begin, run_one
from mdqa.users import Role, User, hashed, write_users
from storage.label_files import snapshot
from storage.store import Store
from tests.browser.conftest import Server, watched
from tests.browser.steps import open_tab

pytestmark = [pytest.mark.slow, pytest.mark.browser]

QUEUE = "Real disagreements"
PASSWORD = "correct horse"
PEOPLE: Mapping[str, Role] = {"ann": "annotator", "bob": "annotator", "ada": "admin"}
SEEN = "localStorage.setItem('mdqa-tour', 'seen')"
MOST = 12
"""Questions that are asked at most until there are disagreements enough."""

SAID: Mapping[str, tuple[str, ...]] = {
    "ann": ("first", "first", "second", "first"),
    "bob": ("first", "second", "second", "neither"),
}
"""What each person says of the four items, oldest run first: they agree on the first and the third."""

SAME = "50.0%"
"""2 of 4."""

COHEN = "0.27"
"""By chance 5/16: ann says first, second 3 and 1 times, bob 1 and 2: 3/16 + 2/16. (8/16 - 5/16) / (11/16) = 3/11."""

KRIPPENDORFF = "0.26"
"""Two items differ, 2 each; of the 8 labels 4, 3, 1: (64 - 16 - 9 - 1)/7 are expected. 1 - 4 * 7/38 = 10/38."""


def ask(store: Store, backend: InspectableBackend, data: Path) -> list[RunResult]:
    """Run DuQUAD on questions of Natural Questions until four runs are disagreements; those, the oldest first."""
    tools = Tools(backend, make_encoder=MiniLMEncoder)
    config = DuQUADConfig(
        k=1, weight_ppl=0, weight_cont=0, agent_max_tokens=40, score_max_tokens=16, judge_max_tokens=40
    )
    found: list[RunResult] = []
    for item in itertools.islice(read_questions(data / "nq20.jsonl.gz"), MOST):
        header = begin("duquad", config, place(item, position=3, documents=3), tools)
        store.runs.begin(header)
        run = run_one(header, tools, sink=lambda event, name=header.id: store.runs.record(name, event)).result
        store.runs.finish(run)
        assert run.status == "ok", run.error
        if "agents" in disagreements_in(run):
            found.append(run)
        if len(found) == len(SAID["ann"]):
            return found
    pytest.fail(f"the agents disagree on {len(found)} of {MOST} questions only")


@pytest.fixture
def server(browser: Browser, tmp_path: Path) -> Iterator[Server]:
    """A page that asks for a name, not started yet; which model it has is of no importance, since it starts no run."""
    users = tmp_path / "users.json"
    write_users(users, [User(name, role, hashed(PASSWORD)) for name, role in PEOPLE.items()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MDQA_USERS", str(users))
        made = Server(tmp_path, "scripted")
        try:
            yield made
        finally:
            made.stop()


@contextmanager
def signed_in(browser: Browser, server: Server, name: str, tab: str) -> Iterator[Page]:
    """A browser of this person's own, at a tab."""
    for page in watched(browser, SEEN):
        page.goto(f"{server.url}/?tab={tab}")
        page.get_by_label("username").fill(name)
        page.get_by_label("password").fill(PASSWORD)
        page.get_by_role("button", name="Login").click()
        expect(page.locator(".mdqa-who")).to_contain_text(name, timeout=60_000)
        page.wait_for_timeout(700)  # the page's own first events leave no trace to wait for
        yield page


def plain(words: str) -> str:
    return " ".join(words.split())


def make_queue(page: Page) -> None:
    open_tab(page, "Annotate")
    page.get_by_role("button", name="Make a queue from stored runs").click()
    name = page.locator("#mdqa-make-name textarea")
    for _ in range(5):  # Gradio may give a field its first value back that is filled in the moment it appears
        page.wait_for_timeout(1_000)
        if name.input_value() == QUEUE:
            break
        name.fill(QUEUE)
        name.blur()
    page.locator("#mdqa-make").click()
    expect(page.locator("#mdqa-make-said")).to_contain_text(f"4 runs added to “{QUEUE}”", timeout=20_000)


def open_queue(page: Page) -> None:
    page.locator(".mdqa-queue-card", has_text=QUEUE).click(timeout=20_000)
    expect(page.locator("[data-sheet]")).to_contain_text("You: 0 labelled")


def decide(page: Page, who: str, runs: list[RunResult]) -> None:
    """Label the item in front by its key, as :data:`SAID` has it; the gold document is marked as evidence."""
    asked = page.locator("[data-asked]").inner_text()
    (place_, run) = next((n, run) for n, run in enumerate(runs) if plain(run.question.question) == plain(asked))
    said = SAID[who][place_]
    shown = [plain(words) for words in page.locator(".mdqa-option p").all_inner_texts()]
    answers = [plain(candidate.answer) or "(no answer)" for candidate in candidates_of(run)]
    assert sorted(shown) == sorted(answers)
    key = "n" if said == "neither" else "ab"[shown.index(answers[("first", "second").index(said)])]
    before = page.locator("[data-sheet]").get_attribute("data-token")
    page.keyboard.press("3")
    page.keyboard.press(key)
    expect(page.locator("[data-status]")).to_have_text("Saved.")
    expect(page.locator("[data-sheet]")).not_to_have_attribute("data-token", before or "")


def adjudicate(page: Page, run: RunResult, label: str, note: str) -> None:
    """Open a contested item, read what both said, and decide it."""
    entry = page.locator("#mdqa-contested li", has_text=plain(run.question.question)[:60])
    entry.get_by_role("button").click()
    item = page.get_by_test_id("contested-item")
    expect(item.get_by_role("link", name="Open the run")).to_have_attribute("href", f"?run={run.id}", timeout=20_000)
    for name in ("ann", "bob"):
        expect(item.locator(".said .who", has_text=name)).to_have_count(1)
    titles = {"first": "Local Agent", "second": "Global Agent", "neither": "Neither"}
    page.locator("#mdqa-decision").get_by_label(titles[label], exact=True).check()
    page.locator("#mdqa-decision-note textarea").fill(note)
    page.locator("#mdqa-decide").click()
    expect(item).to_contain_text("Decided by ada", timeout=20_000)
    expect(item).to_contain_text(f": {titles[label]}.")
    expect(entry).to_contain_text("decided")


def test_the_loop_of_annotation(
    browser: Browser, server: Server, builtin_backend: InspectableBackend, shared_data: Path, tmp_path: Path
) -> None:
    with Store.open(server.database) as store:
        runs = ask(store, builtin_backend, shared_data)
    server.start()

    with signed_in(browser, server, "ada", "annotate") as admin:
        make_queue(admin)

        with signed_in(browser, server, "ann", "annotate") as ann, signed_in(browser, server, "bob", "annotate") as bob:
            open_queue(ann)
            open_queue(bob)
            for _ in runs:
                decide(ann, "ann", runs)
                decide(bob, "bob", runs)
            for page in (ann, bob):
                expect(page.locator("[data-sheet]")).to_contain_text("You: 4 labelled, 0 skipped, 0 left")
            expect(bob.locator("[data-sheet]")).to_contain_text("All: 8 of 8 labels, 4 of 4 items complete, 2 people")

        open_tab(admin, "Agreement")
        expect(admin.locator("#mdqa-agreement-queue input")).to_have_value(QUEUE, timeout=20_000)
        admin.locator("#mdqa-agreement-compute").click()
        row = admin.locator("#mdqa-agreement-table tr", has_text="ann · bob")
        expect(row).to_be_visible(timeout=30_000)
        cells = [words.split("[")[0].strip() for words in row.locator("td").all_inner_texts()]
        assert cells[:4] == ["ann · bob", "4", SAME, COHEN]
        assert cells[5] == KRIPPENDORFF

        adjudicate(admin, runs[1], "second", "The third document says so.")
        adjudicate(admin, runs[3], "neither", "")
        expect(admin.locator("#mdqa-agreement-head")).to_contain_text("Still to decide")
        expect(admin.locator("#mdqa-contested")).not_to_contain_text("to decide")
        admin.locator("#mdqa-use-judge").click()
        expect(admin.locator("#mdqa-use-table")).to_contain_text("Disagreement", timeout=20_000)

        admin.locator("#mdqa-labels-make").click()
        button = admin.locator("#mdqa-labels-file")
        expect(button).to_be_visible(timeout=20_000)
        with admin.expect_download() as saved:
            button.click()
        saved.value.save_as(tmp_path / "labels.jsonl")

    assert main(["import-labels", "--input", str(tmp_path / "labels.jsonl"), "--db", str(tmp_path / "new.db")]) == 0
    with Store.open(server.database) as one, Store.open(tmp_path / "new.db") as other:
        assert snapshot(other) == snapshot(one)
        items = {item.id: item.run for item in other.queues.items(QUEUE)}
        counted = {(rating.annotator, rating.run): rating for rating in other.labels.counting(QUEUE)}
        decided = {items[item]: rating for item, rating in other.labels.adjudicated(QUEUE).items()}
    assert {key: rating.label for key, rating in counted.items()} == {
        (who, run.id): label for who, labels in SAID.items() for run, label in zip(runs, labels, strict=True)
    }
    assert {rating.evidence for rating in counted.values()} == {("g1",)}
    assert {run: (rating.label, rating.annotator, rating.note) for run, rating in decided.items()} == {
        runs[1].id: ("second", "ada", "The third document says so."),
        runs[3].id: ("neither", "ada", ""),
    }
