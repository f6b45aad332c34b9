"""A study as a job of the engine: its runs are carried out one by one, and other people's runs come between them."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from mdqa.cancellation import CancelToken
from mdqa.records import RunStatus
from ui.following import LiveRun, Order
from ui.views.studies import StudyState


@dataclass(frozen=True)
class StudyOrder:
    """What is left of a study. ``run_id``: the study's id; ``total`` counts all its runs, ``found`` those there are.

    ``seconds``: what one run is likely to take.
    """

    run_id: str
    title: str
    base: str
    runs: tuple[Order, ...] = field(repr=False)
    total: int
    found: int = 0
    seconds: float = 0.0


class LiveStudy:
    """A study that waits, works or has just ended. Its runs are stopped with it: they share its token."""

    def __init__(self, order: StudyOrder) -> None:
        self.order = order
        self.cancel = CancelToken()
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._ended: float | None = None
        self._status: RunStatus = "running"
        self._error = ""
        self._left = deque(order.runs)
        self._now: LiveRun | None = None
        self._took: list[float] = []
        self._failed = 0

    def next_run(self) -> LiveRun | None:
        """The run that is to be carried out now; None when none is left or the study was stopped."""
        with self._lock:
            if not self._left or self.cancel.cancelled:
                return None
            self._now = LiveRun(self._left.popleft())
            self._now.cancel = self.cancel
            return self._now

    def took(self, run: LiveRun) -> None:
        """The run has ended."""
        ended = run.snapshot()
        with self._lock:
            self._now = None
            if ended.status in ("ok", "failed"):
                self._took.append(ended.elapsed)
                self._failed += ended.status == "failed"

    def rests(self) -> bool:
        """Whether it goes on later; otherwise it has ended now."""
        with self._lock:
            if self._left and not self.cancel.cancelled:
                return True
        self.end("cancelled" if self.cancel.cancelled else "ok")
        return False

    def end(self, status: RunStatus, error: str = "") -> None:
        """Nothing more will happen; ``error`` says why it failed."""
        with self._lock:
            self._status, self._error, self._now = status, error, None
            self._ended = time.perf_counter()

    def snapshot(self, place: int = 0) -> StudyState:
        """The study now; ``place`` is its number in line."""
        with self._lock:
            now, order = self._now, self.order
            current = now.snapshot() if now is not None else None
            usual = sum(self._took) / len(self._took) if self._took else order.seconds
            remaining = usual * (len(self._left) + (now is not None))
            if current is not None and not current.preparing:
                remaining -= min(current.elapsed, usual)
            return StudyState(
                id=order.run_id,
                base=order.base,
                title=order.title,
                status=self._status,
                total=order.total,
                done=order.found + len(self._took),
                found=order.found,
                failed=self._failed,
                place=place,
                stopping=self.cancel.cancelled and self._status == "running",
                preparing=current.preparing if current is not None else "",
                doing=now.order.words if now is not None else "",
                run=now.order.run_id if now is not None else "",
                elapsed=(self._ended or time.perf_counter()) - self._began,
                remaining=remaining if usual else None,
                error=self._error,
            )
