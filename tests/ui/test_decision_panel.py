"""The Decisions tab: what a stored run shows, the reply that a press asks for, the run that compares treatments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
import pytest

from mdqa.errors import InputError
from mdqa.registry import method_class
from tests.ui.helpers import SCRIPTED, question
from ui.actions import follow, load_view, run_again, start_runs
from ui.components.decision_panel import DecisionPanel, build_decision_panel, reply_to
from ui.context import Context


@dataclass
class Press:
    """What the browser sends with a press."""

    call: Any = None
    document: Any = ""


def started(context: Context, *ids: str) -> list[str]:
    last = list(follow(context, ids, every=0.02))[-1]
    assert all(snapshot.status == "ok" for snapshot in last), [snapshot.error for snapshot in last]
    return list(ids)


def madara(context: Context, n: int = 6, **options: object) -> str:
    config = {"madara": method_class("madara").Config.parse(options)}
    return started(context, *start_runs(context, question(n), config, model=SCRIPTED, seed=7))[0]


def panel(context: Context) -> DecisionPanel:
    with gr.Blocks():
        return build_decision_panel(context, gr.Radio([]))


def shown(made: DecisionPanel, context: Context, run_id: str) -> dict[Any, Any]:
    return dict(zip(made.outputs, made.show(load_view(context, run_id)), strict=True))


def test_treatments_are_compared_in_a_new_run_that_is_otherwise_the_same(context: Context) -> None:
    made = panel(context)
    first = madara(context)
    before = shown(made, context, first)
    assert before[made.row].visible and all(before[button].visible for button in made.buttons.values())
    assert "Only the chosen treatment" in before[made.treatments] and before[made.reply] == ""
    second = started(context, run_again(context, first, {"compare": "shared"}))[0]
    one, two = context.store.runs.get(first), context.store.runs.get(second)
    assert {name for name in one.config if one.config[name] != two.config[name]} == {"compare"}
    assert (two.answer, two.seed, two.question) == (one.answer, one.seed, one.question)
    assert {o.group for o in two.opinions if o.role == "treatment" and o.chosen} == {"cot"}
    after = shown(made, context, second)
    assert "✓ chosen" in after[made.treatments] and "Read alone" in after[made.scores]
    assert [after[made.buttons[name]].visible for name in ("shared", "all")] == [False, True]
    third = started(context, run_again(context, second, {"compare": "all"}))[0]
    last = shown(made, context, third)
    assert not last[made.row].visible and "SDA over the scores after reasoning" in last[made.treatments]


def test_a_press_shows_the_reply_of_its_call(context: Context) -> None:
    run_id = madara(context)
    view = load_view(context, run_id)
    [stage] = [stage for stage in view.run.stages if stage.name == "assessment"]
    index = stage.calls["relevance"]["d2"]
    html = reply_to(context, run_id, Press(index, "d2"))
    assert "Relevance Agent on document 2: Title 2" in html and "The exact prompt" in html
    assert "on document" in reply_to(context, run_id, Press(index, "no such document"))  # falls back to the call's own


@pytest.mark.parametrize("index", [None, True, -1, 10_000, "3", 1.5, [1]])
def test_a_press_that_no_page_sends_is_refused(context: Context, index: object) -> None:
    run_id = madara(context, 3)
    with pytest.raises(InputError, match="no such model call"):
        reply_to(context, run_id, Press(index, "d1"))


def test_other_methods_have_no_treatments(context: Context) -> None:
    made = panel(context)
    config = {"direct": method_class("direct").Config()}
    [run_id] = started(context, *start_runs(context, question(3), config, model=SCRIPTED))
    found = shown(made, context, run_id)
    assert "does not route" in found[made.route]
    assert not found[made.row].visible and found[made.treatments] == found[made.scores] == found[made.said] == ""
