"""Snapshots of the database by the clock and at the end of the program, and back at its start. Nothing here stops it.

What goes wrong is logged and told to admins: see :mod:`ui.views.keeping`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from mdqa.errors import MdqaError
from mdqa.settings import Settings
from storage.remotes import remote_of
from storage.snapshots import Snapshots
from ui.logs import log
from ui.views.keeping import SnapshotState

AGAIN = 60.0
"""Seconds until a snapshot that failed is tried again, where the next one is not due earlier."""

LATE = 3
"""Intervals without a look at the database after which something must be wrong."""

AT_EXIT = 20.0
"""Seconds that the end of the program waits for a snapshot that is being stored."""


SHARED = (
    "another program stores its snapshots in the same place ({}); what it did is not here, and a restart brings back "
    "the newest only. Let one program write there"
)


class Snapshotter:
    """The thread that takes snapshots. ``interval`` in seconds."""

    def __init__(self, snapshots: Snapshots, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._snapshots = snapshots
        self._interval = interval
        self._clock = clock
        self._stop = threading.Event()
        self._stored = clock()
        self._state = SnapshotState(snapshots.remote.where)
        self._thread = threading.Thread(target=self._work, name="mdqa-snapshots", daemon=True)

    @property
    def state(self) -> SnapshotState:
        """How it is doing now."""
        waited = self._clock() - self._stored
        return replace(self._state, minutes_ago=waited / 60, late=waited > LATE * self._interval)

    def restore(self) -> None:
        """Bring the newest snapshot back if the database is absent or empty; before the database is opened."""
        try:
            found = self._snapshots.restore()
        except MdqaError as problem:
            log.error("earlier work could not be brought back, so no snapshots are taken: %s", problem)
            self._state = replace(self._state, problem=str(problem), lost=True)
            return
        except Exception:
            log.exception("earlier work could not be brought back, so no snapshots are taken")
            self._state = replace(self._state, problem="a fault of this program; see its log", lost=True)
            return
        if found.snapshot is None:
            return
        log.warning("the database was empty; brought back the snapshot %s", found.snapshot.name)
        if found.damaged:
            words = f"damaged, so an earlier one was brought back at the start: {', '.join(found.damaged)}"
            log.error("%s", words)
            self._state = replace(self._state, notice=words)

    def start(self) -> None:
        """Begin to take snapshots, unless what was there could not be brought back: that must not be pushed out."""
        if not self._state.lost:
            self._stored = self._clock()
            self._thread.start()

    def close(self) -> None:
        """Take a last snapshot and stop; call it when nothing is written any more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(AT_EXIT)
            if self._thread.is_alive():
                log.error("a snapshot is still being stored in %s; the last one is left out", self._state.where)
                return
            self._take()
        self._snapshots.close()

    def _work(self) -> None:
        wait = self._interval
        while not self._stop.wait(wait):
            wait = self._interval if self._take() else min(self._interval, AGAIN)

    def _take(self) -> bool:
        try:
            snapshot = self._snapshots.take()
        except MdqaError as problem:
            log.error("no snapshot could be stored: %s", problem)
            self._state = replace(self._state, problem=str(problem))
            return False
        except Exception:
            log.exception("no snapshot could be stored")
            self._state = replace(self._state, problem="a fault of this program; see its log")
            return False
        if snapshot is not None:
            log.info("stored the snapshot %s", snapshot.name)
        self._stored = self._clock()
        strangers = self._snapshots.strangers
        problem = SHARED.format(strangers[-1]) if strangers else ""
        if problem and problem != self._state.problem:
            log.error("%s", problem)
        self._state = replace(self._state, problem=problem)
        return True


def snapshotter(settings: Settings) -> Snapshotter | None:
    """The one that the settings ask for; ConfigError where they name a place that cannot be one."""
    remote = remote_of(settings.snapshots)
    if remote is None:
        return None
    return Snapshotter(Snapshots(settings.database, remote), settings.snapshot_minutes * 60.0)
