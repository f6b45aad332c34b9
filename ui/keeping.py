"""Writing runs down at their beginning, and those that never begin."""

from __future__ import annotations

from mdqa.records import RunError, RunResult, RunStatus
from storage.store import Store
from ui.faceting import facets_now
from ui.following import Order, unbegun
from ui.logs import log, working_on


def keep_waiting(store: Store, order: Order) -> None:
    """Store a run that waits in line: its address is given out, and a kill must not lose it."""
    store.runs.settle()
    store.runs.begin(unbegun(order))
    with working_on(run=order.run_id):
        log.info("waits in line: %s", order.method)


def keep_begun(store: Store, order: Order, header: RunResult) -> None:
    """Store a run before its work; one of a study is never there without its place in it, even after a kill."""
    with store.write():
        store.runs.begin(header)
        if order.study:
            store.studies.add(order.study, order.run_id, order.key, {"words": order.words})
    if header.backend:
        with working_on(run=order.run_id):
            log.info("begins%s", f" for the study {order.study[:8]}" if order.study else "")


def keep_unbegun(store: Store, order: Order, status: RunStatus, error: RunError | None = None) -> None:
    """Store a run that did no work, because its address has been given out."""
    result = unbegun(order)
    with store.write():
        keep_begun(store, order, result)
        ended = result.model_copy(update={"status": status, "error": error})
        store.runs.finish(ended, facets=facets_now(ended))
