"""The annotation queue on the page: which queue a run is proposed for, one click, what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import pytest

from mdqa.errors import InputError
from storage.runs import UnknownRun
from tests.storage.builders import complete, header
from tests.ui.disagreeing import disagreeing, stored
from ui.components.queue_form import build_queue_form
from ui.context import Context
from ui.queueing import DISAGREEMENT, TO_LOOK_AT, places, proposed, queue_names, queued, send, take_out


@pytest.fixture
def contested(context: Context) -> str:
    """A run whose agents disagree."""
    return stored(context.store, disagreeing())


@pytest.fixture
def plain(context: Context) -> str:
    context.store.runs.begin(header("plain"))
    context.store.runs.finish(complete("plain"))
    return "plain"


@dataclass
class Press:
    """What the browser sends with a press of "Take out"."""

    queue: Any = None


def test_a_disagreement_has_a_queue_of_its_own(context: Context, contested: str, plain: str) -> None:
    one, two = context.store.runs.get(contested), context.store.runs.get(plain)
    assert (proposed(one), proposed(two)) == (DISAGREEMENT, TO_LOOK_AT)
    context.store.queues.make("Mine")
    assert queue_names(context, one) == [DISAGREEMENT, TO_LOOK_AT, "Mine"]
    send(context, plain, TO_LOOK_AT, "ann")
    assert queue_names(context, two) == [TO_LOOK_AT, DISAGREEMENT, "Mine"]


def test_sending_twice_is_said_and_changes_nothing(context: Context, plain: str) -> None:
    assert send(context, plain, "Mine", "ann", " why ") is True
    assert send(context, plain, "mine", "bob", "again") is False
    (item,) = places(context, plain)
    assert (item.queue, item.added_by, item.note) == ("Mine", "ann", "why")
    assert queued(context, [plain, "other"]) == {plain: ["Mine"]}
    assert take_out(context, plain, "nowhere", "bob") is False
    assert take_out(context, plain, "MINE", "bob") is True
    assert take_out(context, plain, "Mine", "bob") is False
    assert [entry.present for entry in context.store.queues.log()] == [True, False]


def test_what_cannot_be_kept_is_refused_in_words(context: Context, plain: str) -> None:
    with pytest.raises(InputError, match="Queue: the queue's name has 0 characters"):
        send(context, plain, " ", "ann")
    with pytest.raises(InputError, match="Note: it has 2,001 characters"):
        send(context, plain, "Mine", "ann", "n" * 2001)
    with pytest.raises(UnknownRun):
        send(context, "nobody", "Mine", "ann")
    assert context.store.queues.queues() == []


def handler(context: Context, event: str) -> Any:
    """The handler of the form that listens to this event, as Gradio calls it."""
    with gr.Blocks() as page:
        build_queue_form(context)
    return next(fn.fn for fn in page.fns.values() if any(name == event for _, name in fn.targets))


def test_one_click_sends_and_says_so(context: Context, contested: str) -> None:
    press, request = handler(context, "click"), gr.Request(username="ann")
    button, note, status = press(contested, DISAGREEMENT, "why", request)
    assert (button.variant, note) == ("secondary", "")
    assert "Sent to “Local and Global disagree”." in status and "“why”" in status and "sent by ann" in status
    _, note, status = press(contested, DISAGREEMENT, "more", request)
    assert "already; nothing was changed" in status and note == ""
    assert len(context.store.queues.log()) == 1
    out = handler(context, "select")
    button, note, status = out(contested, "kept", Press(DISAGREEMENT), request)
    assert button.variant == "primary" and "Taken out of" in status and "In “" not in status
    assert "It is not in" in out(contested, "", Press(DISAGREEMENT), request)[2]
    for queue in (None, ["x"], 3, ""):
        assert "mdqa-message bad" in out(contested, "", Press(queue), request)[2]


def test_what_is_not_sent_does_not_look_sent(context: Context, contested: str) -> None:
    press = handler(context, "click")
    _, note, status = press("nobody", "Mine", "typed", gr.Request())
    assert note == "typed" and "There is no run under this address" in status
    _, note, status = press(contested, "", "typed", gr.Request())
    assert note == "typed" and "Queue: the queue&#x27;s name has 0 characters" in status
    public = replace(context, settings=replace(context.settings, user="ann", password="secret"))
    _, _, status = handler(public, "click")(contested, "Mine", "", gr.Request())
    assert "sign in first" in status and context.store.queues.log() == []
    context.store.close()
    _, note, status = press(contested, "Mine", "typed", gr.Request())
    assert note == "typed" and "went wrong" in status and "Sent" not in status
    assert str(context.settings.database) not in status


def test_the_form_stands_out_where_agents_disagree(context: Context, contested: str, plain: str) -> None:
    with gr.Blocks():
        form = build_queue_form(context)
    one, two = context.store.runs.get(contested), context.store.runs.get(plain)
    box, run_id, button, queue, note, status = form.show(one)
    assert (box.visible, run_id, button.variant, queue.value, note, status) == (
        True, contested, "primary", DISAGREEMENT, "", "",
    )  # fmt: skip
    assert form.show(two)[2].variant == "secondary"
    send(context, contested, DISAGREEMENT, "ann")
    _, _, button, _, _, status = form.show(one)
    assert button.variant == "secondary" and "In “Local and Global disagree”" in status
    assert form.show(one.model_copy(update={"status": "running"}))[0].visible is False
