"""Copy the whole database into one file, also while the page is in use; restore puts it back."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.commands.database import storage_module
from mdqa.commands.options import add_database_argument, check_output
from mdqa.errors import InputError
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="the file to write; an older backup gives way"
    )
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Copy, check the copy, and say what is in it."""
    database = args.db or Settings.from_environment().database
    if not database.is_file():
        raise InputError("there is no such database", place=str(database))
    check_output(args.output, database)
    found = storage_module("backup").backup(database, args.output)
    print(f"{found.path}: {contents(found.counts)}, {found.bytes:,} bytes, schema {found.step}", file=sys.stderr)
    return 0


def contents(counts: dict[str, int]) -> str:
    """How much is in a database, in words."""
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items())
