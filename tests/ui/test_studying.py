"""Studies on a real engine and store with the scripted backend: run, stop, go on, come between, look."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from mdqa.backends.base import Backend
from mdqa.errors import CapabilityError, ConfigError, InputError, ModelError
from mdqa.records import RunResult
from mdqa.registry import method_class
from mdqa.settings import Settings
from mdqa.studies.leave_one_out import LeaveOneOut
from mdqa.studies.position_sweep import PositionSweep
from storage.runs import UnknownRun
from storage.store import Store
from tests.ui.helpers import SCRIPTED, open_scripted, question, scripted_profiles
from ui.actions import follow, start_runs
from ui.components.result_panel import build_result_panel
from ui.context import Context, offered, open_context
from ui.engine import Engine
from ui.studying import (
    CHOSEN,
    EVERY,
    SweepWish,
    estimate_leave_one_out,
    estimate_sweep,
    find,
    go_on,
    load_study,
    start_leave_one_out,
    start_sweep,
    stop,
    studies_of,
    study_state,
)


def base_run(context: Context, method: str = "cafe", n: int = 6, **options: object) -> RunResult:
    config = {method: method_class(method).Config.parse(options)}
    [run_id] = start_runs(context, question(n), config, model=SCRIPTED, seed=7, overflow="shorten")
    assert list(follow(context, [run_id], every=0.02))[-1][0].status == "ok"
    return context.store.runs.get(run_id)


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, "nothing happened"
        time.sleep(0.01)


def finish(context: Context, study_id: str) -> None:
    wait_until(lambda: study_state(context, find(context, study_id)).finished)


def done(context: Context, study_id: str) -> int:
    return study_state(context, find(context, study_id)).done


def test_every_document_is_left_out_with_the_runs_own_settings(context: Context) -> None:
    base = base_run(context, m1=3)
    assert estimate_leave_one_out(context, base).words.startswith("6 runs, about ")
    study_id = start_leave_one_out(context, base.id, "ann")
    finish(context, study_id)
    view = load_study(context, study_id)
    assert isinstance(view.result, LeaveOneOut)
    assert (view.state.status, view.state.done, view.state.total, view.runs) == ("ok", 6, 6, 6)
    assert view.result.tally.ok == 6 and view.result.mass is not None
    assert all(row.attention is not None and row.same is not None and row.shifts for row in view.result.rows)
    assert view.cost.llm_calls == sum(row.without.cost.llm_calls for row in view.result.rows) > 0
    for row in view.result.rows:
        run = context.store.runs.get(row.without.run)
        assert (run.method, run.config, run.seed, run.overflow) == ("cafe", base.config, 7, "shorten")
        assert run.profile == base.profile and run.model == base.model
        assert run.question.documents == tuple(d for d in base.question.documents if d.id != row.document.id)
        assert context.store.studies.with_member(run.id) == view.study
    assert estimate_leave_one_out(context, base).words == "All 6 runs of it are there already."
    assert studies_of(context, base) == [("Leave one out", study_id)]
    assert (view.study.by, view.study.base) == ("ann", base.id)


def test_asking_twice_is_one_study_and_nothing_runs_again(context: Context) -> None:
    base = base_run(context, "direct", n=3)
    study_id = start_leave_one_out(context, base.id, "ann")
    assert start_leave_one_out(context, base.id, "bob") == study_id
    finish(context, study_id)
    assert start_leave_one_out(context, base.id, "bob") == study_id == go_on(context, study_id, "bob")
    time.sleep(0.05)
    assert context.store.runs.count() == 4 and load_study(context, study_id).runs == 3


def test_a_sweep_takes_methods_and_positions_and_uses_the_run_that_is_there(context: Context) -> None:
    base = base_run(context)  # its gold document stands second
    wish = SweepWish(which=CHOSEN, typed="1, 2, 6", methods=("direct", "cafe"))
    assert estimate_sweep(context, base, wish).runs == 5
    study_id = start_sweep(context, base.id, wish, "ann")
    finish(context, study_id)
    view = load_study(context, study_id)
    assert isinstance(view.result, PositionSweep)
    assert (view.result.methods, view.result.positions, view.runs) == (("cafe", "direct"), (1, 2, 6), 5)
    points = {(point.method, point.position): point for point in view.result.points}
    assert points["cafe", 2].outcome.run == base.id and points["cafe", 2].same
    assert all(point.outcome.state == "ok" for point in points.values())
    for (method, position), point in points.items():
        run = context.store.runs.get(point.outcome.run)
        assert run.method == method and run.question.documents[position - 1].id == "d2"
    assert points["direct", 6].attention is None and points["cafe", 6].attention is not None
    [(title, _)] = studies_of(context, base)
    assert title == "Position sweep: gold at 1, 2, 6; CAFE, Direct answering (No-Filter)"


def test_a_chosen_document_goes_to_every_position(context: Context) -> None:
    base = base_run(context, "direct", n=3)
    study_id = start_sweep(context, base.id, SweepWish("d3", EVERY, methods=("direct",)), "ann")
    finish(context, study_id)
    view = load_study(context, study_id)
    assert isinstance(view.result, PositionSweep) and view.document == "d3"
    orders = [context.store.runs.get(p.outcome.run).question.document_ids for p in view.result.points]
    assert orders == [("d3", "d1", "d2"), ("d1", "d3", "d2"), ("d1", "d2", "d3")]
    assert view.runs == 2  # the last order is that of the run itself


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (SweepWish(methods=()), "choose at least one"),
        (SweepWish(methods=("guess",)), "there is no method 'guess'"),
        (SweepWish("x", methods=("direct",)), "there is no document 'x'"),
        (SweepWish(which="some", methods=("direct",)), "there is no choice 'some'"),
        (SweepWish(which=CHOSEN, typed="9", methods=("direct",)), "'9' is none; here they are 1 to 3"),
    ],
    ids=["no method", "unknown method", "unknown document", "unknown choice", "position"],
)
def test_wishes_that_cannot_be_had_start_nothing(context: Context, wish: SweepWish, words: str) -> None:
    base = base_run(context, "direct", n=3)
    assert words in estimate_sweep(context, base, wish).obstacle
    with pytest.raises((ConfigError, InputError), match=words):
        start_sweep(context, base.id, wish, "ann")
    assert context.store.studies.list() == []


def test_what_cannot_be_studied_is_said(context: Context) -> None:
    with pytest.raises(UnknownRun):
        start_leave_one_out(context, "0" * 32, "ann")
    for name in ("", None, "0" * 32, "<script>", "a" * 5000):
        with pytest.raises(InputError, match="there is no such study"):
            find(context, name)
    one = base_run(context, "direct", n=1)
    assert "fewer than two documents" in estimate_leave_one_out(context, one).obstacle
    base = base_run(context, "direct", n=3)
    elsewhere = replace(context, models=tuple(card for card in context.models if card.id != SCRIPTED))
    with pytest.raises(ConfigError, match="not offered"):
        start_leave_one_out(elsewhere, base.id, "ann")
    weak = replace(context, models=(replace(context.models[0], id="other", capabilities=("generate",)),))
    moved = base.model_copy(update={"model": "other"})
    assert "CAFE needs" in estimate_sweep(weak, moved, SweepWish(methods=("cafe",))).obstacle
    many = base.model_copy(update={"question": question(300)})
    assert "at most 400" in estimate_sweep(context, many, SweepWish(which=EVERY, methods=("direct", "cafe"))).obstacle
    cafe = base_run(context, "cafe", n=3)
    context.store.profiles.delete(context.store.profiles.get(cafe.profile, method="cafe"))
    with pytest.raises((ConfigError, CapabilityError), match="profile"):
        start_leave_one_out(context, cafe.id, "ann")


def test_a_stopped_study_keeps_what_it_has_and_goes_on(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.01)) as context:
        base = base_run(context, "direct")
        study_id = start_leave_one_out(context, base.id, "ann")
        wait_until(lambda: done(context, study_id) >= 2)
        assert stop(context, study_id)
        finish(context, study_id)
        state = study_state(context, find(context, study_id))
        assert state.status == "cancelled" and 2 <= state.done < 6
        before = load_study(context, study_id)
        kept = {row.document.id: row.without.run for row in before.result.rows if row.without.state == "ok"}  # type: ignore[union-attr]
        assert not stop(context, study_id)
        assert go_on(context, study_id, "bob") == study_id
        finish(context, study_id)
        view = load_study(context, study_id)
        assert isinstance(view.result, LeaveOneOut) and view.result.tally.ok == 6
        now = {row.document.id: row.without.run for row in view.result.rows}
        assert kept and all(now[name] == run for name, run in kept.items())


def test_others_come_between_and_a_study_takes_one_place_in_line(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.01, queue=2)) as context:
        base = base_run(context, "direct")
        study_id = start_leave_one_out(context, base.id, "ann")
        wait_until(lambda: done(context, study_id) >= 1)
        [other] = start_runs(context, question(4), {"direct": method_class("direct").Config()}, model=SCRIPTED)
        wait_until(lambda: (s := context.engine.snapshot(other)) is not None and s.finished)
        state = study_state(context, find(context, study_id))
        assert not state.finished and state.done < 5  # the run did not wait for the study
        assert state.remaining is not None and state.remaining > 0
        wait_until(lambda: study_state(context, find(context, study_id)).run)
        stop(context, study_id)
        finish(context, study_id)


def test_a_study_that_the_program_ended_goes_on_after_a_restart(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.01)) as context:
        base = base_run(context, "direct")
        study_id = start_leave_one_out(context, base.id, "ann")
        wait_until(lambda: done(context, study_id) >= 1)
    with closing(open_scripted(tmp_path)) as again:
        state = study_state(again, find(again, study_id))
        assert state.status == "interrupted" and 1 <= state.done < 6
        view = load_study(again, study_id)
        assert isinstance(view.result, LeaveOneOut)
        assert view.result.tally.ok == state.done and view.result.tally.total == 6
        go_on(again, study_id, "ann")
        finish(again, study_id)
        assert done(again, study_id) == 6


def test_a_member_that_was_deleted_after_the_end_is_missing_and_comes_again(context: Context) -> None:
    base = base_run(context, "direct")
    study_id = start_leave_one_out(context, base.id, "ann")
    finish(context, study_id)
    context.store.runs.delete(context.store.studies.members(study_id)[0].run)
    state = study_state(context, find(context, study_id))
    assert (state.status, state.done, state.total) == ("interrupted", 5, 6)
    assert go_on(context, study_id, "ann") == study_id
    finish(context, study_id)
    assert done(context, study_id) == 6


def test_a_model_that_is_gone_ends_the_study_with_one_failed_run(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        base = base_run(context, "direct")

    def refuse(model: str, progress: object) -> Backend:
        raise ModelError(f"{model} cannot be fetched; choose another one")

    with closing(Store.open(tmp_path / "runs.db")) as store:
        engine = Engine(store, refuse, lambda: None, lambda *_: None)  # type: ignore[arg-type, return-value]
        other = Context(Settings(model=SCRIPTED), store, engine, SCRIPTED, offered(SCRIPTED))
        engine.start()
        study_id = start_leave_one_out(other, base.id, "ann")
        finish(other, study_id)
        state = study_state(other, find(other, study_id))
        assert (state.status, state.failed) == ("failed", 1) and "cannot be fetched" in state.error
        view = load_study(other, study_id)
        assert isinstance(view.result, LeaveOneOut)
        assert (view.result.tally.failed, view.result.tally.missing) == (1, 5)
        engine.close()


def test_passes_that_are_remembered_are_not_computed_again(tmp_path: Path) -> None:
    settings = Settings(model=SCRIPTED, database=tmp_path / "runs.db", cache=tmp_path / "cache")
    with closing(open_context(settings)) as context:
        for profile in scripted_profiles():
            context.store.profiles.save(profile)
        base = base_run(context)
        study_id = start_leave_one_out(context, base.id, "ann")
        finish(context, study_id)
        cost = load_study(context, study_id).cost
        assert 0 < cost.prefill_tokens_computed < cost.prompt_tokens


def test_the_tab_shows_every_state(context: Context) -> None:
    base = base_run(context)
    with gr.Blocks():
        panel = build_result_panel(context).studies
    empty = panel.show(base)
    assert len(empty) == len(panel.outputs)
    at = {component: place for place, component in enumerate(panel.outputs)}
    assert "No study of this run yet" in empty[at[panel.findings]]
    study_id = start_leave_one_out(context, base.id, "ann")
    finish(context, study_id)
    shown = panel.show(base)
    assert shown[at[panel.chosen]] == study_id and "Left out" in shown[at[panel.table]]
    assert shown[at[panel.timer]].active is False
    member = context.store.runs.get(context.store.studies.members(study_id)[0].run)
    assert f"?study={study_id}" in panel.show(member)[at[panel.member]]
    assert "All 6 runs of it are there already." in shown[at[panel.estimate]]
    plot, note = panel.picture(study_id, "attention", "f1")
    assert plot.visible and "rank correlation" in note.lower()
