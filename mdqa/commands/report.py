"""Make a report: the tables and figures of the papers, from stored runs and calibration profiles.

Without a name it lists the reports with what each of them needs. --results takes several result files of answer or
evaluate, of one method and model or of many; every line must answer a question of --input. Some reports need profiles,
or the results of masking, beside them or in their place. The report goes to --output as Markdown, or as JSON with
unrounded numbers. Exit status 1 if what was given does not allow it; the report then says what is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mdqa.benchmarks.placing import Placeable
from mdqa.calibration import builtin_profiles, read_profile
from mdqa.commands.database import stored_profiles
from mdqa.commands.listing import show
from mdqa.commands.options import add_database_argument, check_output, questions_in
from mdqa.commands.results import input_digest
from mdqa.errors import ConfigError, InputError, OutputError, ProfileError
from mdqa.records import Profile, Question, RunResult
from mdqa.registry import REPORTS
from mdqa.reports.base import to_json, to_markdown
from mdqa.reports.making import Line, make, uses
from mdqa.result_lines import lines_of, read_groups
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the report; without it, all of them are listed")
    parser.add_argument("--results", type=Path, nargs="+", metavar="FILE", help="result files of answer or evaluate")
    parser.add_argument("--input", type=Path, nargs="+", metavar="FILE", help="the questions that were answered")
    parser.add_argument("--profile", "--profiles", nargs="+", metavar="NAME|FILE.json", help="calibration profiles")
    parser.add_argument("--masking", type=Path, nargs="+", metavar="FILE", help="result files of masking")
    parser.add_argument("--format", default="markdown", choices=("markdown", "json"), help="the format of the report")
    parser.add_argument("--output", default="-", metavar="FILE", help="- is standard output (default)")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Make a report, or list the reports."""
    if args.name is None:
        if args.results or args.input or args.profile or args.masking:
            raise ConfigError(f"name a report; there is: {', '.join(REPORTS)}")
        return show([_listed(name) for name in REPORTS], "", empty="there is no report")
    _check(args)
    runs = _runs(args.results, _questions(args.input)) if args.results else []
    report = make(args.name, runs, _profiles(args), [line for path in args.masking or () for line in _masking(path)])
    _write(to_json(report) if args.format == "json" else to_markdown(report), args.output)
    if report.needs:
        print(f"{args.name}: needs {report.needs}", file=sys.stderr)
    return 1 if report.needs else 0


def _check(args: argparse.Namespace) -> None:
    """ConfigError for arguments that do not belong together, or that this report has no use for."""
    for what, given in (("profiles", args.profile), ("masking", args.masking)):
        if not uses(args.name, what) and given:
            raise ConfigError(f"the report {args.name} takes no {what}")
    if bool(args.results) != bool(args.input) or not (args.results or args.profile or args.masking):
        raise ConfigError("a report needs --results FILE and --input FILE: the runs, and the questions they answered")
    if len({path.resolve() for path in args.results or ()}) < len(args.results or ()):
        raise ConfigError("--results names a file twice")
    if args.output != "-":
        files = [Path(name) for name in args.profile or () if name.endswith(".json")]
        for source in (*(args.results or ()), *(args.input or ()), *(args.masking or ()), *files):
            check_output(Path(args.output), source)


def _listed(name: str) -> dict[str, str]:
    report = make(name, ())
    return {"name": name, "title": report.title, "source": report.source, "needs": report.needs}


def _profiles(args: argparse.Namespace) -> list[Profile]:
    """The named profiles; ProfileError for one that does not exist."""
    if not args.profile:
        return []
    known = [*stored_profiles(args.db or Settings.from_environment().database), *builtin_profiles()]
    found = []
    for name in args.profile:
        named = [read_profile(Path(name))] if name.endswith(".json") else [p for p in known if p.name == name]
        if not named:
            there = ", ".join(dict.fromkeys(profile.name for profile in known)) or "none"
            raise ProfileError(f"no profile {name!r}; there is: {there}")
        found += named
    return found


def _masking(path: Path) -> Iterator[Line]:
    """The lines of a file of the command masking; InputError for another file."""
    for number, raw in enumerate(lines_of(path), 1):
        if not raw.strip():
            continue
        try:
            line: Any = json.loads(raw)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict) or line.get("method") != "masking" or "id" not in line:
            raise InputError("this is no result line of python -m mdqa masking", place=f"{path}, line {number}")
        yield line


def _questions(paths: Sequence[Path]) -> Placeable:
    """The questions of all files by id; InputError if two files have different ones with the same id."""
    found: dict[str, Question] = {}
    for path in paths:
        for item in questions_in(path, "auto", "all", None):
            if found.setdefault(item.id, item) != item:
                raise InputError(f"another file has a different question with the id {item.id!r}", place=str(path))
    return Placeable(found.values())


def _runs(paths: Sequence[Path], questions: Placeable) -> list[RunResult]:
    found = (read_groups(lines_of(path), questions, input_digest, file=str(path)) for path in paths)
    return [run for groups in found for runs in groups.values() for run in runs]


def _write(text: str, output: str) -> None:
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputError(output, error) from None
