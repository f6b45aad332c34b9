"""What runs are found by: worked out when they end, when somebody judges them, and for older runs in the background."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from mdqa.diagnosis.facets import VERSION, Facets, facets_of
from mdqa.errors import MdqaError
from mdqa.records import RunResult
from mdqa.trace import ModelCall
from storage.runs import UnknownRun
from storage.store import Store
from ui.logs import log

STEP = 25
"""Older runs that are looked for at once."""

PAUSE = 0.02
"""Seconds between two older runs, so that a page or a model that works beside it hardly notices."""


def facets_now(result: RunResult, calls: Sequence[ModelCall] = (), *, accepted: bool | None = None) -> Facets:
    """The facets of a run; empty ones where working them out fails, because no run may be lost over that."""
    try:
        return facets_of(result, calls, accepted=accepted)
    except Exception:
        log.exception("the facets of run %s cannot be worked out", result.id)
        return Facets()


def refresh(store: Store, run_id: str) -> None:
    """Work a stored run's facets out again, from all that is known of it now; UnknownRun if it is gone."""
    try:
        calls = [event for event in store.runs.events(run_id) if isinstance(event, ModelCall)]
        found = facets_now(store.runs.get(run_id), calls, accepted=accepted(store, run_id))
    except UnknownRun:
        raise
    except MdqaError as problem:  # it cannot be read by this version; that will not change by trying again
        log.warning("%s", problem)
        found = Facets()
    store.runs.set_facets(run_id, found)


def accepted(store: Store, run_id: str) -> bool | None:
    """Whether most people find the run's answer right; None without verdicts and where they are split."""
    votes = [bool(label.value) for label in store.annotations.latest(run_id)]
    return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)


def fill_in(store: Store, stop: threading.Event | None = None) -> int:
    """Work out the facets of runs that have none of this version, a page at a time; how many there were.

    Every run is kept on its own, so that a stop or a kill loses nothing; the next call goes on from there.
    """
    halt = stop or threading.Event()
    done = 0
    while not halt.is_set() and (page := store.runs.unfaceted(VERSION, STEP)):
        for run_id in page:
            try:
                refresh(store, run_id)
            except UnknownRun:  # deleted meanwhile
                continue
            done += 1
            if halt.wait(PAUSE if stop else 0):
                break
    return done


class OlderRuns:
    """Fills in older runs in a thread of its own, from :meth:`start` until there are none left or :meth:`stop`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mdqa-older-runs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """End after the run that is being looked at."""
        self._halt.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _work(self) -> None:
        try:
            if done := fill_in(self._store, self._halt):
                log.info("the facets of %d older runs were worked out", done)
        except Exception as problem:  # the list still shows the runs, without these facets
            log.warning("older runs are not filled in: %s", problem)
