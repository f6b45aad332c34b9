"""Measure what a method or a mechanism costs, side by side with doing without it, on this machine.

Prompts of the wanted lengths are made from the built-in examples, so nothing but a model is needed; --input takes
questions of your own instead. Every figure is one JSON line with its spread, its baseline and their ratio; the first
line describes the machine. Memory is the peak of everything in use, the model included (peak_memory), and the peak
above what was in use before (added_memory).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from mdqa.backends.base import Backend
from mdqa.cancellation import CancelToken
from mdqa.commands.database import opened, stored_profiles
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    check_output,
    choose_profile,
    json_line,
    make_tools,
    open_backend,
    parse_set,
    positive,
    questions_from,
)
from mdqa.commands.working import stop_by_signal
from mdqa.errors import Cancelled, ConfigError
from mdqa.performance.cases import Case, built_in_cases, prompt_tokens
from mdqa.performance.figures import Figure, table
from mdqa.performance.machine import facts
from mdqa.performance.measuring import Meter, Progress, meter_for
from mdqa.performance.plan import Plan
from mdqa.records import Profile, Question
from mdqa.registry import BENCHES, READERS, load
from mdqa.settings import Settings

LENGTHS = (1000, 2800, 8000)
OTHER_LENGTHS = MappingProxyType(
    {
        "madara": (1400,),  # ten documents; one call at a time takes long
        "duquad": (1400, 2800, 4200),  # 10, 20 and 30 documents
    }
)
WITHOUT_MODEL = ("annotate", "people")
"""What is measured without a model and without prompts."""

QUESTIONS = 5
"""Questions of --input that are used unless --limit says otherwise."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("name", choices=tuple(BENCHES), metavar="NAME", help=f"what to measure: {', '.join(BENCHES)}")
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON lines; - is standard output")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="rounds (per question of --input)")
    parser.add_argument("--profile", default="", metavar="NAME", help="calibration profile: a name or a JSON file")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn (default: 0)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the method, of annotate or of people",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    group = parser.add_argument_group("prompts")
    shown = "; ".join(
        [",".join(map(str, LENGTHS)), *(f"{name} {','.join(map(str, n))}" for name, n in OTHER_LENGTHS.items())]
    )
    group.add_argument("--lengths", type=_lengths, metavar="N,N,...", help=f"tokens of the prompts (default: {shown})")
    group.add_argument(
        "--input", type=Path, metavar="FILE", help="questions with their documents, instead of made ones"
    )
    group.add_argument("--format", default="auto", choices=("auto", *READERS), help="the file's format")
    group.add_argument(
        "--limit", type=positive, metavar="N", help=f"use N questions only (default: {QUESTIONS} of a file)"
    )
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, write the figures as they come and print them as a table; 1 if stopped."""
    settings = Settings.from_environment()
    if args.input is not None and args.lengths is not None:
        raise ConfigError("--lengths goes with made prompts only; leave it out, or leave out --input")
    if args.name in WITHOUT_MODEL:
        for name in ("model", "input", "lengths", "profile"):
            if getattr(args, name):
                raise ConfigError(f"--{name} has no meaning for {args.name}, which runs no model; leave it out")
        args.model = "scripted"
    if args.output != "-":
        check_output(Path(args.output), args.input)
    options = parse_set(args.set)
    bench = load(BENCHES, args.name, "benchmark")
    questions = None
    if args.input is not None:
        args.limit, args.split = args.limit or QUESTIONS, "all"
        questions = tuple(questions_from(args))
    backend = open_backend(args, settings)
    try:
        with stop_by_signal() as cancel, _progress_bar(args) as progress:
            plan = _plan(args, settings, backend, questions, cancel=cancel, progress=progress)
            plan = replace(plan, options=options)
            figures = bench(plan)  # says at once, before the output is opened, what is missing
            with _writing(args.output) as output:
                output.write(json_line(_machine_row(backend, plan.meter)))
                done = _write(args.name, figures, output)
    finally:
        backend.close()
    if done:
        print(table(done), file=sys.stderr)
    if cancel.cancelled:
        print("stopped; what was measured before is written", file=sys.stderr)
    return int(cancel.cancelled)


def _write(name: str, figures: Iterator[Figure], output: TextIO) -> list[Figure]:
    """Write every figure when it is known, until the end or a stop."""
    done: list[Figure] = []
    with suppress(Cancelled):
        for figure in figures:
            done.append(figure)
            output.write(json_line({"bench": name, **figure.to_row()}))
            output.flush()
    return done


@contextmanager
def _progress_bar(args: argparse.Namespace) -> Iterator[Progress]:
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    with tqdm(file=sys.stderr, disable=args.quiet, dynamic_ncols=True) as bar:

        def progress(done: int, total: int, text: str) -> None:
            if done == 0:
                bar.reset(total)
            bar.n = done
            bar.set_description(text, refresh=True)

        yield progress


def _plan(
    args: argparse.Namespace,
    settings: Settings,
    backend: Backend,
    questions: tuple[Question, ...] | None,
    cancel: CancelToken,
    progress: Progress,
) -> Plan:
    cases: list[Case] = []
    if questions is not None:
        cases = [Case(args.input.name, questions, args.repeats * len(questions))]
    elif args.name not in WITHOUT_MODEL:
        lengths = args.lengths or OTHER_LENGTHS.get(args.name, LENGTHS)
        cases = built_in_cases(lengths, partial(prompt_tokens, backend), args.repeats, args.limit)
    stored = stored_profiles(args.db or settings.database)

    def find(method: str) -> Profile | None:
        return choose_profile(method, backend.model, args.profile, stored)

    return Plan(
        tools=make_tools(backend),
        cases=tuple(cases),
        meter=meter_for(str(getattr(backend, "device", "cpu"))),
        seed=args.seed,
        find_profile=find,
        cancel=cancel,
        progress=progress,
        open_store=opened,
    )


def _machine_row(backend: Backend, meter: Meter) -> dict[str, Any]:
    """The machine in the form of a figure (its value: threads), with everything that is known about it."""
    about = facts(backend, meter)
    figure = {"name": "machine", "value": about["threads"], "unit": "threads", "baseline": None, "ratio": None}
    return {**figure, **about}


@contextmanager
def _writing(output: str) -> Iterator[TextIO]:
    """The output; what cannot be written to is seen before anything is measured."""
    if output == "-":
        yield sys.stdout
        return
    with Path(output).open("w", encoding="utf-8") as file:
        yield file


def _lengths(text: str) -> tuple[int, ...]:
    """Numbers with commas between them, for argparse: different ones, the shortest first."""
    return tuple(sorted({positive(part) for part in text.split(",")}))
