"""Which task is next, and what becomes of those whose worker died: bookkeeping without processes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from mdqa.evaluation.plan import Task, TaskKey

ATTEMPTS = 3
"""So often a task is given to a worker; if all of them died on it, it has failed."""


class Schedule:
    """Tasks that wait and tasks that are being worked on."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._waiting = deque(tasks)
        self._running: set[TaskKey] = set()
        self._deaths: Counter[TaskKey] = Counter()

    @property
    def waiting(self) -> int:
        """How many tasks nobody works on."""
        return len(self._waiting)

    @property
    def finished(self) -> bool:
        """Whether every task is done or given up."""
        return not self._waiting and not self._running

    def take(self) -> Task | None:
        """The next task, which then is being worked on; None if nothing waits (what runs may still come back)."""
        if not self._waiting:
            return None
        task = self._waiting.popleft()
        self._running.add(task.key)
        return task

    def done(self, task: Task) -> None:
        """The task's line is there."""
        self._running.remove(task.key)

    def lost(self, task: Task) -> bool:
        """The task's worker died. Whether it waits again, before all others; else it is given up."""
        self._running.remove(task.key)
        self._deaths[task.key] += 1
        if self._deaths[task.key] >= ATTEMPTS:
            return False
        self._waiting.appendleft(task)
        return True
