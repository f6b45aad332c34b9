"""The line of jobs: those that wait, the one that is worked on, and those that have ended lately."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass

from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError
from ui.calibrating import LiveCalibration
from ui.following import LiveRun
from ui.study_jobs import LiveStudy

REMEMBERED = 64
"""Ended jobs whose last snapshot stays in memory; older runs are read from the store."""


@dataclass(frozen=True)
class LoadJob:
    """Load a model so that it is there when the first run comes; without a name, free the one that is there."""

    model: str


Job = LiveRun | LiveCalibration | LiveStudy
"""What people ask for and follow."""


class Line:
    """Any thread may call any method; one thread takes. ``limit``: how many may wait, loads left aside."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._waiting: deque[LoadJob | Job] = deque()
        self._working: LoadJob | Job | None = None
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        # In which the jobs that have not ended were asked for; by job, since a study goes on under its old name.
        self._contexts: dict[Job, Context] = {}
        self._closed = False
        self._cut_off: set[CancelToken] = set()

    def put(self, job: Job, keep: Callable[[], None] = lambda: None, check: Callable[[], None] = lambda: None) -> str:
        """Put a job at the end, unless one of its id is there and has not ended; ConfigError when the line is full.

        ``check`` may refuse it, and ``keep`` writes it down; nothing else happens to the line meanwhile, and what
        cannot be kept does not stand in it. The job's id.
        """
        name = job.order.run_id
        with self._changed:
            check()
            known = self._jobs.get(name)
            if known is not None and not known.snapshot().finished:
                return name
            waiting = sum(not isinstance(other, LoadJob) for other in self._waiting)
            if waiting >= self._limit:
                raise ConfigError(f"{waiting} runs are waiting already; try again when some are done")
            keep()
            self._jobs[name] = job
            self._contexts[job] = copy_context()
            self._waiting.append(job)
            self._forget()
            self._changed.notify_all()
        return name

    def put_load(self, job: LoadJob) -> None:
        """Put a model to be loaded, or to be freed, at the end."""
        with self._changed:
            self._waiting.append(job)
            self._changed.notify_all()

    def put_back(self, job: Job, still: Callable[[], bool]) -> None:
        """Put the job that is worked on at the end again if it is ``still`` to go on, and the line is not closed."""
        with self._changed:
            if not self._closed and still():
                self._waiting.append(job)

    def take(self) -> tuple[LoadJob | Job, Context] | None:
        """Wait for the next job, and the context in which it was asked for; None when the line is closed.

        The one that was taken before has ended with this.
        """
        with self._changed:
            before, self._working = self._working, None
            if before is not None and not isinstance(before, LoadJob) and before not in self._waiting:
                self._contexts.pop(before, None)
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            job = self._working = self._waiting.popleft()
            return job, Context() if isinstance(job, LoadJob) else self._contexts[job]

    def stop(self, name: str) -> tuple[Job | None, bool]:
        """Ask a job to stop: the job, None if it is not known or has ended, and whether it waited and is out now."""
        with self._changed:
            job = self._jobs.get(name)
            if job is None or job.snapshot().finished:
                return None, False
            job.cancel.cancel()
            waited = job in self._waiting
            if waited:
                self._waiting.remove(job)
                self._contexts.pop(job, None)
            return job, waited

    @contextmanager
    def beside(self, job: Job) -> Iterator[None]:
        """A job that is known while it is worked on in place of the one that was taken, and not afterwards."""
        with self._changed:
            self._jobs[job.order.run_id] = job
        try:
            yield
        finally:
            with self._changed:
                self._jobs.pop(job.order.run_id, None)  # it may have been forgotten since it ended

    def close(self) -> list[Job]:
        """Ask every job to stop and take none any more; those that waited."""
        with self._changed:
            self._closed = True
            self._cut_off = {job.cancel for job in self._jobs.values() if not job.cancel.cancelled}
            for job in self._jobs.values():
                job.cancel.cancel()
            waiting = [job for job in self._waiting if not isinstance(job, LoadJob)]
            self._waiting.clear()
            self._changed.notify_all()
        return waiting

    def cut_off(self, token: CancelToken) -> bool:
        """Whether it was the closing that asked for this stop, and not a person."""
        with self._changed:
            return token in self._cut_off

    @property
    def closed(self) -> bool:
        """Whether nothing is taken any more."""
        with self._changed:
            return self._closed

    @property
    def idle(self) -> bool:
        """Whether nothing is worked on."""
        with self._changed:
            return self._working is None

    def find(self, name: str) -> tuple[Job, int] | None:
        """A job and how many come before it (0 when it works or has ended); None if it is not known."""
        with self._changed:
            job = self._jobs.get(name)
            return None if job is None else (job, self._place(job))

    def all(self) -> list[tuple[Job, int]]:
        """Every job that is known, the newest first, and how many come before it."""
        with self._changed:
            return [(job, self._place(job)) for job in reversed(self._jobs.values())]

    def _place(self, job: Job) -> int:
        return list(self._waiting).index(job) + (self._working is not None) if job in self._waiting else 0

    def _forget(self) -> None:
        ended = [name for name, job in self._jobs.items() if job.snapshot().finished]
        for name in ended[: max(0, len(self._jobs) - REMEMBERED)]:
            del self._jobs[name]
