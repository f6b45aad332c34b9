"""Score result files, or check our metrics against recorded cases of the official scripts.

--results FILE [FILE ...] scores the result lines of answer against the questions of --input: one JSON line per file to
--output, with SubEM, F1, EM, gold recall per stage and median costs, each mean with its 95% bootstrap interval; with
several files also the paired difference of each to the first, and McNemar's exact test on EM between the two with p
corrected by Holm for all comparisons. The same as a table goes to standard error. Of a file of evaluate, every entry
has a line, as in report.json.

--cases FILE holds JSON lines with metric, prediction, answers and expected. Every mismatch is printed; exit status 1 if
there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mdqa.benchmarks.placing import Placeable
from mdqa.commands.evaluate import compared
from mdqa.commands.options import check_output, questions_in, write_lines
from mdqa.commands.results import input_digest
from mdqa.comparison.markdown import to_markdown
from mdqa.errors import ConfigError
from mdqa.records import Question
from mdqa.registry import READERS
from mdqa.reporting import reports, table
from mdqa.result_lines import is_evaluation, lines_of, read_lines
from mdqa.scoring.cases import check_cases


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--results", type=Path, nargs="+", metavar="FILE", help="result files of answer, or one of evaluate"
    )
    what.add_argument("--cases", type=Path, metavar="FILE", help="metric cases")
    parser.add_argument("--input", type=Path, metavar="FILE", help="with --results: the questions that were answered")
    parser.add_argument("--format", default="auto", choices=("auto", *READERS), help="the format of --input")
    parser.add_argument("--output", metavar="FILE", help="with --results: JSON lines (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Score the results or check the cases."""
    if args.results is None:
        if args.input or args.output:
            raise ConfigError("--input and --output belong to --results; --cases needs neither")
        return _check(args.cases)
    if args.input is None:
        raise ConfigError("--results needs --input FILE: the questions that were answered, with their answers")
    output = args.output or "-"
    if output != "-":
        for source in (*args.results, args.input):
            check_output(Path(output), source)
    if len({path.resolve() for path in args.results}) < len(args.results):
        raise ConfigError("--results names a file twice")
    read = questions_in(args.input, args.format, "all", None)
    if any(is_evaluation(path) for path in args.results):
        return _score_evaluation(args.results, read, output)
    questions = Placeable(read)
    files = {str(path): read_lines(lines_of(path), questions, input_digest, file=str(path)) for path in args.results}
    rows = reports(files)
    write_lines(rows, output)
    print(table(rows), file=sys.stderr)
    return 0


def _score_evaluation(paths: Sequence[Path], questions: Sequence[Question], output: str) -> int:
    """The entries of one evaluation beside each other."""
    if len(paths) > 1:
        raise ConfigError("a file of evaluate has its own comparison; score it alone")
    found = compared(paths[0], questions)
    write_lines(found["entries"], output)
    print(to_markdown(found), file=sys.stderr)
    return 0


def _check(cases: Path) -> int:
    mismatches = 0
    for mismatch in check_cases(cases):
        print(mismatch)
        mismatches += 1
    print(f"{mismatches} mismatches" if mismatches else "all cases agree", file=sys.stderr)
    return 1 if mismatches else 0
