"""The program's log: time first, then level, part, and the request and run that a line belongs to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger("mdqa.ui")

_request: ContextVar[str] = ContextVar("request", default="-")
_run: ContextVar[str] = ContextVar("run", default="-")

FORMAT = "%(asctime)s %(levelname)s %(name)s request=%(request)s run=%(run)s: %(message)s"
"""Ids are short: the first eight digits of a run's address, or of what the browser's event is called."""


class Whereabouts(logging.Filter):
    """Gives every line the ids of :func:`working_on`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the line pass, with ``request`` and ``run`` set."""
        record.request, record.run = _request.get(), _run.get()
        return True


@contextmanager
def working_on(*, request: str = "", run: str = "") -> Iterator[None]:
    """Lines of this block, in this thread and the tasks and threads it waits for, belong to this request or run."""
    before = _request.get(), _run.get()
    _request.set(request[:8] or before[0])
    _run.set(run[:8] or before[1])
    try:
        yield
    finally:
        _request.set(before[0])
        _run.set(before[1])


def start_log(level: str = "INFO") -> None:
    """Messages of ours from this level on, and warnings of libraries, on standard error."""
    handler = logging.StreamHandler()
    handler.addFilter(Whereabouts())
    handler.setFormatter(logging.Formatter(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("mdqa").setLevel(level)
