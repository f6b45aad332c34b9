"""Put a backup in the database's place, after it was checked. What was there before is kept beside it.

Stop the page and other commands first: this one notices when something has the database open, and does nothing then.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.commands.backup import contents
from mdqa.commands.database import storage_module
from mdqa.commands.options import add_database_argument
from mdqa.errors import InputError
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="a file of backup")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Restore, and say what is there now and where the old file is."""
    database = args.db or Settings.from_environment().database
    if not args.input.is_file():
        raise InputError("there is no such file", place=str(args.input))
    found, kept = storage_module("backup").restore(database, args.input)
    print(f"{found.path}: {contents(found.counts)}, schema {found.step}", file=sys.stderr)
    if not found.current:
        print("its schema is an older one; it is brought up to date when it is opened", file=sys.stderr)
    if kept is not None:
        print(f"what was there before is {kept}", file=sys.stderr)
    return 0
