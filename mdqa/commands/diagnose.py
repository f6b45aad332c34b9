"""Say per wrong answer where it was lost: evidence not in the input, dropped, not cited, a right view overruled ...

--results FILE [FILE ...] are result lines of answer or evaluate, --input FILE the questions that were answered. One
JSON line per wrong answer goes to --output, with id, verdict, stage and doc_ids, the details (score and rank of lost
evidence in the signal that decided, and what was kept in its place), and in also the other verdicts that apply. The
last lines, one per method, hold the counts; the same as a table goes to standard error.

--db FILE adds what people said: an answer that a majority accepts is no fault of the method but of the metric. Without
--results, the runs of the database itself are diagnosed; only these keep the raw replies of the model, so that only
with them an answer can be found that the model wrote and that was not taken from its reply.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mdqa.benchmarks.placing import Placeable
from mdqa.commands.database import opened
from mdqa.commands.options import check_output, questions_in, write_lines
from mdqa.commands.results import input_digest
from mdqa.diagnosis.cases import RIGHT, VERDICTS
from mdqa.diagnosis.diagnosing import Diagnoses, diagnose_all
from mdqa.errors import ConfigError, InputError
from mdqa.records import RunResult
from mdqa.registry import READERS
from mdqa.reporting import changed_options
from mdqa.result_lines import lines_of, read_groups
from mdqa.trace import ModelCall

Source = tuple[str, str, Sequence[RunResult]]
"""The runs of one method with one set of options: the file, the entry of an evaluation (empty for others), the runs."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--results", type=Path, nargs="+", metavar="FILE", help="result files of answer or evaluate")
    parser.add_argument("--input", type=Path, metavar="FILE", help="with --results: the questions that were answered")
    parser.add_argument("--format", default="auto", choices=("auto", *READERS), help="the format of --input")
    parser.add_argument("--db", type=Path, metavar="FILE", help="people's verdicts; without --results also the runs")
    parser.add_argument(
        "--metric",
        default="sub_em",
        choices=tuple(RIGHT),
        help="what counts as right: SubEM (default), EM, or all accepted answers and no wrong one (RAMDocs)",
    )
    parser.add_argument(
        "--evidence",
        default="all",
        choices=("all", "any"),
        help="which of the documents marked gold an answer needs (default: all)",
    )
    parser.add_argument("--output", default="-", metavar="FILE", help="JSON lines; - is standard output (default)")


def run(args: argparse.Namespace) -> int:
    """Diagnose the wrong answers."""
    _check(args)
    stored: dict[str, Sequence[ModelCall]] = {}
    if args.results:
        groups = _from_files(args)
        labels = _labels(args.db, [result for _, _, results in groups for result in results]) if args.db else {}
    else:
        groups, labels, stored = _from_database(args.db)
    rows: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    for file, entry, results in groups:
        found = diagnose_all(
            results,
            metric=args.metric,
            need=args.evidence,
            labels=labels,
            replies=lambda name: stored.get(name, ()),
        )
        rows += [item.to_line() for item in found.items]
        summaries.append(_summary(file, entry, results, found, args.metric))
    write_lines([*rows, *summaries], args.output)
    print(table(summaries), file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    if not args.results and not args.db:
        raise ConfigError("--results FILE with --input FILE, or --db FILE: say what is to be diagnosed")
    if bool(args.results) != bool(args.input):
        raise ConfigError("--results and --input belong together: the runs, and the questions that they answered")
    if args.db and not args.db.is_file():
        raise InputError("there is no such database", place=str(args.db))
    if args.output != "-":
        for source in (*(args.results or ()), args.input, args.db):
            check_output(Path(args.output), source)


def _from_files(args: argparse.Namespace) -> list[Source]:
    questions = Placeable(questions_in(args.input, args.format, "all", None))
    found: list[Source] = []
    for path in args.results:
        groups = read_groups(lines_of(path), questions, input_digest, file=str(path))
        found += [(str(path), group.label, results) for group, results in groups.items()]
    return found


def _labels(path: Path, results: Sequence[RunResult]) -> dict[str, bool]:
    """By run id, what the majority of people said of the run or of the same answer to the same question."""
    with opened(path) as store:
        judged = _judged(store)
        said: dict[tuple[str, str], Counter[bool]] = {}
        for name, verdict in judged.items():
            run = store.runs.get(name)
            said.setdefault((run.question.question, run.answer), Counter())[verdict] += 1
    found: dict[str, bool] = {}
    for result in results:
        votes = said.get((result.question.question, result.answer), Counter())
        if result.id in judged:
            found[result.id] = judged[result.id]
        elif votes[True] != votes[False]:
            found[result.id] = votes[True] > votes[False]
    return found


def _judged(store: Any) -> dict[str, bool]:
    """Every run that people judged, but for ties: whether the majority of their latest verdicts accepts its answer."""
    verdicts: dict[str, bool] = {}
    for name in dict.fromkeys(label.run for label in store.annotations.list() if label.kind == "correct"):
        votes = Counter(bool(label.value) for label in store.annotations.latest(name))
        if votes[True] != votes[False]:
            verdicts[name] = votes[True] > votes[False]
    return verdicts


def _from_database(path: Path) -> tuple[list[Source], dict[str, bool], dict[str, Sequence[ModelCall]]]:
    """The finished runs of a database by method and options, people's verdicts, and every run's model calls."""
    groups: dict[str, list[RunResult]] = {}
    calls: dict[str, Sequence[ModelCall]] = {}
    with opened(path) as store:
        labels = _judged(store)
        for name in store.runs.ids():
            run = store.runs.get(name)
            if run.status == "running":
                continue
            key = json.dumps([run.method, run.model, run.config], sort_keys=True)
            groups.setdefault(key, []).append(run)
            calls[name] = [event for event in store.runs.events(name) if isinstance(event, ModelCall)]
    if not groups:
        raise InputError("there is no finished run in it", place=str(path))
    return [(str(path), "", runs) for runs in groups.values()], labels, calls


def _summary(file: str, entry: str, results: Sequence[RunResult], found: Diagnoses, metric: str) -> dict[str, Any]:
    first = results[0]
    return {
        "summary": first.method,
        "file": file,
        "entry": entry,
        "config": changed_options(first.method, first.config),
        "model": first.model,
        "metric": metric,
        "n": len(results),
        "right": found.right,
        "wrong": len(found.items),
        "without_answers": found.without_answers,
        "verdicts": found.counts,
        "applies": found.also,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The counts as a table: a line per verdict that was given or applies, a column per method."""
    names = [verdict for verdict in VERDICTS if any(row["applies"][verdict] for row in rows)]
    titles = [
        row["entry"] or " ".join([row["summary"], *(f"{k}={v}" for k, v in row["config"].items())]) for row in rows
    ]
    lines = [["", *titles]]
    for name in ("n", "right", "wrong", "without_answers"):
        lines.append([name, *(str(row[name]) for row in rows)])
    for name in names:
        lines.append([f"  {name}", *(f"{row['verdicts'][name]} ({row['applies'][name]})" for row in rows)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    body = "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in lines
    )
    return f"{body}\nin brackets: wrong answers that a verdict applies to, given or not"
