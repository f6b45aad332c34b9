"""What each of MADARA's treatments came to, from result lines of answer --method madara --set compare=shared (or all).

One JSON line per treatment: EM, SubEM and F1 with 95% bootstrap intervals, McNemar's exact test against No-Filter, and,
where documents are read alone, how many questions are lost in selection, extraction and vote. The last lines say what
the single readings could give at best. The same as a table goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.benchmarks.placing import Placeable
from mdqa.commands.options import check_output, questions_in, write_lines
from mdqa.commands.results import input_digest
from mdqa.errors import InputError
from mdqa.methods.madara.report import outcomes, report, table
from mdqa.registry import READERS
from mdqa.result_lines import lines_of, read_lines


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="a result file of answer")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="the questions that were answered")
    parser.add_argument("--format", default="auto", choices=("auto", *READERS), help="the format of --input")
    parser.add_argument(
        "--metric",
        default="em",
        choices=("em", "sub_em"),
        help="what counts as right in tests and losses (default: em)",
    )
    parser.add_argument("--output", default="-", metavar="FILE", help="JSON lines; - is standard output (default)")


def run(args: argparse.Namespace) -> int:
    """Report on the treatments of one result file."""
    if args.output != "-":
        for source in (args.results, args.input):
            check_output(Path(args.output), source)
    questions = Placeable(questions_in(args.input, args.format, "all", None))
    results = read_lines(lines_of(args.results), questions, input_digest, file=str(args.results))
    found = outcomes(results)
    if not found:
        raise InputError(
            "no run in it compared its treatments on a question with answers; make one with: "
            "python -m mdqa answer --method madara --set compare=shared",
            place=str(args.results),
        )
    rows = report(found, args.metric)
    write_lines(rows, args.output)
    print(f"{len(found)} of {len(results)} questions, right by {args.metric}", file=sys.stderr)
    print(table(rows), file=sys.stderr)
    return 0
