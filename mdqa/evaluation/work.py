"""One task to one result line: the same for this process, for others on this machine and for a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mdqa.backends.base import Backend
from mdqa.cancellation import CancelToken
from mdqa.evaluation.plan import Entry, Task
from mdqa.methods.base import Tools
from mdqa.records import Overflow, RunError, RunResult
from mdqa.registry import method_class
from mdqa.run import begin, new_run_id, run_one

Line = dict[str, Any]
Done = tuple[Task, Line]


@dataclass(frozen=True)
class Setup:
    """What all runs of one model have in common; it can be sent to another process.

    ``devices`` are given to the workers in turn. ``threads`` is how many each may use, 0 for as many as it likes.
    """

    model: str
    backend: str
    devices: tuple[str, ...]
    dtype: str
    cache: Path
    entries: tuple[Entry, ...]
    seed: int
    overflow: Overflow
    threads: int = 0


@dataclass(frozen=True)
class Identity:
    """How a loaded model is called in results."""

    model: str
    backend: str


class Worker:
    """A loaded model with the entries' tools: does one task after the other.

    Raises at once what a method says about its options, profile or the backend's capabilities.
    """

    def __init__(self, setup: Setup, backend: Backend, tools: Mapping[str, Tools]) -> None:
        self._setup, self._backend, self._tools = setup, backend, tools
        self._entries = {entry.label: entry for entry in setup.entries}
        for entry in setup.entries:
            method_class(entry.method)(entry.config, tools[entry.label])

    @property
    def identity(self) -> Identity:
        """The model's and the backend's name."""
        return Identity(self._backend.model, self._backend.name)

    def line(self, task: Task, cancel: CancelToken | None = None) -> Line | None:
        """The result line of a task, also of one that failed; None if it was stopped.

        It depends on the task alone, not on what was done before: every run has the seed of the evaluation.
        """
        entry, tools = self._entries[task.entry], self._tools[task.entry]
        setup = self._setup
        header = begin(entry.method, entry.config, task.item, tools, seed=setup.seed, overflow=setup.overflow)
        result = run_one(header, tools, cancel=cancel).result
        return None if result.status == "cancelled" else {**result.to_line(), "entry": task.entry}

    def close(self) -> None:
        """Free the model."""
        self._backend.close()


OpenWorker = Callable[[int], Worker]
"""Makes the worker of this number; a function that can be sent to another process."""


def in_this_process(tasks: Sequence[Task], open_worker: OpenWorker, cancel: CancelToken) -> Generator[Done, None, None]:
    """The tasks one after the other, until the token is set."""
    worker = open_worker(0)
    try:
        for task in tasks:
            line = None if cancel.cancelled else worker.line(task, cancel)
            if line is None:
                return
            yield task, line
    finally:
        worker.close()


def lost_line(task: Task, setup: Setup, identity: Identity, reason: str) -> Line:
    """The line of a task that took its worker along every time: a failed run without stages."""
    entry = next(entry for entry in setup.entries if entry.label == task.entry)
    result = RunResult(
        id=new_run_id(),
        question=task.item,
        method=entry.method,
        model=identity.model,
        backend=identity.backend,
        status="failed",
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seed=setup.seed,
        config=entry.config.model_dump(mode="json"),
        profile=entry.profile.name if entry.profile else "",
        overflow=setup.overflow,
        error=RunError(type="WorkerDied", message=reason),
    )
    return {**result.to_line(), "entry": task.entry}
