"""The token with which a person stops long work: set from any thread, asked between steps and between tokens."""

from __future__ import annotations

import threading
from typing import Protocol

from mdqa.errors import Cancelled


class Flag(Protocol):
    """What a stop is written on: a ``threading.Event``, or something that another process sees."""

    def set(self) -> None:
        """Put it up."""
        ...

    def is_set(self) -> bool:
        """Whether it is up."""
        ...


class CancelToken:
    """A stop flag shared by the one who may stop the work and the one who does it."""

    def __init__(self, flag: Flag | None = None) -> None:
        self._event = flag or threading.Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise :class:`~mdqa.errors.Cancelled` if a stop was asked for."""
        if self._event.is_set():
            raise Cancelled
