"""Make a calibration profile: CAFE's retrieval heads or MADARA's probe, for one model.

By default only the calibration half of the questions is used, so that the held-out half can be reported on. The
profile goes into the database, or with --output into a JSON file that --profile FILE.json reads.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.commands.answer import stop_by_signal
from mdqa.commands.database import opened
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    check_folder,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
)
from mdqa.commands.profile_files import write_profile
from mdqa.errors import Cancelled, ConfigError
from mdqa.registry import CALIBRATIONS, load
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--method", required=True, choices=tuple(CALIBRATIONS), help="what to calibrate")
    parser.add_argument("--name", required=True, help="the profile's name")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a JSON file instead of the database")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the calibration")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="calibration")
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Calibrate and keep the profile."""
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    settings = Settings.from_environment()
    if not args.name.strip():
        raise ConfigError("--name: give the profile a name")
    if args.output:
        check_folder(args.output)
    options = parse_set(args.set)
    questions = questions_from(args)
    print(f"{len(questions)} questions of {args.input} (split: {args.split})", file=sys.stderr)
    calibrate = load(CALIBRATIONS, args.method, "calibration")
    backend = open_backend(args, settings)
    try:
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
        with opened(args.db or settings.database) as store:
            store.profiles.save(profile)
    print(f"profile {profile.name!r}: {args.output or args.db or settings.database}", file=sys.stderr)
    return 0
