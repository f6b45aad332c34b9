"""A calibration as a job of the engine: what was ordered, how far it is, its work, and keeping the profile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mdqa.calibration import accepts
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled
from mdqa.methods.base import Tools
from mdqa.passes import Passes
from mdqa.records import Profile, Question, RunStatus
from mdqa.registry import CALIBRATIONS, load
from storage.store import Store
from ui.views.calibration import CalibrationState

PACE_STEPS = 24
"""The last steps from whose time the rest is estimated."""

JUMP = 10.0
"""A step this many times as long as the ones before begins the estimate anew: found pieces take no time."""


@dataclass(frozen=True)
class CalibrationOrder:
    """A calibration that someone asked for. ``options``: checked values; ``passes``: None where the method keeps none.

    ``found``: finished pieces of an earlier attempt, when it was ordered. ``verdicts``: people's, by question id, where
    they were asked for. ``before``: a profile that the new one is measured beside.
    """

    run_id: str
    method: str
    title: str
    model: str
    name: str
    questions: tuple[Question, ...] = field(repr=False)
    held_out: tuple[Question, ...] = field(repr=False)
    options: Mapping[str, Any]
    seed: int
    data: str
    replace: bool = False
    passes: Passes | None = None
    found: int = 0
    verdicts: Mapping[str, bool] | None = None
    before: Profile | None = field(default=None, repr=False)


class Pace:
    """Time per step over the last steps."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=PACE_STEPS + 1)

    def mark(self, now: float, done: int) -> None:
        """``done`` steps are finished at ``now`` (seconds)."""
        if len(self._marks) > 1:
            (first, before), (last, then) = self._marks[0], self._marks[-1]
            usual = (last - first) / max(then - before, 1)
            if now - last > JUMP * usual * max(done - then, 1):
                self._marks = deque([(last, then)], maxlen=PACE_STEPS + 1)
        self._marks.append((now, done))

    def remaining(self, now: float, total: int) -> float | None:
        """Seconds until ``total`` steps are finished; None before there is anything to go by."""
        if len(self._marks) < 2 or self._marks[-1][1] == self._marks[0][1]:
            return None
        (first, before), (last, then) = self._marks[0], self._marks[-1]
        waited = now - last
        step = max((last - first) / (then - before), waited)  # the step that is going on may be a long one
        return max(step * (total - then) - waited, 0.0)


class LiveCalibration:
    """A calibration that waits, works or has just ended; other threads see it as :class:`CalibrationState`."""

    def __init__(self, order: CalibrationOrder) -> None:
        self.order = order
        self.cancel = CancelToken()
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._ended: float | None = None
        self._status: RunStatus = "running"
        self._preparing = self._doing = self._error = self._profile = ""
        self._done = self._total = 0
        self._pace = Pace()

    def preparing(self, words: str) -> None:
        """Say what is done before the work can begin; an empty text when it begins, which starts its clock."""
        with self._lock:
            self._preparing = words
            self._began = time.perf_counter()

    def work(self, tools: Tools, store: Store) -> None:
        """Calibrate and keep the profile. MdqaError if it cannot be done; a stop ends it as cancelled."""
        order = self.order
        calibrate = load(CALIBRATIONS, order.method, "calibration")
        more: dict[str, Any] = {
            "passes": order.passes,
            "held_out": order.held_out,
            "data": order.data,
            "verdicts": order.verdicts,
            "before": order.before,
        }
        try:
            profile = calibrate(
                order.questions,
                tools,
                name=order.name,
                seed=order.seed,
                cancel=self.cancel,
                progress=self._progress,
                **{name: value for name, value in more.items() if accepts(calibrate, name)},
                **order.options,
            )
        except Cancelled:
            self.end("cancelled")
            return
        kept = keep(store, profile, replace=order.replace)
        if order.passes is not None:
            order.passes.discard()
        with self._lock:
            self._profile = kept.name
        self.end("ok")

    def end(self, status: RunStatus, error: str = "") -> None:
        """Nothing more will happen; ``error`` says why it failed."""
        with self._lock:
            self._status, self._error = status, error
            self._ended = time.perf_counter()
            self._preparing = ""

    def snapshot(self, place: int = 0) -> CalibrationState:
        """The calibration now; ``place`` is its number in line."""
        now = time.perf_counter()
        order = self.order
        with self._lock:
            return CalibrationState(
                id=order.run_id,
                title=order.title,
                model=order.model,
                name=order.name,
                status=self._status,
                elapsed=(self._ended or now) - self._began,
                place=place,
                stopping=self.cancel.cancelled and self._status == "running",
                preparing=self._preparing,
                done=self._done,
                total=self._total,
                doing=self._doing,
                remaining=self._pace.remaining(now, self._total),
                found=order.found,
                resumes=order.passes is not None,
                profile=self._profile,
                error=self._error,
            )

    def _progress(self, done: int, total: int, text: str) -> None:
        with self._lock:
            self._done, self._total, self._doing = done, total, text
            self._pace.mark(time.perf_counter(), done)


def keep(store: Store, profile: Profile, *, replace: bool) -> Profile:
    """Store the profile; if its name was taken since the work began, under the name with a number."""
    taken = {known.name for known in store.profiles.list(method=profile.method, model=profile.model)}
    name, number = profile.name, 1
    while name in taken and not replace:
        number += 1
        name = f"{profile.name} ({number})"
    kept = profile.model_copy(update={"name": name})
    store.profiles.save(kept, replace=replace)
    return kept
