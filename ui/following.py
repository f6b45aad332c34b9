"""What is known of a run while it waits and works: fed by its events in one thread, read by others as snapshots."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mdqa.cancellation import CancelToken
from mdqa.errors import MdqaError
from mdqa.records import Cost, DocumentScore, Overflow, Question, RunError, RunResult, RunStatus
from mdqa.trace import (
    BaseEvent,
    ModelCall,
    Notice,
    PartialScores,
    Progress,
    RunFinished,
    StageFinished,
    StageStarted,
    TextDelta,
)
from ui.views.live import Snapshot, StageView


@dataclass(frozen=True)
class Order:
    """A run that someone asked for. ``config`` is the method's checked configuration.

    ``study``: the id of the study that it is a member of, ``key`` and ``words`` what is different in it.
    """

    run_id: str
    method: str
    title: str
    config: Any
    item: Question
    model: str
    profile: str = ""
    seed: int = 0
    overflow: Overflow = "refuse"
    study: str = ""
    key: str = ""
    words: str = ""


class LiveRun:
    """A run that waits, works or has just ended."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.cancel = CancelToken()
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._ended: float | None = None
        self._status: RunStatus = "running"
        self._preparing = ""
        self._stages: list[StageView] = []
        self._scores: dict[str, dict[str, DocumentScore]] = {}
        self._cost = Cost()
        self._writing = self._role = self._error = ""
        self._notices: list[str] = []

    def preparing(self, words: str) -> None:
        """Say what is done before the run can begin; an empty text when it begins, which starts its clock."""
        with self._lock:
            self._preparing = words
            self._began = time.perf_counter()

    def take(self, event: BaseEvent) -> None:
        """Add one event of the run."""
        with self._lock:
            match event:
                case StageStarted():
                    self._stages.append(StageView(event.name, event.title, event.documents))
                    self._scores = {}
                case Progress():
                    self._update(event.stage, done=event.done, total=event.total)
                case StageFinished():
                    stage = event.stage
                    self._update(stage.name, kept=len(stage.kept), seconds=stage.seconds)
                case PartialScores():
                    self._scores[event.signal] = event.scores
                case TextDelta():
                    self._writing = event.text if event.role != self._role else self._writing + event.text
                    self._role = event.role
                case ModelCall():
                    self._cost = self._cost + event.cost
                    self._writing = ""
                case Notice():
                    self._notices.append(event.message)
                case RunFinished():
                    self._cost = event.cost
                    self._error = error_sentence(event.error, self.order.run_id) if event.error else ""
                    self._end(event.status)

    def end(self, status: RunStatus, error: str = "") -> None:
        """The run ends without having begun, or by a fault outside of it."""
        with self._lock:
            self._error = error
            self._end(status)

    def snapshot(self, place: int = 0) -> Snapshot:
        """The run now; ``place`` is its number in line."""
        with self._lock:
            return Snapshot(
                run_id=self.order.run_id,
                method_title=self.order.title,
                status=self._status,
                elapsed=(self._ended or time.perf_counter()) - self._began,
                place=place,
                preparing=self._preparing,
                stages=tuple(self._stages),
                cost=self._cost,
                scores=tuple(self._scores.items()),
                writing=self._writing,
                role=self._role,
                notices=tuple(self._notices),
                documents=self.order.item.documents,
                error=self._error,
            )

    def _end(self, status: RunStatus) -> None:
        self._status = status
        self._ended = time.perf_counter()
        self._preparing = ""

    def _update(self, name: str, **changes: Any) -> None:
        for index in reversed(range(len(self._stages))):
            if self._stages[index].name == name and self._stages[index].seconds is None:
                self._stages[index] = replace(self._stages[index], **changes)
                return


def unbegun(order: Order) -> RunResult:
    """The record of a run that did no work."""
    return RunResult(
        id=order.run_id,
        question=order.item,
        method=order.method,
        model=order.model,
        backend="",
        status="running",
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seed=order.seed,
        config=order.config.model_dump(mode="json"),
        profile=order.profile,
        overflow=order.overflow,
    )


def error_sentence(error: RunError, run_id: str) -> str:
    """A run's error for people: our own errors as they are, faults as a sentence with a reference for the log."""
    if error.type in _own_errors(MdqaError):
        return error.message
    return (
        f"Something went wrong inside the program (reference {run_id[:8]}). What was done so far is kept; "
        "the details are in the program's log."
    )


def _own_errors(base: type[BaseException]) -> set[str]:
    return {base.__name__}.union(*(_own_errors(child) for child in base.__subclasses__()))
