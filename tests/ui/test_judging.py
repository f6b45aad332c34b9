"""Verdicts on the page: who gives them, what they see of others, and that only what is kept looks kept."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace

import gradio as gr
import pytest
from fastapi.testclient import TestClient
from gradio.routes import App

from mdqa.errors import InputError
from mdqa.registry import method_class
from storage.runs import UnknownRun
from tests.storage.builders import complete, header
from tests.ui.helpers import SCRIPTED, question
from ui.actions import follow, start_runs
from ui.components.verdict import build_verdict
from ui.context import Context
from ui.judging import Judgement, judge, judgement
from ui.people import LOCAL


@pytest.fixture
def run_id(context: Context) -> str:
    (found,) = start_runs(context, question(), {"direct": method_class("direct").Config()}, model=SCRIPTED)
    assert list(follow(context, [found], every=0.02))[-1][0].status == "ok"
    return found


def test_a_verdict_is_kept_changed_and_taken_back(context: Context, run_id: str) -> None:
    for right in (True, False, None):
        judge(context, run_id, right, "ann", f"form {right}")
        assert judgement(context, run_id, "ann").own is right
    assert [label.value for label in context.store.annotations.list(run_id)] == [True, False, None]
    judge(context, run_id, None, "ann", "another form")  # there is nothing to take back
    judge(context, run_id, True, "ann", "a third form")
    judge(context, run_id, True, "ann", "a fourth form")  # it is said already
    assert [label.value for label in context.store.annotations.list(run_id)] == [True, False, None, True]


def test_what_others_say_is_seen_after_ones_own_verdict(context: Context, run_id: str) -> None:
    assert judgement(context, run_id, "ann") == Judgement()
    judge(context, run_id, True, "bob", "1")
    judge(context, run_id, False, "eve", "2")
    assert judgement(context, run_id, "ann") == Judgement(None, 2, None)
    judge(context, run_id, False, "ann", "3")
    assert judgement(context, run_id, "ann") == Judgement(False, 2, 1)
    judge(context, run_id, None, "ann", "4")
    assert judgement(context, run_id, "ann") == Judgement(None, 2, None)


def test_many_clicks_at_once_are_one_verdict(context: Context, run_id: str) -> None:
    start = threading.Barrier(6)

    def click(number: int) -> None:
        start.wait(10)
        judge(context, run_id, True, "ann", f"form {number}")

    threads = [threading.Thread(target=click, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [label.value for label in context.store.annotations.list(run_id)] == [True]


def test_only_a_finished_run_is_judged(context: Context) -> None:
    with pytest.raises(UnknownRun):
        judge(context, "nobody", True, "ann", "1")
    context.store.runs.begin(header("working"))
    context.store.runs.begin(header("broken"))
    context.store.runs.finish(complete("broken", status="failed"))
    for name in ("working", "broken"):
        with pytest.raises(InputError, match="not come to an answer"):
            judge(context, name, True, "ann", name)
    assert context.store.annotations.list() == []


def test_the_form_is_there_for_answers_only(context: Context, run_id: str) -> None:
    with gr.Blocks():
        verdict = build_verdict(context)
    run = context.store.runs.get(run_id)
    judge(context, run_id, True, "bob", "1")
    box, shown, choice, back, note, token = verdict.show(run, gr.Request(username="ann"))
    assert (box.visible, shown, choice.value, back.visible) == (True, run_id, None, False)
    assert "1 other person judged it" in note and "yes" not in note and token
    assert verdict.show(run, gr.Request(username="ann"))[-1] != token
    box, _, choice, back, note, _ = verdict.show(run, gr.Request(username="bob"))
    assert (box.visible, choice.value, back.visible) == (True, "yes", True)
    assert "Kept" in note
    for status in ("running", "failed", "cancelled", "interrupted"):
        box, *_ = verdict.show(run.model_copy(update={"status": status}), None)
        assert box.visible is False


def handler(context: Context, name: str) -> object:
    """A handler of the verdict as Gradio calls it."""
    with gr.Blocks() as page:
        build_verdict(context)
    ids = {block._id for block in page.blocks.values() if getattr(block, "elem_id", "") == name}
    (found,) = [fn.fn for fn in page.fns.values() if {target for target, _ in fn.targets} & ids]
    return found


def test_what_is_not_kept_does_not_look_kept(context: Context, run_id: str) -> None:
    say = handler(context, "mdqa-verdict-choice")
    choice, back, note, token = say(run_id, "no", "form", gr.Request(username="ann"))  # type: ignore[operator]
    assert (choice.value, back.visible) == ("no", True) and token != "form"
    assert context.store.annotations.latest(run_id)[0].annotator == "ann"
    choice, back, note, _ = say("nobody", "yes", token, gr.Request(username="ann"))  # type: ignore[operator]
    assert (choice.value, back.visible) == (None, False) and "There is no run" in note
    choice, back, note, _ = say(run_id, "yes", "form", gr.Request(username="ann"))  # type: ignore[operator]
    assert choice.value == "no" and "went wrong" in note  # an old form sent once more, with something else in it
    public = replace(context, settings=replace(context.settings, user="ann", password="secret"))
    choice, back, note, _ = handler(public, "mdqa-verdict-choice")(run_id, "yes", "", gr.Request())  # type: ignore[operator]
    assert choice.value is None and "sign in first" in note
    assert len(context.store.annotations.list()) == 1
    context.store.close()
    choice, back, note, _ = say(run_id, "yes", "new", gr.Request(username="ann"))  # type: ignore[operator]
    assert (choice.value, back.visible) == (None, False) and "went wrong" in note
    assert str(context.settings.database) not in note


def test_what_a_browser_sends_is_checked_and_needs_no_memory_of_the_server(context: Context, run_id: str) -> None:
    """As after a restart of the server, which knows nothing of the page that is still open; and what strangers send."""
    with gr.Blocks() as page:
        build_verdict(context)
    app = App.create_app(page, auth_dependency=lambda request: request.headers.get("x-user"))
    (choice,) = [block._id for block in page.blocks.values() if getattr(block, "elem_id", "") == "mdqa-verdict-choice"]
    (number,) = [key for key, fn in page.fns.items() if (choice, "input") in fn.targets]

    def send(*data: object) -> int:
        body = {"fn_index": number, "data": data, "session_hash": uuid.uuid4().hex, "username": "eve"}
        answer = client.post("/gradio_api/run/predict", json=body, headers={"x-user": "ann"})
        return answer.status_code

    with TestClient(app, raise_server_exceptions=False) as client:
        assert send(run_id, "yes", None) == 200
        assert send("' or 1=1 --", "yes", None) == 200  # answered with the reason
        for value in ("maybe", ["yes"], {"yes": 1}, 1):
            assert send(run_id, value, None) != 200
    kept = context.store.annotations.list()
    assert [(label.run, label.value, label.annotator) for label in kept] == [(run_id, True, "ann")]


def test_the_button_takes_the_verdict_back(context: Context, run_id: str) -> None:
    judge(context, run_id, True, LOCAL, "1")
    back = handler(context, "mdqa-verdict-back")
    choice, button, note, _ = back(run_id, "2", gr.Request())  # type: ignore[operator]
    assert (choice.value, button.visible) == (None, False) and "Kept" not in note
    assert [label.value for label in context.store.annotations.list(run_id)] == [True, None]
