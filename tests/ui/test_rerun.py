"""A result's options changed and run again: the verb on a real engine and store, the boxes, and the line of changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from mdqa.errors import CapabilityError, ConfigError
from mdqa.methods.cafe.method import CAFEConfig
from mdqa.records import Cost, DocumentScore, RunResult
from mdqa.registry import METHODS, method_class
from mdqa.settings import Settings
from storage.runs import UnknownRun
from tests.ui.helpers import SCRIPTED, open_scripted, question, scripted_profiles
from ui.actions import follow, load_view, methods, run_again, start_runs
from ui.components.rerun import Rerun, build_rerun
from ui.context import Context, open_context
from ui.forms import form_fields
from ui.layout import build_ui
from ui.views.summary import change_line, result_head


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with closing(open_scripted(tmp_path)) as opened:
        yield opened


@pytest.fixture(scope="module")
def rerun() -> Rerun:
    with gr.Blocks():
        return build_rerun()


def finish(context: Context, *run_ids: str) -> list[RunResult]:
    last = list(follow(context, run_ids, every=0.02))[-1]
    assert all(snapshot.status == "ok" for snapshot in last), [snapshot.error for snapshot in last]
    return [context.store.runs.get(run_id) for run_id in run_ids]


def first_run(context: Context, name: str = "cafe", **options: object) -> RunResult:
    config = {name: method_class(name).Config.parse(options)}
    [run] = finish(context, *start_runs(context, question(8), config, model=SCRIPTED, seed=7, overflow="shorten"))
    return run


def values_of(rerun: Rerun, run: RunResult, **typed: object) -> dict[object, object]:
    """What the boxes hold after the run was shown and these values were typed."""
    updates = dict(zip(rerun.outputs, rerun.show(run), strict=True))
    shown = {box: updates[box]["value"] for box in rerun.forms[run.method].values()}
    return shown | {rerun.forms[run.method][name]: value for name, value in typed.items()}


def test_a_run_again_differs_in_what_was_changed_only(context: Context) -> None:
    before = first_run(context, m1=2, k1=2)
    [after] = finish(context, run_again(context, before.id, {"delta": 5.5, "m2": 3}))
    assert after.id != before.id
    assert {name for name, value in after.config.items() if value != before.config[name]} == {"delta", "m2"}
    assert (after.config["delta"], after.config["m2"]) == (5.5, 3)
    for name in ("question", "method", "model", "profile", "seed", "overflow"):
        assert getattr(after, name) == getattr(before, name)
    assert context.store.runs.get(before.id) == before
    assert load_view(context, after.id, before.id).before == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delta": -1}, "CAFE: option 'delta': .* greater than or equal to 0"),
        ({"k1": 65}, "CAFE: option 'k1': .* less than or equal to 64"),
        ({"m1": 2.5}, "CAFE: option 'M1' must be a whole number"),
        ({"m2": None}, "CAFE: option 'M2' is empty"),
        ({"tau": 1}, "Known options"),
    ],
)
def test_bad_values_name_the_option_and_start_nothing(context: Context, changes: dict[str, object], words: str) -> None:
    before = first_run(context)
    with pytest.raises(ConfigError, match=words):
        run_again(context, before.id, changes)
    assert context.store.runs.count() == 1


def test_what_is_gone_is_said(context: Context) -> None:
    before = first_run(context)
    with pytest.raises(UnknownRun):
        run_again(context, "0" * 32, {"delta": 1.0})
    elsewhere = replace(context, models=tuple(card for card in context.models if card.id != SCRIPTED))
    with pytest.raises(ConfigError, match="not offered"):
        run_again(elsewhere, before.id, {"delta": 1.0})
    context.store.profiles.delete(context.store.profiles.get(before.profile, method="cafe"))
    with pytest.raises(CapabilityError, match="profile"):
        run_again(context, before.id, {"delta": 1.0})


def test_only_a_run_of_the_same_question_is_set_before_another(context: Context) -> None:
    cafe, direct = first_run(context), first_run(context, "direct")
    other = start_runs(context, question(3), {"cafe": CAFEConfig()}, model=SCRIPTED)
    [smaller] = finish(context, *other)
    for run_id in (direct.id, smaller.id, "0" * 32, ""):
        assert load_view(context, cafe.id, run_id).before is None


def test_controls_are_options_of_their_method() -> None:
    for info in methods():
        names = [field.name for field in info.controls]
        assert tuple(names) == method_class(info.name).controls
        assert set(info.controls) <= set(info.fields)
    assert method_class("cafe").controls == ("delta", "m1", "k1", "m2", "k2")


def test_boxes_show_the_runs_own_values(context: Context, rerun: Rerun) -> None:
    run = first_run(context, m1=3, k2=1)
    shown = {name: values_of(rerun, run)[box] for name, box in rerun.forms["cafe"].items()}
    assert shown == {"delta": 2.5649, "m1": 3, "k1": 4, "m2": 2, "k2": 1}
    assert rerun.show(run)[0].visible is True
    for name in METHODS:
        offered = name in rerun.forms
        assert rerun.show(run.model_copy(update={"method": name}))[0].visible is offered
    assert rerun.show(run.model_copy(update={"status": "running"}))[0].visible is False
    explained = dict(zip(rerun.outputs, rerun.show(run), strict=True))[rerun.explained]
    for field in form_fields(CAFEConfig):
        assert (field.label in explained and "0 to 20" in explained) or field.name not in rerun.forms["cafe"]


def test_what_nobody_touched_is_not_changed(context: Context, rerun: Rerun) -> None:
    run = first_run(context)
    with pytest.raises(ConfigError, match="no option differs"):
        rerun.changes(run, values_of(rerun, run))
    assert rerun.changes(run, values_of(rerun, run, m1=2)) == {"m1": 2}  # delta is shown rounded and stays exact
    assert rerun.changes(run, values_of(rerun, run, delta=2.6)) == {"delta": 2.6}
    assert rerun.changes(run, values_of(rerun, run, k1=None)) == {"k1": None}


def test_a_run_of_an_older_program_shows_defaults(context: Context, rerun: Rerun) -> None:
    run = first_run(context)
    older = run.model_copy(update={"config": {k: v for k, v in run.config.items() if k != "m2"}})
    assert values_of(rerun, older)[rerun.forms["cafe"]["m2"]] == 2


def test_the_line_says_options_answer_time_and_what_was_reused(context: Context) -> None:
    before = first_run(context)
    cost = Cost(prompt_tokens=200, cached_tokens=150, seconds=0.5)
    later = before.model_copy(
        update={
            "config": {**before.config, "delta": 9.0, "m1": 2},
            "answer": "<b>elsewhere</b>",
            "cost": cost,
        }
    )
    line = change_line(before, later)
    assert "Delta 2.56495 → 9" in line and "M1 4 → 2" in line and "K1" not in line
    assert f"“{before.answer}” → “&lt;b&gt;elsewhere&lt;/b&gt;”" in line
    assert "→ 0.50 s" in line and "75% of the prompt tokens reused" in line
    assert f'href="?run={before.id}"' in line
    assert "same answer" in change_line(before, before.model_copy(update={"cost": cost}))
    assert "same documents" in line
    first, *rest = before.stages[-1].kept
    last = before.stages[-1].model_copy(
        update={"kept": tuple(rest), "scores": {"steered": {first: DocumentScore(value=1.0)}}}
    )
    fewer = later.model_copy(update={"stages": (*before.stages[:-1], last)})
    number = before.question.document_ids.index(first) + 1
    assert f"kept −{number} · steered towards " in change_line(before, fewer)
    stopped = later.model_copy(update={"answer": "", "cost": Cost(), "status": "cancelled"})
    assert "→ “–”" in change_line(before, stopped) and "reused" not in change_line(before, stopped)
    head = result_head(later, method_title="CAFE", correct=None, change=line)
    assert head.index('data-testid="change"') < head.index('data-testid="answer"')


def test_the_page_holds_the_boxes(context: Context) -> None:
    page = build_ui(context).get_config_file()
    labels = [part["props"].get("label") for part in page["components"] if part["type"] == "number"]
    assert {"Delta", "M1", "K1", "M2", "K2"} <= set(labels)
    assert any(part["props"].get("elem_id") == "mdqa-again" for part in page["components"])


def test_another_delta_computes_no_pass_again(tmp_path: Path) -> None:
    settings = Settings(model=SCRIPTED, database=tmp_path / "runs.db", cache=tmp_path / "cache")
    with closing(open_context(settings)) as context:
        for profile in scripted_profiles():
            context.store.profiles.save(profile)
        before = first_run(context)
        [delta] = finish(context, run_again(context, before.id, {"delta": 1.0}))
        [m1] = finish(context, run_again(context, before.id, {"m1": 3}))
        first, again, narrower = (
            [
                call.cost.prefill_tokens_computed
                for call in load_view(context, run.id).calls
                if call.purpose == "attention"
            ]
            for run in (before, delta, m1)
        )
        assert len(first) >= 2 and all(first)
        assert again == [0] * len(first)
        assert narrower[0] == 0 and any(narrower)
        assert delta.cost.cached_tokens > 0.9 * delta.cost.prompt_tokens
        assert delta.attention_summary == before.attention_summary
