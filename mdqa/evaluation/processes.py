"""Several processes on this machine, each with its own model. This process hands out tasks and gets lines back.

A worker that dies (out of memory, killed) is replaced, and its task goes to whoever is free next. If this process
dies, its workers see the end of their connection and leave.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Literal

from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError, ConfigError, InputError, MdqaError, MissingDependency, ModelError, ProfileError
from mdqa.evaluation.plan import Task
from mdqa.evaluation.schedule import ATTEMPTS, Schedule
from mdqa.evaluation.work import Done, Identity, Line, OpenWorker

PATIENCE = 0.2
"""Seconds between two looks at whether the person wants to stop."""

ARGUMENTS = (ConfigError, InputError, ProfileError, CapabilityError, MissingDependency)
"""Errors of arguments, which a worker meets where this process would have met them."""

Lost = Callable[[Task, Identity, str], Line]
"""Makes the line of a task that is given up, from the model's identity and the reason."""


@dataclass(frozen=True)
class Refusal:
    """Why a worker could not begin, in words that can be sent (exceptions with arguments of their own cannot)."""

    kind: Literal["arguments", "model"]
    message: str

    @classmethod
    def of(cls, problem: MdqaError) -> Refusal:
        """The refusal behind an error."""
        return cls("arguments" if isinstance(problem, ARGUMENTS) else "model", str(problem))

    def error(self) -> MdqaError:
        """The error to raise in the process that asked."""
        return ConfigError(self.message) if self.kind == "arguments" else ModelError(self.message)


@dataclass
class _Member:
    """A worker process as this process sees it; ``task`` is what it works on, ``ready`` whether its model is loaded."""

    process: BaseProcess
    connection: Connection
    ready: bool = False
    task: Task | None = None


def in_processes(
    tasks: Sequence[Task], open_worker: OpenWorker, cancel: CancelToken, *, workers: int, lost: Lost
) -> Generator[Done, None, None]:
    """The tasks spread over ``workers`` processes, in the order in which they end, until the token is set.

    ModelError if no worker can load the model, and the error of the first that refuses its arguments.
    """
    team = _Team(open_worker, Schedule(tasks), lost, size=min(workers, len(tasks)))
    try:
        team.fill()
        while not team.schedule.finished and not cancel.cancelled:
            team.hand_out()
            yield from team.collect()
    finally:
        team.dismiss()


class _Team:
    """The processes and what they do."""

    def __init__(self, open_worker: OpenWorker, schedule: Schedule, lost: Lost, *, size: int) -> None:
        self.schedule = schedule
        self._open_worker, self._lost, self._size = open_worker, lost, size
        self._context = multiprocessing.get_context("spawn")  # threads and CUDA do not survive a fork
        self._members: dict[int, _Member] = {}  # by worker number
        self._identity = Identity("", "")
        self._failed_starts = 0

    def fill(self) -> None:
        """Start the workers that are missing."""
        for number in range(self._size):
            if number not in self._members:
                ours, theirs = self._context.Pipe()
                process = self._context.Process(target=_serve, args=(self._open_worker, number, theirs), daemon=True)
                process.start()
                theirs.close()  # so that the connection ends with the process
                self._members[number] = _Member(process, ours)

    def hand_out(self) -> None:
        """Give every idle worker a task."""
        for member in self._members.values():
            if member.ready and member.task is None and (task := self.schedule.take()):
                member.task = task
                try:
                    member.connection.send(task)
                except OSError:  # it died; its connection says so in a moment
                    return

    def collect(self) -> Iterator[Done]:
        """Lines that are there, after waiting for a moment; workers that died are replaced."""
        by_connection = {member.connection: number for number, member in self._members.items()}
        for connection in wait(list(by_connection), PATIENCE):
            assert isinstance(connection, Connection)
            number = by_connection[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                yield from self._bury(number)
                continue
            yield from self._take(self._members[number], message)

    def dismiss(self) -> None:
        """End all workers: those that have nothing to do end by themselves when their connection does."""
        for member in self._members.values():
            member.connection.close()
            if member.task is not None or not member.ready:
                member.process.terminate()
        for member in self._members.values():
            member.process.join(5)
            if member.process.is_alive():
                member.process.kill()
                member.process.join()

    def _take(self, member: _Member, message: Line | Identity | Refusal) -> Iterator[Done]:
        if isinstance(message, Refusal):
            raise message.error()
        if isinstance(message, Identity):
            member.ready, self._identity, self._failed_starts = True, message, 0
            return
        assert member.task is not None
        task, member.task = member.task, None
        self.schedule.done(task)
        yield task, message

    def _bury(self, number: int) -> Iterator[Done]:
        member = self._members.pop(number)
        member.connection.close()
        member.process.join()
        status = f"exit status {member.process.exitcode}"
        if not member.ready:
            self._failed_starts += 1
            if self._failed_starts >= ATTEMPTS:
                raise ModelError(
                    f"a worker process ended while it loaded the model ({status}), {ATTEMPTS} times in a row; "
                    "memory may be short: try fewer --workers"
                )
        if member.task is not None:
            print(f"worker {number} died ({status}); its question is taken up again", file=sys.stderr)
            if not self.schedule.lost(member.task):
                reason = f"the worker process died on this question {ATTEMPTS} times ({status}); memory may be short"
                yield member.task, self._lost(member.task, self._identity, reason)
        if self.schedule.waiting:
            self.fill()


def _serve(open_worker: OpenWorker, number: int, connection: Connection) -> None:
    """A worker process: says who it is, then answers every task with its line until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the first one decides
    try:
        worker = open_worker(number)
    except MdqaError as problem:
        connection.send(Refusal.of(problem))
        return
    try:
        connection.send(worker.identity)
        while True:
            connection.send(worker.line(connection.recv()))
    except (EOFError, OSError):  # nobody is there any more
        pass
    finally:
        worker.close()
