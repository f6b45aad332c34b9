"""The tasks of an evaluation over a Ray cluster: an actor per worker, each with its own model.

Ray restarts an actor that died, on another machine if need be, and gives it its task again; a task on which it dies
every time has failed. Only this process writes results.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mdqa.cancellation import CancelToken
from mdqa.errors import MdqaError, MissingDependency, ModelError
from mdqa.evaluation.plan import Task
from mdqa.evaluation.processes import PATIENCE, Lost, Refusal
from mdqa.evaluation.schedule import ATTEMPTS, Schedule
from mdqa.evaluation.work import Done, Identity, Line, OpenWorker, Worker


class Actor:
    """The part that Ray runs: loads its model when it is first asked for something, also after a restart."""

    def __init__(self, open_worker: OpenWorker, number: int) -> None:
        self._open_worker, self._number = open_worker, number
        self._worker: Worker | None = None

    def begin(self) -> Identity | Refusal:
        """Load the model; how it is called, or why it could not be."""
        try:
            return self._opened().identity
        except MdqaError as problem:
            return Refusal.of(problem)

    def line(self, task: Task) -> Line | None:
        """The result line of a task."""
        return self._opened().line(task)

    def _opened(self) -> Worker:
        if self._worker is None:
            self._worker = self._open_worker(self._number)
        return self._worker


def on_ray(
    tasks: Sequence[Task],
    open_worker: OpenWorker,
    cancel: CancelToken,
    *,
    workers: int,
    lost: Lost,
    address: str = "",
    resources: dict[str, float] | None = None,
) -> Generator[Done, None, None]:
    """The tasks spread over ``workers`` actors, in the order in which they end, until the token is set.

    ``address``: of a running cluster; without one, that of ``RAY_ADDRESS`` or a cluster on this machine that ends with
    the work. ``resources``: what an actor takes, as Ray's options (``num_cpus``, ``num_gpus``).
    """
    try:
        ray = import_module("ray")
    except ModuleNotFoundError:
        raise MissingDependency("--engine ray", "ray") from None
    mine = not ray.is_initialized()
    if mine:
        package = str(Path(__file__).parents[1])  # machines of a cluster need not have this program
        options: dict[str, Any] = {"runtime_env": {"py_modules": [package]}, "log_to_driver": False}
        options |= {"logging_level": "WARNING", "include_dashboard": False}
        if address:
            options |= {"address": address}
            del options["include_dashboard"]  # the cluster's own affair
        ray.init(**options)
    pool = _Pool(ray, open_worker, Schedule(tasks), lost)
    try:
        pool.start(min(workers, len(tasks)), resources or {})
        while not pool.schedule.finished and not cancel.cancelled:
            pool.hand_out()
            yield from pool.collect()
    finally:
        pool.dismiss()
        if mine:
            ray.shutdown()


class _Pool:
    """The actors and what they do."""

    def __init__(self, ray: Any, open_worker: OpenWorker, schedule: Schedule, lost: Lost) -> None:
        self.schedule = schedule
        self._ray, self._open_worker, self._lost = ray, open_worker, lost
        self._actors: dict[int, Any] = {}
        self._running: dict[Any, tuple[int, Task]] = {}  # by the reference of the line to come
        self._identity = Identity("", "")

    def start(self, size: int, resources: dict[str, float]) -> None:
        """Start all actors and wait until their models are loaded; the error of one that cannot."""
        remote = self._ray.remote(max_restarts=-1, max_task_retries=ATTEMPTS - 1, **resources)(Actor)
        self._actors = {number: remote.remote(self._open_worker, number) for number in range(size)}
        try:
            answers = self._ray.get([actor.begin.remote() for actor in self._actors.values()])
        except self._ray.exceptions.RayError as problem:
            raise ModelError(f"a Ray actor could not load the model: {problem}") from None
        for answer in answers:
            if isinstance(answer, Refusal):
                raise answer.error()
            self._identity = answer

    def hand_out(self) -> None:
        """Give every idle actor a task."""
        busy = {number for number, _ in self._running.values()}
        for number, actor in self._actors.items():
            if number not in busy and (task := self.schedule.take()):
                self._running[actor.line.remote(task)] = (number, task)

    def collect(self) -> Iterator[Done]:
        """Lines that are there, after waiting for a moment."""
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE)
        for reference in ready:
            _, task = self._running.pop(reference)
            try:
                line = self._ray.get(reference)
            except self._ray.exceptions.RayActorError as problem:
                line = self._lost(task, self._identity, f"the Ray actor died on this question every time: {problem}")
            self.schedule.done(task)
            yield task, line

    def dismiss(self) -> None:
        """End all actors."""
        for actor in self._actors.values():
            self._ray.kill(actor)
