"""Writing runs down at their beginning, and those that never begin."""

from __future__ import annotations

from mdqa.records import RunError, RunResult, RunStatus
from storage.store import Store
from ui.faceting import facets_now
from ui.following import Order, unbegun


def keep_waiting(store: Store, order: Order) -> None:
    """Store a run that waits in line: its address is given out, and a kill must not lose it."""
    store.runs.begin(unbegun(order))


def keep_begun(store: Store, order: Order, header: RunResult) -> None:
    """Store a run before its work; one of a study is never there without its place in it, even after a kill."""
    with store.write():
        store.runs.begin(header)
        if order.study:
            store.studies.add(order.study, order.run_id, order.key, {"words": order.words})


def keep_unbegun(store: Store, order: Order, status: RunStatus, error: RunError | None = None) -> None:
    """Store a run that did no work, because its address has been given out."""
    result = unbegun(order)
    with store.write():
        keep_begun(store, order, result)
        ended = result.model_copy(update={"status": status, "error": error})
        store.runs.finish(ended, facets=facets_now(ended))
