"""How a queue is to be worked through: guidelines, people per item, order, labels, practice items. In versions.

Nothing is overwritten: a change is a further version, every label names the version that its annotator saw, and what
holds is the latest one. A queue that nobody set up has version 0, the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from sqlite_utils import Database

from mdqa.errors import StorageError
from storage.encoding import clean_text, now, to_json
from storage.queues import person_name, require_queue

if TYPE_CHECKING:
    from storage.store import Store

Label = Literal["first", "second", "both", "neither", "cannot_tell"]
LABELS: tuple[Label, ...] = get_args(Label)
"""What can be said of an item's two candidates, which stand in canonical order (see ``mdqa/candidates.py``).

Where there is one candidate only, ``first`` says that it is right and ``neither`` that it is not.
"""

ItemOrder = Literal["contested", "as_sent", "random"]
"""Which item somebody gets next (see :meth:`storage.assignments.AssignmentStore.next_item`)."""

MAX_OVERLAP = 20
"""People per item."""

MAX_GUIDELINES = 20_000
"""Characters of the guidelines."""

MAX_FEEDBACK = 2_000
"""Characters of the feedback to a practice item."""

MAX_PRACTICE = 50
"""Practice items of a queue."""


@dataclass(frozen=True)
class PracticeItem:
    """A run that everybody decides first, with the right label and what is said about it afterwards."""

    run: str
    label: str
    feedback: str = ""


@dataclass(frozen=True)
class QueueSettings:
    """A version of a queue's settings. ``overlap``: how many people decide each item. ``created`` is UTC.

    ``labels``: those that may be given. ``guidelines`` are Markdown. Version 0 was made by nobody.
    """

    version: int = 0
    guidelines: str = ""
    overlap: int = 2
    order: ItemOrder = "contested"
    labels: tuple[str, ...] = LABELS
    practice_items: tuple[PracticeItem, ...] = ()
    made_by: str = ""
    created: str = ""

    def practice(self, run: str) -> PracticeItem | None:
        """The practice item that a run is; None if it is none."""
        return next((item for item in self.practice_items if item.run == run), None)


class QueueSettingsStore:
    """The settings of the queues of a :class:`~storage.store.Store`; UnknownQueue where there is no such queue."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, queue: str, version: int | None = None) -> QueueSettings:
        """The settings that hold, or those of a version.

        Raises:
            StorageError: there is no such version.
        """
        with self._store.read() as db:
            return settings_of(db, require_queue(db, queue), version)

    def versions(self, queue: str) -> list[QueueSettings]:
        """All versions, the first one first; empty where nobody set the queue up."""
        with self._store.read() as db:
            return _read(db, "queue = ? order by version", [require_queue(db, queue)])

    def change(
        self,
        queue: str,
        who: str,
        *,
        guidelines: str | None = None,
        overlap: int | None = None,
        order: ItemOrder | None = None,
        labels: Iterable[str] | None = None,
        practice_items: Iterable[PracticeItem] | None = None,
    ) -> QueueSettings:
        """Write a further version with what is given changed; the latest one where nothing changes.

        Raises:
            StorageError: a value is out of its limits, or a practice item is no run of the queue.
        """
        person = person_name(who)
        with self._store.write() as db:
            number = require_queue(db, queue)
            old = settings_of(db, number)
            new = QueueSettings(
                version=old.version,
                guidelines=old.guidelines if guidelines is None else clean_text(guidelines).strip(),
                overlap=old.overlap if overlap is None else overlap,
                order=old.order if order is None else order,
                labels=old.labels if labels is None else tuple(labels),
                practice_items=old.practice_items if practice_items is None else tuple(practice_items),
                made_by=old.made_by,
                created=old.created,
            )
            if new == old and old.version:
                return old
            _check(db, number, new)
            db.execute(
                "insert into queue_settings (queue, version, guidelines, overlap, item_order, labels, practice_items, "
                "made_by, created) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(number, old.version + 1, new.guidelines, new.overlap, new.order),
                    to_json(new.labels, "labels"),
                    to_json([asdict(item) for item in new.practice_items], "practice items"),
                    *(person, now()),
                ],
            )
            return settings_of(db, number)


def settings_of(db: Database, queue: int, version: int | None = None) -> QueueSettings:
    """The settings of a queue by its row, inside a transaction: the latest, or a version."""
    where, values = ("queue = ? and version = ?", [queue, version]) if version else ("queue = ?", [queue])
    if version == 0:
        return QueueSettings()
    found = _read(db, f"{where} order by version desc limit 1", values)
    if not found and version:
        raise StorageError(f"the queue has no settings of version {version}")
    return found[0] if found else QueueSettings()


def _read(db: Database, where: str, values: list[int]) -> list[QueueSettings]:
    rows = db.query(
        "select version, guidelines, overlap, item_order as 'order', labels, practice_items, made_by, created "
        f"from queue_settings where {where}",
        values,
    )
    return [
        QueueSettings(
            **row
            | {
                "labels": tuple(json.loads(row["labels"])),
                "practice_items": tuple(PracticeItem(**item) for item in json.loads(row["practice_items"])),
            }
        )
        for row in rows
    ]


def _check(db: Database, queue: int, settings: QueueSettings) -> None:
    """StorageError names the setting that cannot be kept."""
    if not 1 <= settings.overlap <= MAX_OVERLAP:
        raise StorageError(f"{settings.overlap} people per item is not between 1 and {MAX_OVERLAP}")
    if settings.order not in get_args(ItemOrder):
        raise StorageError(f"there is no order {settings.order!r}; there is: {', '.join(get_args(ItemOrder))}")
    if len(settings.guidelines) > MAX_GUIDELINES:
        raise StorageError(
            f"the guidelines have {len(settings.guidelines):,} characters; they may have {MAX_GUIDELINES:,}"
        )
    if unknown := sorted(set(settings.labels) - set(LABELS)):
        raise StorageError(f"there is no label {unknown[0]!r}; there is: {', '.join(LABELS)}")
    if len(settings.labels) < 2 or len(set(settings.labels)) < len(settings.labels):
        raise StorageError("choose two different labels or more")
    if ("first" in settings.labels) != ("second" in settings.labels):
        raise StorageError("first and second go together: one alone would say whose answer is which")
    if len(settings.practice_items) > MAX_PRACTICE:
        raise StorageError(f"{len(settings.practice_items)} practice items are more than {MAX_PRACTICE}")
    seen = set()
    for item in settings.practice_items:
        if item.label not in settings.labels:
            raise StorageError(f"the right label of a practice item is {item.label!r}, which the queue does not offer")
        if len(item.feedback) > MAX_FEEDBACK:
            raise StorageError(f"the feedback has {len(item.feedback):,} characters; it may have {MAX_FEEDBACK:,}")
        if item.run in seen:
            raise StorageError(f"run {item.run!r} is a practice item twice")
        seen.add(item.run)
        if not db.execute("select 1 from queue_items where queue = ? and run = ?", [queue, item.run]).fetchone():
            raise StorageError(f"the practice item {item.run!r} is not in the queue; send the run to it first")
