"""Measure how well a CAFE profile's retrieval heads find the evidence, beside BM25, embeddings and all heads.

Use questions that the profile was not made from: by default the held-out half of every file.
"""

from __future__ import annotations

import argparse
import sys

from mdqa.commands.database import stored_profiles
from mdqa.commands.listing import add_output_argument
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    choose_profile,
    make_tools,
    open_backend,
    positive,
    questions_from,
    write_lines,
)
from mdqa.commands.working import stop_by_signal
from mdqa.errors import Cancelled, InputError, ProfileError
from mdqa.methods.cafe.quality import measure_profile, table
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--profile", default="", metavar="NAME", help="name or JSON file (default: the model's own)")
    parser.add_argument("--k1", type=positive, default=4, help="heads of the coarse stage (default: 4)")
    parser.add_argument("--m1", type=positive, default=4, help="documents that each head chooses (default: 4)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_output_argument(parser)
    add_question_arguments(parser, split="held-out", seed=0, several=True)
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    settings = Settings.from_environment()
    questions = [item for item in questions_from(args) if item.gold_ids]
    if not questions:
        raise InputError("no question has a document marked as evidence (gold)", place=str(args.input[0]))
    backend = open_backend(args, settings)
    try:
        stored = stored_profiles(args.db or settings.database)
        profile = choose_profile("cafe", backend.model, args.profile, stored)
        if profile is None:
            raise ProfileError(f"there is no CAFE profile for {backend.model!r}; make one: python -m mdqa calibrate")
        with (
            stop_by_signal() as cancel,
            tqdm(total=len(questions), unit="question", file=sys.stderr, disable=args.quiet, dynamic_ncols=True) as bar,
        ):
            quality = measure_profile(
                profile,
                questions,
                make_tools(backend),
                k1=args.k1,
                m1=args.m1,
                cancel=cancel,
                progress=lambda done, total: bar.update(),
            )
    except Cancelled:
        print("stopped", file=sys.stderr)
        return 1
    finally:
        backend.close()
    print(table(quality), file=sys.stderr)
    if args.output:
        write_lines([{"profile": profile.name, "model": profile.model, **quality}], args.output)
    return 0
