"""Answer questions with parts of the attention masked (CAFE's Table 2): what does the answer rest on?

One JSON line per question goes to --output; an interrupted run goes on where it stopped. The SubEM of every mode, with
its 95% bootstrap interval and the change against no mask, is a table on standard error and one JSON object on
standard output or in --summary. Questions need documents marked as evidence, and answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from mdqa.backends.base import SteeredRows
from mdqa.cancellation import CancelToken
from mdqa.commands.options import (
    add_model_arguments,
    add_question_arguments,
    check_output,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
    write_lines,
)
from mdqa.commands.results import Settled, open_results
from mdqa.commands.working import line_of, work_through
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.masking import MODES, NO_MASK, MaskingConfig, probe_question, usable_questions
from mdqa.records import Question
from mdqa.run import check_question
from mdqa.settings import Settings
from mdqa.statistics.bootstrap import mean_interval, paired_difference

NAME = "masking"

Row = dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    default = MaskingConfig().rows
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON lines; - is standard output")
    parser.add_argument(
        "--summary", metavar="FILE", help="the summary as JSON (default: standard output, if no lines go there)"
    )
    parser.add_argument(
        "--rows",
        default=default,
        choices=get_args(SteeredRows),
        help="rows that are masked as the question's; with fewer of them, the rest of the prompt and the reply still "
        f"read the masked documents (default: {default})",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="max_new_tokens=32")
    parser.add_argument("--retry-failed", action="store_true", help="run questions again that failed before")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="all", seed=0)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the probes; 1 if a question failed or the work was stopped."""
    settings = Settings.from_environment()
    options = parse_set(args.set)
    if "rows" in options:
        raise ConfigError("--set rows: give it as --rows")
    config = MaskingConfig.parse({**options, "rows": args.rows})
    _check_places(args)
    questions, left_out = usable_questions(questions_from(args))
    if left_out:
        print(f"note: {left_out}", file=sys.stderr)
    backend = open_backend(args, settings)
    try:
        tools = make_tools(backend)
        tools.require("attention", "steering")
        settled = Settled(NAME, backend.model, args.seed, "", config.model_dump(mode="json"))
        with open_results(args.output, settled, retry_failed=args.retry_failed) as results:
            rows = _earlier(args.output)

            def work(item: Question, cancel: CancelToken) -> Row:
                rows[item.id] = _probe(config, tools, settled, item, cancel)
                return rows[item.id]

            status = work_through(questions, results, work, output=args.output, quiet=args.quiet)
    finally:
        backend.close()
    found = summary([rows[item.id] for item in questions if item.id in rows])
    print(table(found), file=sys.stderr)
    if args.summary or args.output != "-":
        write_lines([found], args.summary or "-")
    return status


def _check_places(args: argparse.Namespace) -> None:
    """InputError or ConfigError at once, and not after the work, if a file cannot be written."""
    if args.output != "-":
        check_output(Path(args.output), args.input)
    if args.summary and args.summary != "-":
        check_output(Path(args.summary), args.input)
        if args.output != "-" and Path(args.summary).resolve() == Path(args.output).resolve():
            raise ConfigError("--summary and --output are the same file")
    if args.summary == args.output == "-":
        raise ConfigError("--summary - would stand among the lines of --output -; name a file for one of them")


def _probe(config: MaskingConfig, tools: Tools, settled: Settled, item: Question, cancel: CancelToken) -> Row:
    """One question's line. Cancelled if a stop was asked for before it was finished."""

    def found() -> Row:
        check_question(item)
        probed = probe_question(item, tools, config, seed=settled.seed, cancel=cancel)
        return {
            "modes": {answered.mask.mode: answered.to_json() for answered in probed.answers},
            "documents_cost": probed.documents_cost.model_dump(),
            "cost": probed.cost.model_dump(),
        }

    return line_of(item, settled, found)


def _earlier(output: str) -> dict[str, Row]:
    """The lines that an earlier call wrote, by question."""
    if output == "-":
        return {}
    lines = Path(output).read_bytes().splitlines()  # of text, also other characters would end a line
    return {row["id"]: row for row in map(json.loads, lines)}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | int]]:
    """Mean SubEM (0 to 1) of every mode with its interval and n, and the change against no mask on the same questions.

    Failed questions are left out, modes that no question allows too.
    """
    found: dict[str, dict[str, float | int]] = {}
    for mode in MODES:
        answered = [row["modes"] for row in rows if row["status"] == "ok" and mode in row["modes"]]
        if not answered:
            continue
        values = [modes[mode]["sub_em"] for modes in answered]
        interval = mean_interval(values)
        found[mode] = {"sub_em": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
        if mode != NO_MASK:
            change = paired_difference(values, [modes[NO_MASK]["sub_em"] for modes in answered])
            found[mode] |= {"change": change.mean, "change_low": change.low, "change_high": change.high}
    return found


def table(found: Mapping[str, Mapping[str, float | int]]) -> str:
    """The summary as a table for people, in percent."""
    width = max(map(len, MODES.values()))
    lines = [f"{'mask':<{width}} {'n':>5}  {'SubEM':<21} change"]
    for mode, values in found.items():
        change = _percent(values, "change", "change_low", "change_high", "+") if "change" in values else ""
        score = _percent(values, "sub_em", "low", "high")
        lines.append(f"{MODES[mode]:<{width}} {values['n']:>5}  {score:<21} {change}".rstrip())
    return "\n".join(lines) if found else "no question was answered"


def _percent(values: Mapping[str, float | int], mean: str, low: str, high: str, sign: str = "") -> str:
    return "{:{s}.1f} [{:{s}.1f}, {:{s}.1f}]".format(*(100 * values[name] for name in (mean, low, high)), s=sign)
