"""Making queues from runs, and steering them."""

from __future__ import annotations

import pytest

from mdqa.candidates import candidates_of
from mdqa.errors import InputError
from storage.runs import RunFilter
from tests.storage.builders import complete, header
from tests.ui.disagreeing import disagreeing, stored
from tests.ui.test_annotating import QUEUE, run
from ui.annotating import save, sheet
from ui.context import Context
from ui.faceting import refresh
from ui.queue_making import (
    PRESETS,
    change_settings,
    drop_practice,
    label_choices,
    make_queue,
    practice_choices,
    queue_states,
    set_practice,
)
from ui.views.guidelines import guidelines
from ui.views.queue_table import practice_table, queue_table


def test_a_queue_of_real_disagreements(context: Context) -> None:
    found = [stored(context.store, disagreeing()) for _ in range(2)]
    context.store.runs.begin(header("agreeing"))
    context.store.runs.finish(complete("agreeing"))
    for run_id in (*found, "agreeing"):
        refresh(context.store, run_id)
    made = make_queue(context, "lin", PRESETS["agents"].name, PRESETS["agents"].filters, overlap=3, order="as_sent")
    assert (made.queue, made.added, made.there, made.unusable) == (QUEUE, 2, 0, 0)
    assert [item.run for item in context.store.queues.items(QUEUE)] == found
    again = make_queue(context, "lin", QUEUE, PRESETS["agents"].filters, overlap=3, order="as_sent")
    assert (again.added, again.there) == (0, 2)
    [state] = queue_states(context)
    assert (state.settings.version, state.settings.overlap, state.progress.items) == (1, 3, 2)
    html = queue_table([state])
    assert "0 of 2 complete" in html and "(3 per item)" in html and "As they were sent" in html


def test_runs_without_an_answer_are_left_out(context: Context) -> None:
    context.store.runs.begin(header("empty"))
    context.store.runs.finish(complete("empty", answer="", opinions=()))
    context.store.runs.begin(header("full"))
    context.store.runs.finish(complete("full"))
    made = make_queue(context, "lin", "All", RunFilter())
    assert (made.added, made.unusable) == (1, 1)
    with pytest.raises(InputError, match="no finished run is like that"):
        make_queue(context, "lin", "None", RunFilter(text="nowhere"))
    with pytest.raises(InputError, match="0 people per item"):
        make_queue(context, "lin", "Half", RunFilter(), overlap=0)
    assert [queue.name for queue in context.store.queues.queues()] == ["All"]  # nothing is half made


def test_labels_that_a_queue_does_without(context: Context) -> None:
    more = {"overlap": 2, "order": "random", "guidelines": ""}
    found = stored(context.store, disagreeing())
    made = make_queue(context, "lin", QUEUE, RunFilter(), others=["cannot_tell", "nonsense"], **more)
    settings = context.store.queue_settings.of(QUEUE)
    assert (made.added, settings.labels) == (1, ("first", "second", "cannot_tell"))
    item = sheet(context, QUEUE, "ann").item
    assert item is not None and item.marks == ("A", "B", "cannot_tell")
    with pytest.raises(InputError, match="no label 'both' in this queue"):
        save(context, "ann", item.token, "both")
    assert change_settings(context, "lin", QUEUE, **more) == settings  # not said: they stay
    assert change_settings(context, "lin", QUEUE, others=[], **more).labels == ("first", "second")
    assert set_practice(context, "lin", QUEUE, found, "first", "").labels == ("first", "second")
    with pytest.raises(InputError, match="which the queue does not offer"):
        set_practice(context, "lin", QUEUE, found, "neither", "")


def test_practice_items(context: Context) -> None:
    found = stored(context.store, disagreeing())
    context.store.queues.send(found, QUEUE, "lin")
    [(question, run_id)] = practice_choices(context, QUEUE)
    assert (question, run_id) == ("When was the bridge of Velden that stands today opened?", found)
    labels = label_choices(context.store.runs.get(found), context.store.queue_settings.of(QUEUE).labels)
    assert labels[:3] == [("“1912” is right", "first"), ("“1921.” is right", "second"), ("Both", "both")]
    set_practice(context, "lin", QUEUE, found, "first", "no")
    settings = set_practice(context, "lin", QUEUE, found, "second", " <b>yes</b> ")
    assert [(item.label, item.feedback) for item in settings.practice_items] == [("second", "<b>yes</b>")]
    html = practice_table(settings, {found: question}, {found: "“1921.” is right"})
    assert "&lt;b&gt;yes" in html and "1921." in html
    assert drop_practice(context, "lin", QUEUE, found).practice_items == ()
    with pytest.raises(InputError, match="not in the queue"):
        set_practice(context, "lin", QUEUE, "nowhere", "first", "")
    with pytest.raises(InputError, match="no such queue"):
        change_settings(context, "lin", "nothing", guidelines="", overlap=2, order="random")


def test_labels_of_a_single_answer() -> None:
    one = run(pair=("1912", "1912"))
    assert len(candidates_of(one)) == 1
    assert [label for _, label in label_choices(one, ("first", "second", "both", "neither"))] == ["first", "neither"]


def test_guidelines_are_text() -> None:
    lists = "1. One `x<y`\n2. Two **strong**\n   goes on\n- [a](javascript:alert(1)) <img src=x>"
    source = f"# Rules\nRead *all*\nof it\n\n{lists}"
    assert guidelines(source) == (
        "<h3>Rules</h3><p>Read <em>all</em><br>of it</p>"
        "<ol><li>One <code>x&lt;y</code></li><li>Two <strong>strong</strong> goes on</li></ol>"
        "<ul><li>[a](javascript:alert(1)) &lt;img src=x&gt;</li></ul>"
    )
    assert guidelines("") == ""
