"""The verbs of the page on a real engine and store, with the scripted backend."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mdqa.backends.base import Backend
from mdqa.errors import CapabilityError, ConfigError, InputError, ModelError
from mdqa.records import RunError
from mdqa.registry import METHODS, method_class
from storage.runs import UnknownRun
from storage.store import Store
from tests.ui.helpers import SCRIPTED, open_scripted, question, scripted_profiles
from ui.actions import (
    follow,
    load_view,
    methods,
    obstacles,
    read_config,
    run_id_from,
    snapshots,
    start_runs,
    stop,
)
from ui.context import Context, offered
from ui.engine import Engine
from ui.following import error_sentence


def configs(*names: str) -> dict[str, object]:
    return {name: method_class(name).Config() for name in names}


def run_to_end(context: Context, *names: str, n: int = 6) -> list[str]:
    ids = start_runs(context, question(n), configs(*names), model=SCRIPTED)  # type: ignore[arg-type]
    last = list(follow(context, ids, every=0.02))[-1]
    assert all(snapshot.status == "ok" for snapshot in last), [snapshot.error for snapshot in last]
    return ids


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_and_is_kept(context: Context, name: str) -> None:
    (run_id,) = run_to_end(context, name)
    view = load_view(context, run_id)
    assert view.run.status == "ok" and view.run.answer
    assert view.correct is not None
    assert view.calls and view.calls[0].prompt
    last = context.engine.snapshot(run_id)
    assert last is not None and last.cost == view.run.cost
    assert [stage.title for stage in last.stages] == [stage.title for stage in view.run.stages]
    if name == "cafe":
        assert view.maps and view.maps[0].retrieval_heads
    if name == "madara":
        assert view.run.routing is not None and view.run.routing.treatment == "cot"


def test_several_methods_run_one_after_the_other(context: Context) -> None:
    ids = run_to_end(context, "direct", "cafe", "retrieve_read")
    runs = [context.store.runs.get(run_id) for run_id in ids]
    assert [run.method for run in runs] == ["direct", "cafe", "retrieve_read"]
    assert [run.created for run in runs] == sorted(run.created for run in runs)


def test_a_direct_run_of_the_same_question_is_set_beside(context: Context) -> None:
    (direct,) = run_to_end(context, "direct")
    (cafe,) = run_to_end(context, "cafe")
    (other,) = run_to_end(context, "cafe", n=4)
    vanilla = load_view(context, cafe).vanilla
    assert vanilla is not None and vanilla.id == direct
    assert load_view(context, other).vanilla is None
    assert load_view(context, direct).vanilla is None


def test_stop_ends_a_working_run_and_one_that_waits(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.05)) as context:
        first, second = start_runs(context, question(), configs("direct", "cafe"), model=SCRIPTED)  # type: ignore[arg-type]
        wait_until(lambda: context.engine.snapshot(first).stages != ())  # type: ignore[union-attr]
        (waiting,) = snapshots(context, [second])
        assert waiting.place == 1
        began = time.perf_counter()
        assert stop(context, [first, second]) == 2
        last = list(follow(context, [first, second], every=0.02))[-1]
        assert [snapshot.status for snapshot in last] == ["cancelled", "cancelled"]
        assert time.perf_counter() - began < 2
        assert context.store.runs.get(first).status == "cancelled"
        assert stop(context, [first, "unknown"]) == 0
        assert context.store.runs.get(second).status == "cancelled"  # its address has been given out


def test_runs_that_work_or_wait_when_the_program_ends_are_kept_as_interrupted(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.05)) as context:
        first, second = start_runs(context, question(), configs("direct", "cafe"), model=SCRIPTED)  # type: ignore[arg-type]
        wait_until(lambda: context.engine.snapshot(first).stages != ())  # type: ignore[union-attr]
    with Store.open(context.settings.database) as store:
        assert store.runs.get(first).status == "interrupted" and store.runs.events(first)[-1].status == "interrupted"  # type: ignore[union-attr]
        assert store.runs.get(second).status == "interrupted"
        assert store.runs.get(second).question == question()


def test_madara_without_a_profile_is_said_before_the_run(context: Context) -> None:
    other = context.models[-1].id
    (line,) = [line for line in obstacles(context, ["madara"], other, configs("madara")) if "profile" in line]  # type: ignore[arg-type]
    assert "MADARA" in line and "calibrate" in line and "treatment" in line
    by_hand = {"madara": read_config("madara", {"treatment": "atf"})}
    assert not [line for line in obstacles(context, ["madara"], other, by_hand) if "profile" in line]
    assert obstacles(context, ["madara"], SCRIPTED, configs("madara")) == []  # type: ignore[arg-type]


def wait_until(condition: object, seconds: float = 10.0) -> None:
    end = time.perf_counter() + seconds
    while not condition():  # type: ignore[operator]
        assert time.perf_counter() < end, "nothing happened"
        time.sleep(0.01)


def test_runs_go_on_when_nobody_follows(context: Context) -> None:
    (run_id,) = start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]
    watching = follow(context, [run_id])
    next(watching)
    watching.close()  # type: ignore[attr-defined]
    wait_until(lambda: snapshots(context, [run_id])[0].finished)
    assert context.store.runs.get(run_id).status == "ok"


def test_the_line_is_limited(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, queue=2, start=False)) as context:
        context.engine.start()
        context.engine.load(SCRIPTED)
        context.engine.close()  # nobody takes jobs any more
        for _ in range(2):
            start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="2 runs are waiting"):
            start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]


def test_the_models_memory_is_freed_in_line_and_the_next_run_loads_it_again(context: Context) -> None:
    (run_id,) = start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]
    context.engine.unload()
    wait_until(lambda: context.engine.model_status.phase == "none")
    assert context.store.runs.get(run_id).status == "ok"  # it came before
    assert context.engine.loaded() == ""
    (again,) = start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]
    wait_until(lambda: snapshots(context, [again])[0].finished)
    assert context.engine.loaded() == SCRIPTED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "somebody/else"}, "not offered"),
        ({"overflow": "guess"}, "no rule"),
        ({"seed": -1}, "seed"),
        ({"choices": {}}, "at least one method"),
    ],
)
def test_choices_that_do_not_exist_are_refused(context: Context, changes: dict[str, object], message: str) -> None:
    arguments = {"choices": configs("direct"), "model": SCRIPTED} | changes
    with pytest.raises(ConfigError, match=message):
        start_runs(context, question(), **arguments)  # type: ignore[arg-type]
    assert context.store.runs.count() == 0


def test_no_documents_is_refused_before_a_run_exists(context: Context) -> None:
    with pytest.raises(InputError, match="no documents"):
        start_runs(context, question(0), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]


def test_what_a_model_cannot_do_is_said_before_the_run(context: Context) -> None:
    weak = replace(context.models[0], id="http://somewhere", capabilities=("generate",))
    limited = replace(context, models=(*context.models, weak))
    chosen = configs("cafe", "direct")
    lines = obstacles(limited, list(chosen), weak.id, chosen)  # type: ignore[arg-type]
    assert len(lines) == 2 and "attention" in lines[0] and "profile" in lines[1]
    with pytest.raises(CapabilityError, match="CAFE needs"):
        start_runs(limited, question(), chosen, model=weak.id)  # type: ignore[arg-type]


def test_a_model_that_cannot_be_had_fails_the_run_with_its_reason(tmp_path: Path) -> None:
    def refuse(model: str, progress: object) -> Backend:
        raise ModelError(f"{model} cannot be fetched; choose another one or a folder")

    store = Store.open(tmp_path / "runs.db")
    engine = Engine(store, refuse, lambda: None, lambda *_: None)  # type: ignore[arg-type, return-value]
    with closing(open_scripted(tmp_path / "other")) as usual:
        context = replace(usual, store=store, engine=engine, models=offered(SCRIPTED))
        engine.start(SCRIPTED)
        wait_until(lambda: engine.model_status.phase == "failed")
        assert "cannot be fetched" in engine.model_status.text
        (run_id,) = start_runs(context, question(), configs("direct"), model=SCRIPTED)  # type: ignore[arg-type]
        last = list(follow(context, [run_id], every=0.02))[-1]
        assert last[0].status == "failed" and "cannot be fetched" in last[0].error
        kept = load_view(context, run_id).run
        assert kept.status == "failed" and kept.error is not None and "choose another" in kept.error.message
        engine.close()
        store.close()


def test_runs_are_there_after_a_restart(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        (run_id,) = run_to_end(context, "cafe")
        before = load_view(context, run_id)
    with closing(open_scripted(tmp_path)) as again:
        after = load_view(again, run_id)
        assert after.run == before.run and after.calls == before.calls
        assert snapshots(again, [run_id]) == []


@pytest.mark.parametrize("text", ["", "../../etc/passwd", "<img>", "a" * 65, "a b", None])
def test_addresses_that_name_no_run(text: object) -> None:
    with pytest.raises(UnknownRun):
        run_id_from(text)
    assert run_id_from(" ABC123 ") == "abc123"


def test_faults_of_ours_are_not_shown() -> None:
    fault = RunError(type="KeyError", message="internal error: KeyError: '/secret/path'")
    assert "secret" not in error_sentence(fault, "0123456789abcdef") and "01234567" in error_sentence(
        fault, "0123456789"
    )
    known = RunError(type="PromptTooLong", message="9,000 tokens")
    assert error_sentence(known, "x") == "9,000 tokens"


def test_options_name_the_method_and_the_option() -> None:
    with pytest.raises(ConfigError, match=r"DuQUAD: option 'k'"):
        read_config("duquad", {"k": 0})
    names = [info.name for info in methods()]
    assert set(names) == set(METHODS)
    assert names[:3] == ["duquad", "madara", "cafe"]  # what is set beside them comes after


def test_profiles_of_a_model_are_offered(context: Context) -> None:
    assert {profile.name for profile in context.profiles(SCRIPTED)} == {profile.name for profile in scripted_profiles()}
    assert context.profile_for("cafe", SCRIPTED) is not None
    assert context.profile_for("cafe", "nothing") is None
