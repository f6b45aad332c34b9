"""Tasks to lines, in this process, in others and on Ray; workers that die."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError, ConfigError, InputError, MissingDependency, ModelError, PromptTooLong
from mdqa.evaluation.plan import make_entry
from mdqa.evaluation.processes import Refusal, in_processes
from mdqa.evaluation.ray_cluster import on_ray
from mdqa.evaluation.schedule import ATTEMPTS, Schedule
from mdqa.evaluation.work import Identity, Worker, in_this_process, lost_line
from mdqa.methods.base import Tools
from mdqa.records import RunResult
from tests.evaluation.helpers import (
    QUESTIONS,
    TASKS,
    mortal_worker,
    scripted_worker,
    setup,
    without_times,
)


def lost_here(task, identity, reason):
    return lost_line(task, setup(), identity, reason)


def by_key(done) -> dict:
    return {task.key: without_times(line) for task, line in done}


def test_every_task_gets_its_line_whatever_was_done_before() -> None:
    done = list(in_this_process(TASKS, scripted_worker, CancelToken()))
    assert [task for task, _ in done] == TASKS
    first = done[0][1]
    assert (first["id"], first["entry"], first["status"], first["method"]) == ("q0", "vanilla", "ok", "direct")
    assert done[-1][1]["config"]["top_k"] == 1
    assert by_key(done) == by_key(in_this_process(TASKS[::-1], scripted_worker, CancelToken()))


def test_a_set_token_stops_before_the_next_task() -> None:
    cancel = CancelToken()
    found = []
    for task, _ in in_this_process(TASKS, scripted_worker, cancel):
        found.append(task)
        cancel.cancel()
    assert found == TASKS[:1]


def test_what_an_entry_lacks_is_said_at_once() -> None:
    class Bare(ScriptedBackend):
        capabilities = frozenset(("generate",))

    entry = make_entry("cafe", {})
    with pytest.raises(CapabilityError):
        Worker(setup((entry,)), Bare(), {"cafe": Tools(Bare())})


def test_a_task_that_is_given_up_has_a_failed_line() -> None:
    line = lost_line(TASKS[-1], setup(seed=4), Identity("scripted", "scripted"), "it died")
    assert (line["id"], line["entry"], line["status"], line["seed"]) == ("q5", "top1", "failed", 4)
    assert line["error"] == {"type": "WorkerDied", "message": "it died", "stage": ""}
    values = {name: value for name, value in line.items() if name not in ("id", "run", "entry", "question")}
    RunResult.model_validate({"id": line["run"], "question": QUESTIONS[5], **values})


def test_the_schedule_gives_lost_tasks_out_again_first() -> None:
    schedule = Schedule(TASKS[:3])
    one, two = schedule.take(), schedule.take()
    assert (one, two) == tuple(TASKS[:2])
    schedule.done(two)
    assert schedule.lost(one)
    assert schedule.take() == one
    third = schedule.take()
    assert schedule.take() is None
    assert not schedule.finished, "what runs may still come back"
    schedule.done(third)
    assert schedule.lost(one)
    assert schedule.waiting == 1
    assert schedule.take() == one
    assert not schedule.lost(one), f"{ATTEMPTS} deaths are enough"
    assert schedule.finished


def test_refusals_keep_their_words_on_the_way() -> None:
    too_long = Refusal.of(PromptTooLong(10, 5)).error()
    assert isinstance(too_long, ModelError)
    assert "10 tokens" in str(too_long)
    assert isinstance(Refusal.of(InputError("no", place="here")).error(), ConfigError)


@pytest.mark.slow
def test_processes_give_what_one_process_gives_and_outlive_a_killed_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = by_key(in_this_process(TASKS, scripted_worker, CancelToken()))
    once = partial(mortal_worker, tmp_path, False)
    assert by_key(in_processes(TASKS, once, CancelToken(), workers=2, lost=lost_here)) == alone
    assert {path.name for path in tmp_path.iterdir()} == {"vanilla-q2", "top1-q2"}, "a worker died on each"
    assert "exit status -9" in capsys.readouterr().err


@pytest.mark.slow
def test_a_question_that_kills_every_worker_is_a_recorded_failure(tmp_path: Path) -> None:
    always = partial(mortal_worker, tmp_path, True)
    found = by_key(in_processes(TASKS[:3], always, CancelToken(), workers=1, lost=lost_here))
    assert {key: line["status"] for key, line in found.items()} == {
        ("vanilla", "q0"): "ok",
        ("vanilla", "q1"): "ok",
        ("vanilla", "q2"): "failed",
    }
    assert "3 times" in found["vanilla", "q2"]["error"]["message"]


@pytest.mark.slow
def test_ray_gives_what_one_process_gives_and_outlives_a_killed_worker(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the optional package ray")
    alone = by_key(in_this_process(TASKS, scripted_worker, CancelToken()))
    once = partial(mortal_worker, tmp_path, False)
    assert by_key(on_ray(TASKS, once, CancelToken(), workers=2, lost=lost_here)) == alone
    assert {path.name for path in tmp_path.iterdir()} == {"vanilla-q2", "top1-q2"}, "an actor died on each"


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_install_line_is_said() -> None:
    with pytest.raises(MissingDependency, match="pip install ray"):
        list(on_ray(TASKS, scripted_worker, CancelToken(), workers=2, lost=lost_here))
