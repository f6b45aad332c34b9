"""Bring labels into the database: our own export of labels, or one of Label Studio or Argilla. All of it, or nothing.

Our own file (export --what labels) brings its queues with runs, settings and logs into a database that has no queues of
these names. Labels made elsewhere go into --queue; every task or record names what it is about by a run's id (run) or
a question's (question_id), and --map says which of our labels its words are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mdqa.commands.database import opened, storage_module
from mdqa.commands.options import add_database_argument
from mdqa.errors import ConfigError, InputError
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="the file with the labels")
    parser.add_argument("--queue", default="", metavar="NAME", help="the queue for labels made elsewhere")
    parser.add_argument("--who", default="import", metavar="NAME", help="who sends runs to the queue (default: import)")
    parser.add_argument("--label", default="", metavar="NAME", help="the question or control that is the label")
    parser.add_argument("--evidence", default="", metavar="NAME", help="the one whose choices are ids of documents")
    parser.add_argument(
        "--map", nargs="+", default=[], metavar="WORD=LABEL", help="what their words are among our labels"
    )
    parser.add_argument("--people", nargs="+", default=[], metavar="ID=NAME", help="names of the annotators")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Import."""
    try:
        text = args.input.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=str(args.input)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is no UTF-8 text: {error.reason} at byte {error.start}", place=str(args.input)) from None
    database = args.db or Settings.from_environment().database
    own = '"mdqa-labels"' in text.split("\n", 1)[0]
    elsewhere = [name for name in ("queue", "label", "evidence", "map", "people") if getattr(args, name)]
    if own and elsewhere:
        raise ConfigError(f"--{elsewhere[0]} is for labels made elsewhere; this file is our own and says it all")
    if not own and not args.queue:
        raise ConfigError("labels made elsewhere need a queue to go to: give --queue NAME")
    if own:
        with opened(database) as store:
            found = storage_module("label_files").import_lines(store, text.split("\n"), name=str(args.input))
        print(
            f"{found.queues} queues with {found.items} items and {found.entries} entries of the log of labels, "
            f"{found.runs} new runs: {database}",
            file=sys.stderr,
        )
        return 0
    imports = storage_module("label_imports")
    fields = imports.Fields(args.label, args.evidence, _pairs(args.map, "--map"), _pairs(args.people, "--people"))
    kind, labels = imports.read_foreign(text, str(args.input), fields)
    with opened(database) as store:
        new, there = imports.import_foreign(store, labels, args.queue, args.who)
    known = f", {there} were there already" if there else ""
    print(f"{new} labels of {kind} are in {args.queue!r} now{known}: {database}", file=sys.stderr)
    return 0


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    found = {}
    for value in values:
        word, equals, label = value.rpartition("=")
        if not equals or not word or not label:
            raise ConfigError(f"{option} {value!r}: write it as THEIRS=OURS")
        found[word] = label
    return found
