"""A GPU that is borrowed for one run at a time: the same runs, from another process; stops, kills and refusals."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mdqa.cancellation import CancelToken
from mdqa.errors import StorageError
from mdqa.methods.base import Tools
from mdqa.records import RunStatus
from mdqa.registry import method_class
from mdqa.run import Outcome, begin
from mdqa.trace import BaseEvent, RunFinished, StageStarted
from storage.store import Store
from tests.storage.builders import complete, header
from tests.tiny import tiny_backend
from tests.ui.helpers import WordEncoder, question
from tests.ui.zero_gpu import TOKEN, Host, hosting
from ui.lending import FIRST_SECONDS, SECONDS_PER_DOCUMENT, SHORTEST, LentGPU, borrowed_seconds

ROOT = Path(__file__).parents[2]


def package() -> Path:
    """The folder that holds ``spaces``, which Spaces of this kind bring and nobody else needs."""
    named = os.environ.get("MDQA_SPACES", "")
    found = importlib.util.find_spec("spaces")
    if named:
        return Path(named)
    if found is None or found.origin is None:
        pytest.skip("needs the package spaces; name the folder that it is installed in (pip --target) in MDQA_SPACES")
    return Path(found.origin).parents[1]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Host]:
    """What tests.ui.borrowing has to tell, and its host."""
    where = package()
    with hosting() as host:
        done = subprocess.run(
            [sys.executable, "-m", "tests.ui.borrowing", str(tmp_path_factory.mktemp("space"))],
            cwd=ROOT,
            env=os.environ | host.variables(where),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts, host


@pytest.mark.slow
def test_a_borrowed_run_is_the_same_run_from_another_process(told: tuple[dict[str, Any], Host]) -> None:
    facts, host = told
    first = facts["first"]
    assert first["status"] == "ok" and first["same"]
    assert first["kinds"][0] == "run_started" and first["kinds"][-1] == "run_finished"
    assert facts["pid"] not in host.allowed and first["children"] == host.allowed[:1]
    maps = facts["maps"]
    assert maps["same"] and maps["maps"] > 0, "the attention came along"
    assert maps["children"] == first["children"], "the process stays for the next run"
    assert [asked["durationSeconds"] for asked in host.asked[:2]] == ["11", "22"]


@pytest.mark.slow
def test_a_stop_reaches_the_other_process(told: tuple[dict[str, Any], Host]) -> None:
    facts, _ = told
    stopped = facts["stopped"]
    assert stopped["status"] == "cancelled" and stopped["kinds"][-1] == "run_finished"
    assert 1 <= stopped["calls"] <= 6, "after a call for each document there would be a score for each, and an answer"
    assert facts["stopped"]["children"] == facts["first"]["children"]


@pytest.mark.slow
def test_a_gpu_that_is_taken_back_keeps_what_was_done(told: tuple[dict[str, Any], Host]) -> None:
    facts, _ = told
    killed = facts["killed"]
    assert killed["status"] == "failed" and killed["calls"] >= 1
    assert "GPU" in killed["error"] and "aborted" in killed["error"] and "kept" in killed["error"]
    assert killed["kinds"][-1] == "run_finished"
    assert facts["after"]["same"], "the next run has a process again"


@pytest.mark.slow
def test_another_model_has_another_process(told: tuple[dict[str, Any], Host]) -> None:
    facts, _ = told
    assert facts["exchanged"]["same"] and facts["exchanged"]["answer"] != facts["after"]["answer"]
    assert set(facts["exchanged"]["children"]) - set(facts["after"]["children"])
    assert not set(facts["exchanged"]["children"]) & set(facts["after"]["children"]), (
        "nobody keeps the old one's memory"
    )


@pytest.mark.slow
def test_a_host_that_refuses_and_one_that_lets_wait(told: tuple[dict[str, Any], Host]) -> None:
    facts, host = told
    assert facts["refused"]["status"] == "failed" and facts["refused"]["calls"] == 0
    assert "limit" in facts["refused"]["error"] or "quota" in facts["refused"]["error"]
    assert facts["waiting"]["status"] == "cancelled" and facts["waiting"]["seconds"] < 5
    assert facts["again"]["same"]
    assert len(host.released) >= 6


@pytest.mark.slow
def test_a_visitor_asks_on_the_page_at_the_cost_of_their_own_quota(told: tuple[dict[str, Any], Host]) -> None:
    facts, host = told
    assert facts["page"]["status"] == "ok" and facts["page"]["calls"] > 0, facts["page"]
    assert host.reported == 1, "the host is told at the start that something borrows"
    assert [asked.get("token") for asked in host.asked][-2:] == [None, TOKEN]


Behaviour = Callable[[Iterator[Any]], Iterator[Any]]


def complete_and_then_killed(sent: Iterator[Any]) -> Iterator[Any]:
    yield from sent
    raise RuntimeError("taken back")


def killed_before_the_outcome(sent: Iterator[Any]) -> Iterator[Any]:
    for one in sent:
        yield one
        if isinstance(one, RunFinished):
            raise RuntimeError("taken back")


def silent_in_the_end(sent: Iterator[Any]) -> Iterator[Any]:
    return (one for one in sent if not isinstance(one, Outcome | RunFinished))


@pytest.mark.parametrize(
    ("host", "full", "status", "error"),
    [
        (complete_and_then_killed, False, "ok", ""),
        (killed_before_the_outcome, False, "failed", "LoanError"),
        (silent_in_the_end, False, "failed", "LoanError"),
        (iter, True, "failed", "StorageError"),
    ],
)
def test_every_end_of_a_borrowed_run_is_told_once(
    monkeypatch: pytest.MonkeyPatch, host: Behaviour, full: bool, status: RunStatus, error: str
) -> None:
    """The package is one that carries out what it wraps in this process."""
    wrap = SimpleNamespace(GPU=lambda duration: lambda borrow: lambda *given: host(borrow(*given)))
    monkeypatch.setitem(sys.modules, "spaces", wrap)  # type: ignore[arg-type]
    tools = Tools(tiny_backend("llama"), WordEncoder, None)
    ends: list[RunFinished] = []

    def sink(event: BaseEvent) -> None:
        if full and isinstance(event, StageStarted):
            raise StorageError("the disk is full")
        if isinstance(event, RunFinished):
            ends.append(event)

    begun = begin("direct", method_class("direct").Config(), question(3), tools)
    result = LentGPU(lambda run: 5, device="cpu")(begun, tools, sink=sink, cancel=CancelToken()).result
    assert (result.status, result.error.type if result.error else "") == (status, error)
    assert [end.status for end in ends] == [status]


@pytest.mark.parametrize(
    ("status", "took", "seconds"),
    [
        ("ok", 40.0, 60),
        ("ok", 1.0, SHORTEST),
        ("ok", 9000.0, 300),
        ("failed", 40.0, FIRST_SECONDS + 6 * SECONDS_PER_DOCUMENT),
    ],
)
def test_the_time_asked_for_follows_from_runs_that_are_known(
    tmp_path: Path, status: RunStatus, took: float, seconds: int
) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        known = complete("known")
        known = known.model_copy(update={"status": status, "cost": known.cost.model_copy(update={"seconds": took})})
        store.runs.begin(header("known"))
        store.runs.finish(known)
        begun = header("next").model_copy(update={"question": question(6)})
        assert (begun.method, begun.model) == (known.method, known.model)
        assert borrowed_seconds(store, begun, longest=300) == seconds
        assert borrowed_seconds(store, begun, longest=5) == 5
