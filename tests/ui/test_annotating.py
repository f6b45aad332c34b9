"""Annotation: judging is blind in everything the server sends, and what is said reaches the log as it was meant."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from mdqa.candidates import candidates_of, label_of
from mdqa.errors import InputError
from mdqa.records import Document, Opinion, Question, RunResult
from storage.queue_settings import PracticeItem
from tests.ui.helpers import open_scripted
from tests.ui.serving import call, defaults, served, sign_in, with_users
from ui.annotating import Sheet, Stale, flag, save, sheet, skip, undo
from ui.components.annotation_form import answer
from ui.context import Context
from ui.page import Page
from ui.views.annotation import sheet_view, shell

QUEUE = "Local and Global disagree"
SECRETS = (
    *("RUN-marker", "LOCAL-TITLE", "GLOBAL-TITLE", "JUDGE-TITLE", "local_agent", "global_agent", "LOCAL-REASON"),
    *("GLOBAL-REASON", "JUDGE-REASON", "EXPECTED-ANSWER", "META-marker", "DOC-ID", "CONFIG-marker", "NOTICE-marker"),
    *("NOTE-of-bob", "REASON-of-bob", "SENDER-NOTE", "duquad-model"),
)


def run(name: str = "RUN-marker-1", *, gold: bool | None = True, pair: tuple[str, str] = ("1912", "1921")) -> RunResult:
    """DuQUAD's agents disagree; everything that must not be seen carries a mark."""
    documents = tuple(
        Document(id=f"DOC-ID-{n}", title=f"Title {n}", text=f"Text {n} of {name[-1]}.", gold=gold if n == 2 else None)
        for n in (1, 2, 3)
    )
    asked = Question(
        id=f"META-marker-{name}",
        question=f"When was bridge {name[-1]} opened?",
        answers=("EXPECTED-ANSWER",),
        documents=documents,
        meta={"source": "META-marker"},
    )
    opinions = (
        Opinion(role="local_agent", title="LOCAL-TITLE", answer=pair[0], reasoning="LOCAL-REASON", group="local"),
        Opinion(role="global_agent", title="GLOBAL-TITLE", answer=pair[1], reasoning="GLOBAL-REASON", group="global"),
        Opinion(role="judge", title="JUDGE-TITLE", answer=pair[1], reasoning="JUDGE-REASON", chosen=True),
    )
    return RunResult(
        id=name,
        question=asked,
        method="duquad",
        model="duquad-model",
        backend="scripted",
        status="ok",
        created="2026-11-30T10:00:00.000+00:00",
        seed=1,
        answer=pair[1],
        opinions=opinions,
        notices=("NOTICE-marker",),
        config={"tau": "CONFIG-marker"},
    )


def keep(context: Context, *runs: RunResult, queue: str = QUEUE) -> None:
    """Store the runs and send them to the queue."""
    for one in runs:
        context.store.runs.begin(one.model_copy(update={"status": "running", "answer": ""}))
        context.store.runs.finish(one, correct=False)
        context.store.queues.send(one.id, queue, "lin", "SENDER-NOTE")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Page, str]]:
    folder = tmp_path_factory.mktemp("annotating")
    with closing(open_scripted(folder)) as opened:
        keep(opened, *(run(f"RUN-marker-{n}") for n in range(1, 5)))
        with served(with_users(opened, folder)) as (page, url):
            yield opened, page, url


class Annotator:
    """Somebody at the form; ``seen`` is all that the server ever sent them."""

    def __init__(self, client: httpx.Client) -> None:
        self.client, self.seen = client, list[str]()
        self.session = uuid.uuid4().hex

    def order(self, do: str, **values: object) -> dict[str, Any]:
        body = {"data": [{"do": do, "queue": QUEUE, **values}], "session_hash": self.session}
        sent = self.client.post("/gradio_api/run/annotate", json=body)
        self.seen.append(sent.text)
        found: dict[str, Any] = sent.raise_for_status().json()["data"][0]
        return found


def by_itself(page: Page) -> list[int]:
    """What the page calls when it is opened or a tab is chosen, and what stands on the tab (others: test_page.py)."""
    return [
        number
        for number, listener in page.fns.items()
        if any(event in ("load", "select") for _, event in listener.targets)
        or "queue_manager" in getattr(listener.fn, "__module__", "")
    ]


def test_nothing_but_the_item_is_ever_sent(server: tuple[Context, Page, str]) -> None:
    context, page, url = server
    everything = "".join(one.model_dump_json() for one in map(context.store.runs.get, context.store.runs.ids()))
    assert all(secret in everything for secret in SECRETS if "bob" not in secret and "SENDER" not in secret)
    with sign_in(url, "bob") as client:
        bob = Annotator(client)
        token = bob.order("open")["token"]
        token = bob.order("save", token=token, mark="A", note="NOTE-of-bob", evidence=[2])["token"]
        bob.order("skip", token=token, reason="REASON-of-bob")
    with sign_in(url, "ann") as client:
        ann = Annotator(client)
        ann.seen += [client.get(path).text for path in ("/config", "/?run=RUN-marker-1", "/gradio_api/info")]
        for number in by_itself(page):
            ann.seen.append(call(client, number, defaults(page, number), session_hash=ann.session).text)
        ann.order("queues")
        found = ann.order("open")
        html = found["html"]
        assert "When was bridge 1 opened?" in html and "1912" in html and "1921" in html and "Text 2 of 1." in html
        ann.order("flag", token=found["token"], reason="x", key="f")
        for mark in ("B", "neither"):
            found = ann.order("save", token=found["token"], mark=mark, evidence=[1, 3])
        ann.order("undo", key="u1")
        ann.order("save", token="guessed", mark="A")
        ann.order("alive", token=found["token"])
        told = "\n".join(ann.seen)
    leaked = [secret for secret in SECRETS if secret in told]
    assert not leaked, leaked
    assert "bob" not in re.sub(r"https?://\S+", "", told)


def test_an_annotator_cannot_manage_queues(server: tuple[Context, Page, str]) -> None:
    context, page, url = server
    with sign_in(url, "ann") as ann:
        for number, listener in page.fns.items():
            if "queue_manager" in getattr(listener.fn, "__module__", ""):
                data = ["agents", "Mine", 5, 2, "contested", "Rules"][: len(listener.inputs)]
                call(ann, number, data, session_hash="of ann")
    assert [queue.name for queue in context.store.queues.queues()] == [QUEUE]
    assert context.store.queue_settings.versions(QUEUE) == []


def test_the_name_comes_from_the_sign_in(server: tuple[Context, Page, str]) -> None:
    context, _, url = server
    with sign_in(url, "lin") as client:
        lin = Annotator(client)
        token = lin.order("open", who="bob", annotator="bob")["token"]
        assert lin.order("save", token=token, mark="both", who="bob", annotator="bob")["done"] == "save"
    assert [entry.annotator for entry in context.store.labels.log() if entry.token == token] == ["lin"]
    with httpx.Client(base_url=url) as nobody:
        refused = nobody.post("/gradio_api/run/annotate", json={"data": [{"do": "open", "queue": QUEUE}]})
    assert refused.status_code == 401


def test_marks_of_evidence_and_the_judge_change_nothing_on_the_page(context: Context) -> None:
    keep(context, run(), queue="plain")
    other = run("RUN-other-1", gold=False)
    judge = other.opinions[2].model_copy(update={"answer": "1912", "reasoning": "the other way round"})
    keep(context, other.model_copy(update={"answer": "1912", "opinions": (*other.opinions[:2], judge)}), queue="other")
    seen = set()
    for queue in ("plain", "other"):
        for number in range(12):  # both orders come up (but once in 2,000 times)
            item = sheet(context, queue, f"p{number}")
            context.store.queue_settings.change(queue, "lin", overlap=13)
            assert item.item is not None
            seen.add(sheet_view(item).replace(item.item.token, "T").replace(queue, "Q"))
    stripped = {re.sub(r"<header.*?</header>", "", html) for html in seen}
    assert len(stripped) == 2  # the two orders, and nothing else


def other_mark(found: Sheet, wanted: str) -> str:
    """The mark behind which an answer stands."""
    assert found.item is not None
    return "AB"[found.item.answers.index(wanted)]


def test_marks_become_labels_of_the_candidates(context: Context) -> None:
    keep(context, *(run(f"RUN-marker-{n}") for n in range(1, 31)))
    swapped = set()
    while (found := sheet(context, QUEUE, "ann")).item is not None:
        save(context, "ann", found.item.token, other_mark(found, "1921"), evidence=[3, 1], note="see 3", seconds=0.01)
        entry = context.store.labels.log()[-1]
        assert (entry.label, entry.evidence, entry.note) == ("second", ("DOC-ID-1", "DOC-ID-3"), "see 3")
        swapped.add(entry.swapped)
    assert swapped == {True, False}  # both came up (but once in half a billion times)
    assert found.own.labelled == 30


def test_an_item_with_one_answer(context: Context) -> None:
    keep(context, run(pair=("1912", "The 1912.")))
    for number in range(6):
        context.store.queue_settings.change(QUEUE, "lin", overlap=number + 1)
        found = sheet(context, QUEUE, f"p{number}")
        assert found.item is not None
        assert (found.item.answers, found.item.marks) == (("The 1912.",), ("A", "neither", "cannot_tell"))
        save(context, f"p{number}", found.item.token, "A")
    assert 'data-key-of="B"' in shell() and 'data-mark="B"' not in sheet_view(found)  # by which the script lists keys
    assert {entry.label for entry in context.store.labels.counting(QUEUE)} == {"first"}


def test_practice_items_are_explained_afterwards(context: Context) -> None:
    keep(context, run(), run("RUN-marker-2"))
    practice = [PracticeItem("RUN-marker-1", "second", "PRACTICE: document 2 is newer.")]
    context.store.queue_settings.change(QUEUE, "lin", practice_items=practice, guidelines="# Rules\n- **Read** <all>")
    found = sheet(context, QUEUE, "ann")
    assert found.item is not None and found.item.practice
    html = sheet_view(found)
    assert "PRACTICE" not in html and "<h3>Rules</h3><ul><li><strong>Read</strong> &lt;all&gt;</li></ul>" in html
    wrong = other_mark(found, "1912")
    feedback = save(context, "ann", found.item.token, wrong)
    assert feedback is not None and not feedback.right
    assert (feedback.given, feedback.expected) == (wrong, other_mark(found, "1921"))
    after = sheet(context, QUEUE, "ann", feedback)
    assert "PRACTICE: document 2 is newer." in sheet_view(after)
    assert after.item is not None and not after.item.practice
    assert save(context, "ann", after.item.token, "both") is None


def test_undo_brings_back_what_was_said(context: Context) -> None:
    keep(context, run())
    first = sheet(context, QUEUE, "ann").item
    assert first is not None
    save(context, "ann", first.token, "B", evidence=[2], note="hm")
    assert undo(context, "ann", QUEUE, "u1")
    again = sheet(context, QUEUE, "ann").item
    assert again is not None and again.token != first.token and again.answers == first.answers
    assert (again.draft.mark, again.draft.evidence, again.draft.note) == ("B", (2,), "hm")
    skip(context, "ann", again.token, "cannot read it")
    assert undo(context, "ann", QUEUE, "u2")
    assert not undo(context, "bob", QUEUE, "u3")


def test_what_is_refused_says_why(context: Context) -> None:
    keep(context, run())
    item = sheet(context, QUEUE, "ann").item
    assert item is not None
    for mark, evidence, words in (("A", [4], "no document 4"), ("C", [], "no label 'C'")):
        with pytest.raises(InputError, match=words):
            save(context, "ann", item.token, mark, evidence=evidence)
    with pytest.raises(InputError, match="why you skip"):
        skip(context, "ann", item.token, " ")
    with pytest.raises(Stale):
        flag(context, "bob", item.token, "x", "f")
    with pytest.raises(InputError, match="no such queue"):
        sheet(context, "nothing", "ann")
    assert context.store.labels.log() == []


def test_words_of_the_canonical_order_are_no_marks(context: Context) -> None:
    """Saved and taken back, "first" would come back as the letter of the local agent."""
    keep(context, run())
    token = answer(context, {"do": "open", "queue": QUEUE}, None)["token"]
    for mark in ("first", "second"):
        refused = answer(context, {"do": "save", "queue": QUEUE, "token": token, "mark": mark}, None)
        assert refused["refused"] and "there is: A, B, both" in refused["said"]
    assert context.store.labels.log() == []


def test_a_form_that_was_saved_in_another_tab_goes_on_with_the_next_item(context: Context) -> None:
    keep(context, run(), run("RUN-marker-2"))
    order = {"do": "save", "queue": QUEUE, "token": answer(context, {"do": "open", "queue": QUEUE}, None)["token"]}
    following = answer(context, order | {"mark": "A"}, None)["token"]
    for other in ({"mark": "B"}, {"mark": "A", "note": "late"}, {"do": "skip", "reason": "late"}):
        late = answer(context, order | other, None)
        assert late["refused"] and late["stale"] and late["token"] == following and "saved already" in late["said"]
    assert len(context.store.labels.log()) == 1


def test_a_queue_without_a_name_is_none(context: Context) -> None:
    for name in ("", "x" * 200):
        found = answer(context, {"do": "open", "queue": name}, None)
        assert found["refused"] and "no such queue" in found["said"]


def test_an_item_that_cannot_be_read_holds_nobody_up(context: Context) -> None:
    keep(context, run(), run("RUN-marker-2"))
    with context.store.write() as db:
        db.execute("update runs set record = '{\"from\": \"the future\"}' where id = 'RUN-marker-1'")
    found = sheet(context, QUEUE, "ann").item
    assert found is not None and "bridge 2" in found.question
    assert [entry.action for entry in context.store.labels.log()] == ["skip"]


def test_orders(context: Context) -> None:
    keep(context, run())
    token = answer(context, {"do": "open", "queue": QUEUE}, None)["token"]
    order = {"do": "save", "queue": QUEUE, "token": token, "mark": "A", "evidence": [2], "seconds": "x", "idle": None}
    wrong = answer(context, {**order, "evidence": ["2"]}, None)
    assert wrong["refused"] and "evidence" in wrong["said"]
    assert answer(context, order, None)["done"] == "save"
    assert answer(context, order, None)["done"] == "save"  # sent again
    assert len(context.store.labels.log()) == 1
    stale = answer(context, {**order, "token": "guessed"}, None)
    assert stale["stale"] and stale["refused"] and "Nothing is left" in stale["html"]
    assert answer(context, {"do": "fly"}, None)["refused"]
    assert answer(context, None, None)["refused"]  # type: ignore[arg-type]
    context.store.close()
    lost = answer(context, {**order, "token": "other"}, None)
    assert lost["fault"] and "refused" not in lost and str(context.store.path) not in lost["said"]


def test_candidates() -> None:
    both = candidates_of(run())
    assert [(one.key, one.answer) for one in both] == [("local_agent", "1912"), ("global_agent", "1921")]
    assert [label_of(words, both) for words in ("the 1912.", "1921", "1930", "")] == [
        *("first", "second", "neither", "neither")
    ]
    assert [one.key for one in candidates_of(run(pair=("", "1921")))] == ["local_agent", "global_agent"]
    assert [one.key for one in candidates_of(run(pair=("1921", "1921")))] == ["answer"]
    assert candidates_of(run(pair=("", ""))) == ()
    told = [("no_filter", "Oslo", False), ("prune", "Bergen", True), ("vote", "Bergen.", False)]
    opinions = tuple(
        Opinion(role="treatment", title=key, answer=words, group=key, chosen=chosen) for key, words, chosen in told
    )
    found = candidates_of(run().model_copy(update={"opinions": opinions}))
    assert [(one.key, one.answer) for one in found] == [("prune", "Bergen"), ("no_filter", "Oslo")]
