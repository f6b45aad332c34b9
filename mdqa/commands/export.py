"""Write what the database holds into a file: JSON lines, a table, or a copy of the database.

``labels`` are the queues with everything that people said of their items, as JSON lines that import-labels brings into
another database, or as a table. Of one queue (--queue): ``agreement``, the coefficients; ``evidence``, its questions
with the documents that people marked as gold, which calibrate and heads take as --input; ``dataset``, a folder for
the Hugging Face hub with a card.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.commands.database import opened, storage_module
from mdqa.commands.labelled import OF_QUEUES, export_labels
from mdqa.commands.options import add_database_argument, check_output
from mdqa.errors import ConfigError, InputError
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--what",
        default="runs",
        help="runs with verdicts on them (default), annotations (the verdicts), labels, agreement, evidence or dataset",
    )
    parser.add_argument(
        "--queue", default="", metavar="NAME", help="one annotation queue (labels: default all of them)"
    )
    parser.add_argument("--names", action="store_true", help="dataset: keep the names of the annotators")
    parser.add_argument("--format", default="jsonl", choices=("jsonl", "csv", "sqlite"), help="default: jsonl")
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write; - is standard output")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Export."""
    database = args.db or Settings.from_environment().database
    if not database.is_file():
        raise InputError("there is no such database", place=str(database))
    export = storage_module("export").export
    if args.what in OF_QUEUES:
        return export_labels(args, database)
    if args.queue or args.names:
        raise ConfigError(f"--queue and --names belong to: {', '.join(OF_QUEUES)}")
    with opened(database) as store:
        if args.output == "-":
            count = export(store, sys.stdout, what=args.what, format=args.format)
        else:
            check_output(Path(args.output))
            count = export(store, Path(args.output), what=args.what, format=args.format)
    print(f"{count} {args.what} of {database}", file=sys.stderr)
    return 0
