"""Write what the database holds into a file: JSON lines, a table, or a copy of the database."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.commands.database import opened, storage_module
from mdqa.commands.options import add_database_argument, check_output
from mdqa.errors import InputError
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--what", default="runs", help="runs with their labels (default), or annotations: the labels alone"
    )
    parser.add_argument("--format", default="jsonl", choices=("jsonl", "csv", "sqlite"), help="default: jsonl")
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write; - is standard output")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Export."""
    database = args.db or Settings.from_environment().database
    if not database.is_file():
        raise InputError("there is no such database", place=str(database))
    export = storage_module("export").export
    with opened(database) as store:
        if args.output == "-":
            count = export(store, sys.stdout, what=args.what, format=args.format)
        else:
            check_output(Path(args.output))
            count = export(store, Path(args.output), what=args.what, format=args.format)
    print(f"{count} {args.what} of {database}", file=sys.stderr)
    return 0
