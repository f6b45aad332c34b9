"""Use the labels of an annotation queue: what they say of judges, thresholds and accuracies, with before and after.

judge: how often DuQUAD's judge is right where the agents disagree, by people and by accepted answers. threshold:
DocScore's threshold from the documents that people marked as evidence, set on the calibration half of the questions and
measured on the held-out half. no_filter: MADARA's No-Filter accuracy by people. CAFE's heads from evidence marks are
calibrate --method cafe --queue NAME, which with --before measures the heads before beside the new ones.
Exit status 1 if the labels do not allow it; the report then says what is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.agreement import judge_accuracy, no_filter, threshold
from mdqa.commands.database import opened
from mdqa.commands.labelled import labelled
from mdqa.commands.options import add_database_argument, check_output
from mdqa.errors import InputError, OutputError
from mdqa.reports.base import to_json, to_markdown
from mdqa.settings import Settings

USES = {"judge": judge_accuracy.report, "threshold": threshold.report, "no_filter": no_filter.report}


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("use", choices=tuple(USES), help="what the labels are used for")
    parser.add_argument("--queue", default="", metavar="NAME", help="the queue (default: the only one there is)")
    parser.add_argument("--format", default="markdown", choices=("markdown", "json"), help="the format of the report")
    parser.add_argument("--output", default="-", metavar="FILE", help="- is standard output (default)")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Make the report."""
    database = args.db or Settings.from_environment().database
    if not database.is_file():
        raise InputError("there is no such database", place=str(database))
    if args.output != "-":
        check_output(Path(args.output), database)
    with opened(database) as store:
        found = labelled(store, args.queue)
    report = USES[args.use](found.runs, found.together)
    text = to_json(report) if args.format == "json" else to_markdown(report)
    if args.output == "-":
        sys.stdout.write(text)
    else:
        try:
            Path(args.output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(args.output, error) from None
    if report.needs:
        print(f"{args.use}: needs {report.needs}", file=sys.stderr)
    return 1 if report.needs else 0
