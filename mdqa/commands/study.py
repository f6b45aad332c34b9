"""Leave each document out, or move the gold one through the positions, for every question: one JSON line each.

``leave-one-out``: every question is answered with all its documents and once without each of them; the line says what
changed, and how the attention mass and every score of a document go with the effect of leaving it out. ``sweep``: the
gold documents go to ``--positions``; what they are for many questions, with intervals, is said by ``evaluate``.
An interrupted run goes on where it stopped when the same command is given again. Passes that a change does not touch
are not computed again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mdqa.cancellation import CancelToken
from mdqa.commands.database import stored_profiles
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    check_output,
    choose_profile,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
)
from mdqa.commands.results import Line, Settled, open_results
from mdqa.commands.working import line_of, work_through
from mdqa.errors import Cancelled, ConfigError
from mdqa.methods.base import MethodConfig, Tools
from mdqa.records import Question, RunResult
from mdqa.registry import METHODS, method_class
from mdqa.run import begin, run_one
from mdqa.settings import Settings
from mdqa.studies import leave_one_out, position_sweep
from mdqa.studies.base import Variant, outcome, spent
from mdqa.studies.lines import leave_one_out_line, sweep_line

KINDS = ("leave-one-out", "sweep")


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("kind", choices=KINDS, help="which study")
    parser.add_argument("--method", required=True, choices=tuple(METHODS), help="how to answer")
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON lines; - is standard output")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the method")
    parser.add_argument("--profile", default="", metavar="NAME", help="calibration profile: a name or a JSON file")
    parser.add_argument(
        "--positions", default="few", help="of a sweep: few (first, middle, last), every, or places like 1,5,10"
    )
    parser.add_argument("--retry-failed", action="store_true", help="study questions again that failed before")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="all", seed=0)
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Study the questions; 1 if any failed or the work was stopped."""
    from mdqa.backends.remembering import remembering  # noqa: PLC0415 (imports torch)

    settings = Settings.from_environment()
    cls = method_class(args.method)
    config = cls.Config.parse(parse_set(args.set))
    if args.kind == "sweep" and args.positions not in ("few", "every"):
        position_sweep.read_positions(args.positions, sys.maxsize)
    questions = questions_from(args)
    if args.output != "-":
        check_output(Path(args.output), args.input)
    backend = remembering(open_backend(args, settings))
    try:
        stored = stored_profiles(args.db or settings.database) if cls.uses_profile else ()
        profile = choose_profile(args.method, backend.model, args.profile, stored) if cls.uses_profile else None
        if args.profile and not cls.uses_profile:
            raise ConfigError(f"--profile: the method {args.method} uses none")
        tools = make_tools(backend, profile)
        cls(config, tools)  # says at once, and not once per question, if something is missing
        settled = Settled(
            method=args.method,
            model=backend.model,
            seed=args.seed,
            profile=profile.name if profile else "",
            config=config.model_dump(mode="json"),
            entry=args.kind if args.kind != "sweep" else f"sweep {args.positions}",
        )
        with open_results(args.output, settled, retry_failed=args.retry_failed) as results:
            work = _Study(config, tools, settled).line
            return work_through(questions, results, work, output=args.output, quiet=args.quiet)
    finally:
        backend.close()


class _Study:
    """One kind of study of one question after the other."""

    def __init__(self, config: MethodConfig, tools: Tools, settled: Settled) -> None:
        self._config, self._tools, self._settled = config, tools, settled

    def line(self, item: Question, cancel: CancelToken) -> Line:
        """One question's line. Cancelled if a stop was asked for before it was finished."""
        return line_of(item, self._settled, lambda: self._found(item, cancel))

    def _found(self, item: Question, cancel: CancelToken) -> Line:
        """What the study finds. Cancelled if a stop was asked for; MdqaError if the question cannot be studied."""
        kind, _, positions = str(self._settled.entry).partition(" ")
        if kind == "sweep":
            return self._sweep(item, positions, cancel)
        base = self._answer(item, cancel)
        results = self._answers(leave_one_out.variants(base), cancel)
        found = leave_one_out.leave_one_out(base, results)
        return self._with_cost(leave_one_out_line(found), [base, *results.values()])

    def _sweep(self, item: Question, positions: str, cancel: CancelToken) -> Line:
        if positions == "few":
            places = position_sweep.few_positions(item)
        elif positions == "every":
            places = position_sweep.every_position(item)
        else:
            places = position_sweep.read_positions(positions, position_sweep.last_position(item))
        method = self._settled.method
        results = self._answers(position_sweep.variants(item, [method], places), cancel)
        found = position_sweep.position_sweep(item, [method], places, results)
        return self._with_cost(sweep_line(found), list(results.values()))

    def _with_cost(self, line: Line, runs: Sequence[RunResult]) -> Line:
        return {**line, "cost": spent(run.cost for run in runs).model_dump(mode="json")}

    def _answers(self, variants: Sequence[Variant], cancel: CancelToken) -> dict[str, RunResult]:
        return {variant.key: self._answer(variant.question, cancel) for variant in variants}

    def _answer(self, item: Question, cancel: CancelToken) -> RunResult:
        """A run; one that fails is a result too, and counted by the study."""
        header = begin(self._settled.method, self._config, item, self._tools, seed=self._settled.seed)
        result = run_one(header, self._tools, cancel=cancel).result
        if outcome(result).state == "cancelled":
            raise Cancelled
        return result
