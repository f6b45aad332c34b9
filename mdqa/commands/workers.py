"""Where the runs of an evaluation are carried out: in this process, in several, or on a Ray cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

from mdqa.cancellation import CancelToken
from mdqa.commands.options import make_tools, positive, served, steps_said
from mdqa.evaluation.plan import Task
from mdqa.evaluation.processes import in_processes
from mdqa.evaluation.ray_cluster import on_ray
from mdqa.evaluation.work import Done, Identity, Line, Setup, Worker, in_this_process, lost_line
from mdqa.settings import Settings


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say who does the work."""
    group = parser.add_argument_group("workers")
    group.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes with a model each (default: this one)"
    )
    group.add_argument(
        "--threads",
        type=positive,
        metavar="N",
        help="processor threads per worker (default: the processors shared among the workers). Another number rounds "
        "otherwise in the last digits; with the same number, results do not depend on --workers",
    )
    group.add_argument(
        "--engine",
        default="local",
        choices=("local", "ray"),
        help="where the workers run: on this machine or on a Ray cluster (with --device cuda a GPU each)",
    )
    group.add_argument(
        "--ray-address", default="", metavar="ADDRESS", help="the cluster (default: RAY_ADDRESS, or a new one)"
    )


def run_tasks(
    args: argparse.Namespace, setup: Setup, missing: list[Task], cancel: CancelToken
) -> Generator[Done, None, None]:
    """The generator that does these tasks where the person wants them done."""
    make: Callable[[int], Worker] = partial(open_worker, setup)
    lost = partial(_lost, setup)
    if args.engine == "ray":
        resources = {"num_gpus": 1.0} if setup.devices[0].startswith("cuda") else {}
        return on_ray(
            missing, make, cancel, workers=args.workers, lost=lost, address=args.ray_address, resources=resources
        )
    if args.workers > 1:
        return in_processes(missing, make, cancel, workers=args.workers, lost=lost)
    return in_this_process(missing, make, cancel)


def _lost(setup: Setup, task: Task, identity: Identity, reason: str) -> Line:
    return lost_line(task, setup, identity, reason)


def threads(args: argparse.Namespace) -> int:
    """Threads per worker: ``--threads``, or so many that several workers share the processors; 0 is no limit.

    Workers that together start more threads than there are processors were ten times slower. Ray limits its actors.
    """
    if args.threads:
        return int(args.threads)
    if args.workers == 1 or args.engine == "ray":
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // args.workers)


def open_worker(setup: Setup, number: int) -> Worker:
    """Load the model of an evaluation, in this process or another one."""
    from mdqa.backends.embedded import silent  # noqa: PLC0415 (seconds that --help need not wait for)
    from mdqa.backends.loading import SCRIPTED, load_backend  # noqa: PLC0415 (likewise)

    if setup.threads and setup.model != SCRIPTED:
        import torch  # noqa: PLC0415 (seconds that other commands need not wait for)

        torch.set_num_threads(setup.threads)
    backend = load_backend(
        setup.model,
        backend=setup.backend,
        device=setup.devices[number % len(setup.devices)],
        dtype=setup.dtype,
        cache=setup.cache,
        progress=steps_said() if number == 0 else silent,  # the others would say the same
        **served(Settings.from_environment()),  # keys stay out of what is sent to other processes
    )
    common = make_tools(backend)
    return Worker(setup, backend, {entry.label: replace(common, profile=entry.profile) for entry in setup.entries})
