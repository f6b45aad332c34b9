"""What people left on a run, in words, and its deletion together with the run."""

from __future__ import annotations

from collections.abc import Mapping

from sqlite_utils import Database

LEFT: Mapping[str, tuple[str, str]] = {
    "annotations": ("label", "labels"),
    "queue_items": ("place in a queue", "places in queues"),
}
"""Tables with a column ``run`` whose rows people made, with words for one and for several rows."""

KEPT: Mapping[str, tuple[str, str]] = {"labels": ("entry in the log of labels", "entries in the log of labels")}
"""The same for what stays when the run goes: a log from which nothing is ever deleted. It lacks its run then."""


def left_on(db: Database, run: str) -> str:
    """What people left on this run; empty if nothing."""
    found = []
    for name, (one, many) in {**LEFT, **KEPT}.items():
        number = db.execute(f"select count(*) from {name} where run = ?", [run]).fetchone()[0]
        found += [f"{number} {one if number == 1 else many}"] if number else []
    return " and ".join(found)


def drop_left(db: Database, run: str) -> None:
    """Delete it, but for :data:`KEPT`."""
    for name in LEFT:
        db.execute(f"delete from {name} where run = ?", [run])
