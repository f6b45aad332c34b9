"""What people said of the items of a queue, read from the database for commands, and written into files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mdqa.agreement.dataset import write_folder
from mdqa.agreement.learning import Content, Marked, marked_questions, verdicts
from mdqa.agreement.ratings import Consensus, Rated, consensus
from mdqa.agreement.table import COLUMNS, agreement_rows, agreement_table
from mdqa.commands.database import opened, storage_module
from mdqa.commands.options import check_output
from mdqa.errors import ConfigError, InputError, OutputError
from mdqa.records import RunResult

OF_QUEUES = ("labels", "agreement", "evidence", "dataset")
"""What ``export`` writes about queues."""


@dataclass(frozen=True)
class Labelled:
    """A queue's runs, what counts of people's labels, the decisions, and what people say together."""

    queue: str
    runs: Mapping[str, RunResult]
    ratings: Sequence[Rated]
    decisions: Mapping[int, Rated]
    guidelines: str

    @property
    def together(self) -> list[Consensus]:
        """By item, in the order in which items were first labelled."""
        return list(consensus(self.ratings, self.decisions).values())


def labelled(store: Any, queue: str) -> Labelled:
    """What people said of a queue; without a name, of the only one. InputError where there is none or several."""
    known = [found.name for found in store.queues.queues()]
    if not queue and len(known) == 1:
        queue = known[0]
    named = next((name for name in known if name.casefold() == queue.casefold()), "")
    if not named:
        there = ", ".join(map(repr, known)) or "none yet"
        raise InputError(f"choose a queue; there is: {there}", place="--queue")
    with store.read():
        ratings, decisions = store.labels.counting(named), store.labels.adjudicated(named)
        wanted = dict.fromkeys(
            [*(item.run for item in store.queues.items(named, limit=sys.maxsize)), *(rating.run for rating in ratings)]
        )
        guidelines = store.queue_settings.of(named).guidelines
        runs = {run_id: store.runs.get(run_id) for run_id in wanted}
    return Labelled(named, runs, ratings, decisions, guidelines)


def queue_verdicts(store: Any, *, method: str, model: str, treatment: str = "") -> dict[Content, bool]:
    """By a question's content whether people found a method's answers right, over all queues of the database."""
    runs: dict[str, RunResult] = {}
    together: list[Consensus] = []
    for queue in store.queues.queues():
        found = labelled(store, queue.name)
        runs |= found.runs
        together += found.together
    return verdicts(runs, together, method=method, model=model, treatment=treatment)


def export_labels(args: argparse.Namespace, database: Path) -> int:
    """``export`` of what is about queues."""
    if args.format == "sqlite":
        raise ConfigError("a sqlite snapshot holds everything, labels too; choose --what runs, or jsonl or csv")
    if args.names and args.what != "dataset":
        raise ConfigError("--names belongs to --what dataset; the other files have the names")
    if args.format == "csv" and args.what in ("evidence", "dataset"):
        raise ConfigError(f"{args.what} is not a table; leave out --format csv")
    with opened(database) as store:
        if args.what == "dataset":
            number, words = _dataset(args, labelled(store, args.queue)), "labelled items"
        else:
            with _output(args.output) as stream:
                number, words = _write(args, store, stream)
    print(f"{number} {words} of {database}", file=sys.stderr)
    return 0


def _write(args: argparse.Namespace, store: Any, stream: TextIO) -> tuple[int, str]:
    if args.what == "labels":
        files = storage_module("label_files")
        write = files.write_table if args.format == "csv" else files.write_lines
        return write(store, stream, args.queue), "entries of the log of labels"
    found = labelled(store, args.queue)
    if args.what == "evidence":
        marked = write_evidence(found, stream)
        return len(marked.questions), f"questions with evidence ({marked.undecided} more without a majority)"
    rows = agreement_rows(agreement_table(found.ratings, found.decisions, found.runs), found.queue)
    if args.format == "csv":
        storage_module("export").write_csv(stream, COLUMNS, rows)
    else:
        stream.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    return len(rows), "coefficients"


def write_evidence(found: Labelled, stream: TextIO) -> Marked:
    """Write the questions of a queue, people's evidence marked gold, as lines that are read as questions."""
    marked = marked_questions(found.runs, found.together)
    for question in marked.questions:
        stream.write(json.dumps(question.model_dump(mode="json"), ensure_ascii=False, allow_nan=False) + "\n")
    return marked


def _dataset(args: argparse.Namespace, found: Labelled) -> int:
    if args.output == "-":
        raise ConfigError("a data set is a folder; give --output a path")
    options = {"queue": found.queue, "guidelines": found.guidelines, "names": args.names}
    try:
        return write_folder(Path(args.output), found.runs, found.ratings, found.decisions, **options)
    except OSError as error:
        raise OutputError(args.output, error) from None


@contextmanager
def _output(output: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears complete or not at all."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    check_output(path)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise OutputError(output, error) from None
    finally:
        part.unlink(missing_ok=True)
