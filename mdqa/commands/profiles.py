"""List the calibration profiles: those that come with the software and those in the database."""

from __future__ import annotations

import argparse
from typing import Any

from mdqa.calibration import builtin_profiles
from mdqa.commands.database import stored_profiles
from mdqa.commands.listing import add_output_argument, show
from mdqa.commands.options import add_database_argument
from mdqa.records import Profile
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--method", help="of this method only")
    parser.add_argument("--model", help="of this model only")
    add_output_argument(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the profiles."""
    stored = stored_profiles(args.db or Settings.from_environment().database)
    found = [("built in", profile) for profile in builtin_profiles()] + [("database", profile) for profile in stored]
    rows = [_row(place, profile) for place, profile in found if _wanted(args, profile)]
    return show(rows, args.output, empty="there is no such profile; make one with: python -m mdqa calibrate")


def _wanted(args: argparse.Namespace, profile: Profile) -> bool:
    return args.method in (None, profile.method) and args.model in (None, profile.model)


def _row(place: str, profile: Profile) -> dict[str, Any]:
    return {"name": profile.name, "where": place, **profile.model_dump(mode="json", exclude={"name"})}
