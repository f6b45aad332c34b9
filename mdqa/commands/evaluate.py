"""Run several methods over the same questions and compare them: answers, evidence, costs, with intervals and tests.

--methods A,B[,LABEL=C:KEY=VALUE:...] names the entries: methods, or vanilla, oracle, closed_book, bm25, dense, hybrid
for methods with options, each with a label and options of its own if wanted. The others are compared with the first.
--positions 1,5,10 puts the evidence of every question in these places in turn. --setting gives all entries the evidence
only (oracle), no document (closed_book), or everything but the evidence (no_gold).

DIR gets results.jsonl (a line per run, as answer writes them, with the entry's label), report.md and report.json. An
interrupted evaluation goes on where it stopped when the same command is given again, also with more entries, positions
or questions. --report-only makes the reports anew from results.jsonl; score --results reads it too.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from mdqa.benchmarks.placing import SETTINGS, Placeable
from mdqa.commands.database import stored_profiles
from mdqa.commands.entries import parse_entries, read_plan
from mdqa.commands.options import (
    add_corpus_arguments,
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    choose_profile,
    corpus_from,
    one_line,
    positive,
    questions_from,
    questions_in,
)
from mdqa.commands.results import DiskFile, Settled, input_digest, open_file
from mdqa.commands.workers import add_worker_arguments, run_tasks, threads
from mdqa.commands.working import stop_by_signal
from mdqa.comparison.markdown import to_markdown
from mdqa.comparison.numbers import report
from mdqa.comparison.observations import series_of
from mdqa.errors import ConfigError, InputError, OutputError
from mdqa.evaluation.plan import Entry, Task, check_closed_book, placed_questions, placements, tasks
from mdqa.evaluation.work import Line, Setup
from mdqa.records import Overflow, Profile, Question
from mdqa.registry import method_class
from mdqa.result_lines import lines_of, results_in
from mdqa.settings import Settings

RESULTS, MARKDOWN, JSON = "results.jsonl", "report.md", "report.json"

SHOWN_LEFT_OUT = 3
"""Questions that cannot be placed whose reasons are printed; the others are counted."""

Plan = list[tuple[Setup, list[Task]]]
"""Per model what its runs have in common, and all of its tasks."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--methods",
        action="append",
        metavar="ENTRIES",
        help="entries with commas between: [LABEL=]METHOD[:KEY=VALUE ...]",
    )
    what.add_argument("--plan", type=Path, metavar="FILE", help="entries as JSON: [{label, method, set, profile}, ...]")
    what.add_argument("--report-only", action="store_true", help="make the reports from the results that are there")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for results and reports")
    parser.add_argument(
        "--positions", type=_numbers, default=(), metavar="1,5,10", help="places of the evidence, from 1"
    )
    parser.add_argument(
        "--documents", dest="totals", type=_numbers, default=(), metavar="10,20", help="numbers of documents in total"
    )
    parser.add_argument(
        "--setting",
        dest="for_all",  # what is called setting is done while questions are read, before positions
        default="given",
        choices=SETTINGS,
        help="gold documents only (oracle), no documents (closed_book), or all but the gold ones (no_gold)",
    )
    parser.add_argument("--models", metavar="M,...", help="several models, in place of --model")
    add_worker_arguments(parser)
    parser.add_argument(
        "--overflow", default="refuse", choices=get_args(Overflow), help="documents that do not fit the model's window"
    )
    parser.add_argument("--retry-failed", action="store_true", help="run questions again that failed before")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="all", seed=0)
    add_corpus_arguments(parser)
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run what is missing and write the reports; 1 if runs failed or the work was stopped."""
    if args.report_only:
        if not (args.output / RESULTS).is_file():
            raise InputError("there is no such file; run the evaluation first", place=str(args.output / RESULTS))
        _write_reports(args, _all_questions(args))
        return 0
    settings = Settings.from_environment()
    entries = read_plan(args.plan) if args.plan else parse_entries(args.methods)
    if args.for_all == "closed_book":
        check_closed_book(entries)
    sources = questions_from(args)
    plan = _plan(args, settings, entries, _placed(args, sources))
    _make_folder(args.output, args.input)
    settled = _SettledEntries(plan)
    with open_file(str(args.output / RESULTS), settled, _key, retry_failed=args.retry_failed) as results:
        left = _run_all(args, plan, results)
        keys = [_task_key(setup, task) for setup, planned in plan for task in planned]
        failed = results.failures(keys)
        if not left:
            results.order(keys)
            others = set(results.keys()) - set(keys)
            _write_reports(args, _all_questions(args) if others else sources)
    if failed:
        print(f"{failed} of {len(keys)} runs failed; --retry-failed runs them again.", file=sys.stderr)
    return 1 if left or failed else 0


def _numbers(text: str) -> tuple[int, ...]:
    """Whole numbers above zero with commas between, for argparse."""
    numbers = tuple(positive(part) for part in text.split(","))
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text} names a number twice")
    return numbers


def _placed(args: argparse.Namespace, sources: Sequence[Question]) -> list[Question]:
    reasons: list[str] = []
    found = placed_questions(sources, placements(args.positions, args.totals, args.for_all), reasons.append)
    for reason in reasons[:SHOWN_LEFT_OUT]:
        print(f"left out: {one_line(reason)}", file=sys.stderr)
    if len(reasons) > SHOWN_LEFT_OUT:
        print(f"left out: {len(reasons) - SHOWN_LEFT_OUT} more that cannot be placed so", file=sys.stderr)
    if not found:
        raise InputError("no question can be placed so", place=str(args.input))
    return found


def _plan(args: argparse.Namespace, settings: Settings, entries: Sequence[Entry], questions: list[Question]) -> Plan:
    from mdqa.backends.loading import default_model  # noqa: PLC0415 (imports torch)

    if args.models and args.model:
        raise ConfigError("--model and --models: give one of them")
    one = args.model or settings.model
    models = [name.strip() for name in (args.models.split(",") if args.models else [one or default_model()])]
    if len(set(models)) < len(models) or not all(models):
        raise ConfigError(f"--models {args.models}: a model is named twice or not at all")
    uses = any(method_class(entry.method).uses_profile for entry in entries)
    stored = stored_profiles(args.db or settings.database) if uses else ()
    planned = tasks(entries, questions)
    setup = Setup(
        model="",
        backend=args.backend,
        devices=tuple((args.device or settings.device).split(",")),
        dtype=args.dtype or settings.dtype,
        cache=settings.cache,
        entries=(),
        seed=args.seed,
        overflow=args.overflow,
        threads=threads(args),
    )
    return [
        (replace(setup, model=model, entries=tuple(_with_profile(e, model, stored) for e in entries)), planned)
        for model in models
    ]


def _with_profile(entry: Entry, model: str, stored: Sequence[Profile]) -> Entry:
    if not method_class(entry.method).uses_profile:
        return entry
    return replace(entry, profile=choose_profile(entry.method, model, entry.profile_name, stored))


def _make_folder(folder: Path, source: Path) -> None:
    """The output folder, made if need be; InputError if the input is one of the files that will be written."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"this folder cannot be made: {error.strerror}", place=str(folder)) from None
    for name in (RESULTS, MARKDOWN, JSON):
        path = folder / name
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError("input and output are the same file", place=str(path))


class _SettledEntries:
    """What must be the same for a line to stay: all of it for entries of the plan; others only have to be entries."""

    def __init__(self, plan: Plan) -> None:
        self._settled = {
            (setup.model, entry.label): Settled(
                method=entry.method,
                model=setup.model,
                seed=setup.seed,
                profile=entry.profile.name if entry.profile else "",
                config=entry.config.model_dump(mode="json"),
                entry=entry.label,
            )
            for setup, _ in plan
            for entry in setup.entries
        }

    def difference(self, line: Line) -> str:
        """How a line was made otherwise than its entry says, in words; empty if it was not."""
        model, label = line.get("model"), line.get("entry")
        if not (isinstance(model, str) and isinstance(label, str)):
            return "it is no line of evaluate"
        settled = self._settled.get((model, label))
        return settled.difference(line) if settled else ""


def _key(line: Line) -> tuple[str, str, str]:
    """What tells a line from the others: model, entry and question."""
    return line["model"], line["entry"], line["id"]


def _task_key(setup: Setup, task: Task) -> tuple[str, str, str]:
    return setup.model, *task.key


def _run_all(args: argparse.Namespace, plan: Plan, results: DiskFile) -> int:
    """Run what is missing, model by model; how many runs are left."""
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    total = sum(len(planned) for _, planned in plan)
    todo = [(setup, [t for t in planned if not results.has(_task_key(setup, t), t.item)]) for setup, planned in plan]
    left = sum(len(missing) for _, missing in todo)
    if left < total:
        print(f"{total - left} of {total} runs are in {args.output / RESULTS} already", file=sys.stderr)
    with (
        stop_by_signal() as cancel,
        tqdm(
            total=total, initial=total - left, unit="run", file=sys.stderr, disable=args.quiet, dynamic_ncols=True
        ) as bar,
    ):
        for setup, missing in todo:
            if not missing or cancel.cancelled:
                continue
            with closing(run_tasks(args, setup, missing, cancel)) as done:
                for task, line in done:
                    results.append(line, task.item)
                    left -= 1
                    if line["status"] != "ok":
                        message = one_line(line["error"]["message"])
                        bar.write(f"{task.entry}: question {task.item.id!r} failed: {message}", file=sys.stderr)
                    bar.update()
    if left:
        print(f"stopped; {left} runs are left. The same command goes on from here.", file=sys.stderr)
    return left


def _all_questions(args: argparse.Namespace) -> list[Question]:
    """Every question of the input: earlier runs may have answered other ones than this."""
    return questions_in(args.input, args.format, "all", None, corpus_from(args))


def compared(path: Path, questions: Sequence[Question]) -> dict[str, Any]:
    """The comparison of the entries in a result file, ready for JSON."""
    return report(series_of(results_in(lines_of(path), Placeable(questions), input_digest, file=str(path))))


def _write_reports(args: argparse.Namespace, questions: Sequence[Question]) -> None:
    found = compared(args.output / RESULTS, questions)
    again = ["--report-only", "--input", str(args.input), "--output", str(args.output)]
    texts = {
        JSON: json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n",
        MARKDOWN: to_markdown(found, f"python -m mdqa evaluate {shlex.join(again)}"),
    }
    for name, text in texts.items():
        path = args.output / name
        partial_file = path.with_name(f".{name}.{os.getpid()}.new")
        try:
            partial_file.write_text(text, encoding="utf-8", errors="backslashreplace")
            partial_file.replace(path)
        except OSError as error:
            partial_file.unlink(missing_ok=True)
            raise OutputError(str(path), error) from None
    print(f"{args.output / MARKDOWN} compares {len(found['entries'])} entries", file=sys.stderr)
