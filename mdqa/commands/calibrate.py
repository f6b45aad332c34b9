"""Make a calibration profile: CAFE's retrieval heads or MADARA's probe, for one model.

By default only the calibration half of the questions is used, so that the held-out half can be reported on. The
profile goes into the database, or with --output into a JSON file that --profile FILE.json reads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from mdqa.calibration import write_profile
from mdqa.commands.answer import stop_by_signal
from mdqa.commands.database import opened, stored_profiles
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    check_output,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
)
from mdqa.errors import Cancelled, ConfigError
from mdqa.records import Profile
from mdqa.registry import CALIBRATIONS, load
from mdqa.settings import Settings

FIXED = ("name", "seed", "cancel", "progress")
"""Keyword arguments of a calibration that this command gives itself."""

KEYWORD_ONLY, VAR_KEYWORD = Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--method", required=True, choices=tuple(CALIBRATIONS), help="what to calibrate")
    parser.add_argument("--name", required=True, help="the profile's name")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a JSON file instead of the database")
    parser.add_argument("--replace", action="store_true", help="take the place of a profile of this name")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the calibration")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="calibration", seed=42)
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Calibrate and keep the profile."""
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    settings = Settings.from_environment()
    if not args.name.strip():
        raise ConfigError("--name: give the profile a name")
    database = args.db or settings.database
    if args.output:
        check_output(args.output, args.input)
    else:
        with opened(database):
            pass  # says at once, and not after hours of work, that it cannot be used
    calibrate = load(CALIBRATIONS, args.method, "calibration")
    options = typed_options(calibrate, parse_set(args.set))
    questions = questions_from(args)
    print(f"{len(questions)} questions of {args.input} (split: {args.split})", file=sys.stderr)
    options.setdefault("data", f"{args.input.name} ({args.split})")
    backend = open_backend(args, settings)
    try:
        _check_name(args, database, backend.model)
        with stop_by_signal() as cancel, tqdm(file=sys.stderr, disable=args.quiet, dynamic_ncols=True) as bar:

            def progress(done: int, total: int, message: str = "") -> None:
                bar.total, bar.n = total, done
                bar.set_description(message, refresh=True)

            tools = make_tools(backend)
            profile = calibrate(
                questions, tools, name=args.name, seed=args.seed, cancel=cancel, progress=progress, **options
            )
    except Cancelled:
        print("stopped; no profile was made", file=sys.stderr)
        return 1
    finally:
        backend.close()
    if args.output:
        write_profile(profile, args.output)
    else:
        with opened(database) as store:
            store.profiles.save(profile, replace=args.replace)
    print(f"profile {profile.name!r}: {args.output or database}", file=sys.stderr)
    return 0


def typed_options(calibrate: Callable[..., Profile], given: dict[str, Any]) -> dict[str, Any]:
    """``--set`` values as the types of the calibration's keyword arguments; ConfigError names a wrong one.

    A calibration with open ``**options`` checks the rest itself.
    """
    hints = get_type_hints(calibrate)
    parameters = signature(calibrate).parameters
    known = {name: hints[name] for name in parameters if name not in FIXED and parameters[name].kind is KEYWORD_ONLY}
    is_open = any(parameter.kind is VAR_KEYWORD for parameter in parameters.values())
    values = dict(given)
    for name, value in given.items():
        if name in known:
            try:
                values[name] = TypeAdapter(known[name]).validate_python(value)
            except ValidationError as error:
                raise ConfigError(f"option {name!r}: {error.errors()[0]['msg']}, got {value!r}") from None
        elif name in FIXED or not is_open:
            raise ConfigError(f"option {name!r}: there is no such option; there is: {', '.join(known)}")
    return values


def _check_name(args: argparse.Namespace, database: Path, model: str) -> None:
    """ConfigError, before hours of work, if the finished profile could not be kept under its name."""
    if args.replace:
        return
    if args.output and args.output.exists():
        raise ConfigError(f"{args.output} exists already; choose another --output or give --replace")
    stored = () if args.output else stored_profiles(database)
    if any((p.method, p.model, p.name) == (args.method, model, args.name) for p in stored):
        raise ConfigError(f"{database} has a profile {args.name!r} of {args.method} for {model}; give --replace")
