"""Keep the results of answer and evaluate in the database, where the page shows them: Failures, Reports, queues.

A run that is in the database already is left as it is, so the command can be given again after more questions were
answered. Result lines hold no prompts and no full attention maps; the page says so where it would show them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.benchmarks.names import file_stem, named
from mdqa.benchmarks.placing import Placeable
from mdqa.commands.database import opened, storage_module
from mdqa.commands.options import add_database_argument, questions_in
from mdqa.commands.results import input_digest
from mdqa.diagnosis.facets import facets_of
from mdqa.registry import READERS
from mdqa.result_lines import lines_of, results_in
from mdqa.scoring.answers import run_is_right
from mdqa.settings import Settings

UNFINISHED = ("running", "interrupted")
"""What a row says that an earlier, killed call of this command began."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="a file of answer or evaluate")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="the questions that were answered")
    parser.add_argument("--format", default="auto", choices=("auto", *READERS), help="the format of --input")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Store every run of the file; InputError for a line that is none before any later one is stored."""
    origin = file_stem(str(args.input))
    questions = Placeable(named(item, origin) for item in questions_in(args.input, args.format, "all", None))
    database = args.db or Settings.from_environment().database
    unknown = storage_module("runs").UnknownRun
    new = there = 0
    with opened(database) as store:
        for _, result in results_in(lines_of(args.results), questions, input_digest, file=str(args.results)):
            try:
                if store.runs.row(result.id).status not in UNFINISHED:
                    there += 1
                    continue
            except unknown:
                store.runs.begin(result)
            store.runs.finish(result, correct=run_is_right(result), facets=facets_of(result))
            new += 1
        stored = store.runs.count()
    kept = f", {there} of the file were there already" if there else ""
    print(f"runs added: {new}{kept}; {database} holds {stored} now", file=sys.stderr)
    return 0
