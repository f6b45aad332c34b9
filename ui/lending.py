"""A GPU that a Hugging Face Space borrows for one run at a time (ZeroGPU).

This process never touches that GPU. What the package ``spaces`` wraps is carried out in a process forked off this one,
which is given a GPU for some seconds; it has the loaded model in its memory from the fork on, brings it to the GPU, and
stays for the next run if nobody else needs the GPU. Only what a run begins with, its events and its outcome pass
between the two: records that can be pickled, no tensors. A stop is a byte of memory that both share: a killed process
cannot leave it locked.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import replace
from importlib import import_module
from itertools import count
from multiprocessing import active_children, get_context
from typing import Any, Protocol

from mdqa.backends.base import Movable
from mdqa.cancellation import CancelToken
from mdqa.errors import LoanError, MdqaError, MissingDependency
from mdqa.methods.base import Tools
from mdqa.records import Profile, RunResult
from mdqa.run import Collector, Outcome, broken_off, run_one
from mdqa.settings import Settings
from mdqa.trace import BaseEvent, RunFinished
from storage.runs import RunFilter
from storage.store import Store
from ui.logs import log

FIRST_SECONDS = 60
"""For how long a GPU is asked where no run of this method and model is known; and for each document ..."""
SECONDS_PER_DOCUMENT = 3

SHORTEST = 15
"""Seconds below which nobody is let in earlier for asking less; the model must come to the GPU, too."""

FLAGS = 1024
"""Stops that are kept apart; the number of a run is used again when so many later ones were begun."""

LOOKED_AT = 0.1
"""Seconds between two looks at whether a stop was asked for."""


Sent = BaseEvent | Outcome | LoanError
"""What comes out of the process that has the GPU."""

Borrow = Callable[[RunResult, Profile | None, int, int], Iterator[Sent]]
"""A run's beginning, its profile, the place of its stop, and for how many seconds a GPU is asked for."""


class CarryOut(Protocol):
    """Carries out a run, here or elsewhere: :func:`mdqa.run.run_one`, or a :class:`LentGPU`."""

    def __call__(
        self, header: RunResult, tools: Tools, *, sink: Callable[[BaseEvent], None], cancel: CancelToken
    ) -> Outcome:
        """See :func:`mdqa.run.run_one`."""
        ...


class SharedFlag:
    """A stop that a forked process sees: one byte of shared memory."""

    def __init__(self, flags: Any, place: int) -> None:
        self._flags, self._place = flags, place

    def set(self) -> None:
        """Put it up."""
        self._flags[self._place] = 1

    def clear(self) -> None:
        """Take it down."""
        self._flags[self._place] = 0

    def is_set(self) -> bool:
        """Whether it is up."""
        return bool(self._flags[self._place])


class LentGPU:
    """Carries out runs on a borrowed GPU, for one thread at a time.

    Made before the page is launched: a Space that lends none by then is refused by its host. ``seconds``: for how
    long the GPU is asked for, by the run's beginning; ``device``: what the model is brought to there.
    """

    def __init__(self, seconds: Callable[[RunResult], int], *, device: str = "cuda") -> None:
        self._seconds, self._device = seconds, device
        self._flags = get_context("fork").RawArray("b", FLAGS)
        self._processes = get_context("fork").RawArray("i", FLAGS)  # in which the runs were carried out
        self._numbers = count()
        self._tools: Tools | None = None
        self._borrow = self._wrapped()

    def __call__(
        self, header: RunResult, tools: Tools, *, sink: Callable[[BaseEvent], None], cancel: CancelToken
    ) -> Outcome:
        """Carry out the run; one whose model lies elsewhere (a server's) without a GPU of ours."""
        if not isinstance(tools.backend, Movable):
            return run_one(header, tools, sink=sink, cancel=cancel)
        if self._tools is not None and self._tools.backend is not tools.backend:
            self._end_processes()  # those that were forked before have the other model
            self._borrow = self._wrapped()
        self._tools = tools
        place = next(self._numbers) % FLAGS
        flag = SharedFlag(self._flags, place)
        flag.clear()
        collector = Collector()

        outcome: Outcome | None = None
        end: RunFinished | None = None
        problem: MdqaError = _lost("it ended without a result")
        try:
            for sent in self._sent(header, tools.profile, place, flag, cancel):
                if isinstance(sent, Outcome):
                    outcome = sent
                elif isinstance(sent, RunFinished):
                    end = sent  # told when the outcome has come, without which it is not true
                else:
                    collector.take(sent)
                    sink(sent)
        except MdqaError as error:  # the host's, or the sink's (a full disk), by which a run fails here as well
            problem = error
        finally:
            flag.set()  # nobody listens to it any more
        if outcome is not None and end is not None:
            sink(end)
            return outcome
        stopped = cancel.cancelled and isinstance(problem, LoanError)
        return broken_off(header, collector, None if stopped else problem, sink)

    def _end_processes(self) -> None:
        """End the processes of this program that borrowed before: they would keep their model's memory for good."""
        ours = set(self._processes)
        for child in active_children():
            if child.pid in ours:
                child.terminate()

    def _sent(
        self, header: RunResult, profile: Profile | None, place: int, flag: SharedFlag, cancel: CancelToken
    ) -> Iterator[BaseEvent | Outcome]:
        """What the other process sends; nothing after a stop that came before it began. LoanError if it breaks off.

        The waiting is done in a thread: the host may let one wait for a GPU for a minute, and a stop must not.
        """
        arriving: queue.SimpleQueue[Sent | None] = queue.SimpleQueue()

        def receive(seconds: int) -> None:
            try:
                for sent in self._borrow(header, profile, place, seconds):
                    arriving.put(sent)
            except Exception as problem:  # what goes wrong at the host comes in many kinds
                arriving.put(_explained(problem))
            finally:
                arriving.put(None)

        # In this context: the host asks it whose quota the seconds are taken from.
        context = copy_context()
        threading.Thread(
            target=context.run, args=(receive, self._seconds(header)), name="mdqa-borrowed", daemon=True
        ).start()
        begun = False
        while True:
            if cancel.cancelled:
                flag.set()
                if not begun:
                    return
            try:
                sent = arriving.get(timeout=LOOKED_AT)
            except queue.Empty:
                continue
            if sent is None:
                return
            if isinstance(sent, LoanError):
                raise sent
            begun = True
            yield sent

    def _wrapped(self) -> Borrow:
        """A new function that borrows a GPU. Each has processes of its own."""
        try:
            spaces = import_module("spaces")
        except ImportError:
            raise MissingDependency("a GPU that the Space borrows", "spaces") from None

        def borrow(header: RunResult, profile: Profile | None, place: int, seconds: int) -> Iterator[Sent]:
            yield from self._work(header, profile, place)

        wrapped: Borrow = spaces.GPU(duration=lambda header, profile, place, seconds: seconds)(borrow)
        return wrapped

    def _work(self, header: RunResult, profile: Profile | None, place: int) -> Iterator[Sent]:
        """In the other process: the run's events and its outcome, as they come."""
        assert self._tools is not None
        self._processes[place] = os.getpid()
        tools = replace(self._tools, profile=profile)
        ready: queue.SimpleQueue[Sent] = queue.SimpleQueue()

        def work() -> None:
            try:
                assert isinstance(tools.backend, Movable)
                tools.backend.move(self._device)
                token = CancelToken(SharedFlag(self._flags, place))
                ready.put(run_one(header, tools, sink=ready.put, cancel=token))
            except Exception as problem:
                ready.put(_explained(problem))

        threading.Thread(target=work, name="mdqa-run", daemon=True).start()
        sent: Sent | None = None
        while not isinstance(sent, Outcome | LoanError):
            sent = ready.get()
            yield sent


def lent_gpu(store: Store, settings: Settings) -> LentGPU:
    """The GPU that this Space borrows; MissingDependency without the package that a Space of this kind brings."""
    device = "cuda" if settings.device == "auto" else settings.device
    return LentGPU(lambda header: borrowed_seconds(store, header, settings.gpu_seconds), device=device)


def borrowed_seconds(store: Store, header: RunResult, longest: int) -> int:
    """For how long to ask for a GPU: half more than the slowest of the last runs of this method and model took.

    Where none is known, by the number of documents. The host takes what is asked for from the visitor's quota before
    it begins, and ends what takes longer.
    """
    alike = RunFilter(method=header.method, model=header.model, status="ok", studies=True)
    known = [row.seconds for row in store.runs.list(alike, limit=5)]
    guess = max(known) * 1.5 if known else FIRST_SECONDS + SECONDS_PER_DOCUMENT * len(header.question.documents)
    return max(min(round(guess), longest), min(SHORTEST, longest))


def _explained(problem: Exception) -> LoanError:
    """In words for people; our own errors and what the host says of a quota or a queue are meant for them."""
    said = str(problem) if isinstance(problem, MdqaError) else getattr(problem, "message", "")
    if not isinstance(said, str) or not said:
        log.error("a borrowed GPU failed", exc_info=problem)
        said = "the program's log says why"
    return _lost(said)


def _lost(said: str) -> LoanError:
    return LoanError(
        f"The GPU that this Space borrows for a run could not be had, or was taken back: {said.rstrip('.')}. What was "
        "done so far is kept; ask again later, with fewer documents, or with a method that calls the model less often."
    )
