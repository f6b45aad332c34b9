"""Run a method over questions and write one JSON line per question.

An interrupted run goes on where it stopped when the same command is given again: finished questions are kept, a torn
last line is removed. Questions that failed are kept too, unless --retry-failed is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from mdqa.cancellation import CancelToken
from mdqa.commands.database import stored_profiles
from mdqa.commands.options import (
    add_corpus_arguments,
    add_database_argument,
    add_model_arguments,
    add_placing_arguments,
    add_question_arguments,
    check_output,
    choose_profile,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
)
from mdqa.commands.results import Line, Settled, open_results
from mdqa.commands.working import work_through
from mdqa.errors import Cancelled, ConfigError, InputError, MdqaError
from mdqa.methods.base import MethodConfig, Tools
from mdqa.records import Overflow, Profile, Question
from mdqa.registry import METHODS, method_class
from mdqa.run import begin, run_one
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--method", required=True, choices=tuple(METHODS), help="how to answer")
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON lines; - is standard output")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the method")
    parser.add_argument("--profile", default="", metavar="NAME", help="calibration profile: a name or a JSON file")
    parser.add_argument(
        "--overflow",
        default="refuse",
        choices=get_args(Overflow),
        help="documents that do not fit the model's window: refuse the question, shorten the longest, drop the last",
    )
    parser.add_argument("--retry-failed", action="store_true", help="run questions again that failed before")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="all", seed=0)
    add_placing_arguments(parser)
    add_corpus_arguments(parser)
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Answer the questions; 1 if any failed or the work was stopped."""
    settings = Settings.from_environment()
    cls = method_class(args.method)
    config = cls.Config.parse(parse_set(args.set))
    if args.setting == "closed_book" and not cls.closed_book:
        raise ConfigError(f"--setting closed_book: the method {args.method} cannot answer without documents")
    questions = questions_from(args)
    if args.output != "-":
        check_output(Path(args.output), args.input)  # at once, not after the model was loaded
    if args.profile and not cls.uses_profile:
        raise InputError(f"the method {args.method} uses no profile", place="--profile")
    status = _nothing_left(args, settings, config, questions)
    if status is not None:
        return status
    backend = open_backend(args, settings)
    try:
        profile = _profile(args, settings, backend.model)
        tools = make_tools(backend, profile)
        cls(config, tools)  # says at once, and not once per question, if something is missing
        settled = _settled(args, config, backend.model, profile)
        with open_results(args.output, settled, retry_failed=args.retry_failed) as results:
            work = partial(_answer, args, config, tools)
            return work_through(questions, results, work, output=args.output, quiet=args.quiet)
    finally:
        backend.close()


def _profile(args: argparse.Namespace, settings: Settings, model: str) -> Profile | None:
    """What the method takes from a calibration of this model."""
    if not method_class(args.method).uses_profile:
        return None
    return choose_profile(args.method, model, args.profile, stored_profiles(args.db or settings.database))


def _settled(args: argparse.Namespace, config: MethodConfig, model: str, profile: Profile | None) -> Settled:
    """What the lines of the output must have in common."""
    return Settled(
        method=args.method,
        model=model,
        seed=args.seed,
        profile=profile.name if profile else "",
        config=config.model_dump(mode="json"),
    )


def _nothing_left(
    args: argparse.Namespace, settings: Settings, config: MethodConfig, questions: Sequence[Question]
) -> int | None:
    """The exit status where every question has its line already, which needs no model; None where there is work."""
    from mdqa.backends.loading import default_model, recorded_name  # noqa: PLC0415 (imports torch)

    if args.retry_failed or args.output == "-" or not Path(args.output).is_file():
        return None
    model = recorded_name(args.model or settings.model or default_model())
    try:
        settled = _settled(args, config, model, _profile(args, settings, model))
        with open_results(args.output, settled, retry_failed=False) as results:
            if results.missing(questions):
                return None
            return work_through(questions, results, _no_work, output=args.output, quiet=args.quiet)
    except MdqaError:  # told when the model is there, whose own name counts
        return None


def _no_work(item: Question, _: CancelToken) -> Line:
    """Stands where no question is left; one that came all the same would be left for the next call."""
    raise Cancelled


def _answer(args: argparse.Namespace, config: MethodConfig, tools: Tools, item: Question, cancel: CancelToken) -> Line:
    """One question's line. Cancelled if a stop was asked for before it was finished."""
    header = begin(args.method, config, item, tools, seed=args.seed, overflow=args.overflow)
    result = run_one(header, tools, cancel=cancel).result
    if result.status == "cancelled":
        raise Cancelled
    return result.to_line()
