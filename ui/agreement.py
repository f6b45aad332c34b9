"""The verbs of the Agreement tab, without Gradio: what a queue's labels say, decisions, what labels are used for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from mdqa.agreement import judge_accuracy, no_filter, threshold
from mdqa.agreement.dataset import write_archive
from mdqa.agreement.learning import marked_questions
from mdqa.agreement.people import Person, Stretch, over_time, people
from mdqa.agreement.ratings import Consensus, consensus, contested
from mdqa.agreement.table import COLUMNS, Table, agreement_rows, agreement_table
from mdqa.benchmarks.base import in_split
from mdqa.candidates import Candidate, candidates_of
from mdqa.errors import InputError
from mdqa.records import RunResult
from mdqa.reports.base import Report
from storage.encoding import to_json
from storage.export import write_csv
from storage.label_files import write_lines, write_table
from storage.labels import Rating, Refused
from storage.queues import UnknownQueue
from storage.runs import UnknownRun
from ui.annotating import sayable
from ui.context import Context
from ui.inputs import LoadedFile
from ui.planning import Wish
from ui.planning import start as start_calibration
from ui.views.markup import plural

STEP = 25
"""Runs read between two words on the progress."""

MOST = 5_000
"""Items of a queue that are read; a queue with more says so."""

HELD_OUT = 50
"""Held-out questions on which new heads are measured, beside the heads before."""

USES: Mapping[str, tuple[str, Callable[[Mapping[str, RunResult], list[Consensus]], Report]]] = MappingProxyType(
    {
        "judge": ("The judge's accuracy, by people", judge_accuracy.report),
        "threshold": ("DocScore's threshold, from evidence marks", threshold.report),
        "no_filter": ("MADARA's No-Filter accuracy, by people", no_filter.report),
    }
)
"""What labels can be used for at once: the words of its button and the report that it makes."""

FILES: Mapping[str, str] = MappingProxyType(
    {
        "labels.jsonl": "All labels, to import again (JSON lines)",
        "labels.csv": "All labels (CSV)",
        "agreement.csv": "The table of agreement (CSV)",
        "evidence.jsonl": "Questions with people's evidence (JSON lines)",
        "dataset.zip": "Hugging Face data set (folder with a card)",
    }
)
"""What can be saved, by the file's name."""


@dataclass(frozen=True)
class Reading:
    """How far the runs of a queue have been read."""

    done: int
    total: int


@dataclass(frozen=True)
class Standing:
    """What is known of a queue: its runs, what counts of its labels, decisions, and what is computed of them."""

    queue: str
    runs: Mapping[str, RunResult]
    ratings: tuple[Rating, ...]
    decisions: Mapping[int, Rating]
    together: Mapping[int, Consensus]
    contested: tuple[Consensus, ...]
    missing: int = 0

    @property
    def titles(self) -> tuple[str, ...]:
        """What the two candidates are called, where that is the same for all items; else nothing."""
        found = {tuple(one.title for one in candidates_of(run)) for run in self.runs.values()}
        return found.pop() if len(found) == 1 else ()


@dataclass(frozen=True)
class Numbers:
    """Agreement, everybody by themselves, and how it went on, by tens of labels and by days."""

    table: Table
    people: tuple[Person, ...]
    tens: tuple[Stretch, ...]
    days: tuple[Stretch, ...]


@dataclass(frozen=True)
class Item:
    """An item to decide on: its run, the candidates, everybody's rating and the decision, if there is one.

    ``labels``: what can be decided; of a single answer only whether it is right.
    """

    item: int
    run: RunResult
    candidates: tuple[Candidate, ...]
    ratings: tuple[Rating, ...]
    together: Consensus
    decision: Rating | None
    labels: tuple[str, ...]


def queue_names(context: Context) -> list[str]:
    """The queues that have items or labels, those with most items first."""
    found = sorted(context.store.queues.queues(), key=lambda queue: (-queue.items, queue.name))
    return [queue.name for queue in found]


def read(
    context: Context, queue: str, *, only_contested: bool = False, step: int = STEP
) -> Iterator[Reading | Standing]:
    """Read a queue, saying how far every ``step`` runs; at last what is known of it. InputError if there is none.

    ``only_contested``: read the runs of those items only on which people differ.
    """
    ratings, decisions = _labels(context, queue)
    together = consensus(ratings, decisions)
    differing = contested(together)
    if only_contested:
        wanted = [one.run for one in differing]
    else:
        items = context.store.queues.items(queue, limit=MOST)
        wanted = list(dict.fromkeys([*(item.run for item in items), *(rating.run for rating in ratings)]))
    runs: dict[str, RunResult] = {}
    for number, run_id in enumerate(wanted, 1):
        try:
            runs[run_id] = context.store.runs.get(run_id)
        except UnknownRun:  # deleted since the list was made
            continue
        if number % step == 0:
            yield Reading(number, len(wanted))
    yield Standing(queue, runs, tuple(ratings), decisions, together, tuple(differing), len(wanted) - len(runs))


def standing(context: Context, queue: str, *, only_contested: bool = False) -> Standing:
    """The last word of :func:`read`."""
    *_, found = read(context, queue, only_contested=only_contested)
    assert isinstance(found, Standing)
    return found


def numbers(found: Standing) -> Numbers:
    """Everything that is computed of the labels."""
    # Of a run that was deleted nobody can tell any more how many answers it had.
    ordered = {run_id for run_id, run in found.runs.items() if len(candidates_of(run)) > 1}
    unordered = {rating.run for rating in found.ratings} - ordered
    return Numbers(
        agreement_table(found.ratings, found.decisions, found.runs),
        tuple(people(found.ratings, found.decisions, unordered=unordered)),
        tuple(over_time(found.ratings)),
        tuple(over_time(found.ratings, by="day")),
    )


def item(context: Context, queue: str, number: int) -> Item:
    """An item of a queue with all that was said of it; InputError if nobody labelled it or its run is gone."""
    ratings, decisions = _labels(context, queue)
    mine = tuple(rating for rating in ratings if rating.item == number)
    decision = decisions.get(number)
    if not mine and decision is None:
        raise InputError("nobody has labelled this item (any more); look at the list again", place="Item")
    run = context.store.runs.get((decision or mine[0]).run)
    together = consensus(mine, {number: decision} if decision else {})[number]
    candidates = candidates_of(run)
    offered = sayable(context.store.queue_settings.of(queue).labels, len(candidates))
    return Item(number, run, candidates, mine, together, decision, offered)


def decide(context: Context, queue: str, number: int, label: str, who: str, note: str, token: str) -> Rating:
    """Keep a decision on an item of the queue as a further entry; an empty label takes the decision back.

    ``token`` belongs to the form: saved twice, it is one decision. InputError says what cannot be kept.
    """
    item(context, queue, number)
    try:
        return context.store.labels.adjudicate(number, label, who, note, token)
    except Refused as problem:
        raise InputError(str(problem), place="Decision") from None


def use(found: Standing, what: str) -> Report:
    """The report that labels are used for (:data:`USES`); InputError for another name."""
    if what not in USES:
        raise InputError(f"there is nothing called {what!r}; there is: {', '.join(USES)}", place="Use these labels")
    return USES[what][1](found.runs, list(found.together.values()))


def calibrate_heads(context: Context, found: Standing, model: str) -> str:
    """Put a calibration of CAFE's heads on people's evidence marks in line; the profile's name.

    The calibration half is used, the other one measures the new heads beside the ones before. MdqaError, before any
    model work, says what is missing.
    """
    marked = marked_questions(found.runs, found.together.values()).questions
    if not marked:
        raise InputError("nobody has marked evidence in this queue yet, and heads are found by it", place="Evidence")
    if next(in_split(marked, "calibration"), None) is None:
        raise InputError(
            f"this queue has {plural(len(marked), 'question')} with marked evidence, and none falls into the "
            "calibration half, on which heads are found. Mark evidence in more items in Annotate; or save “Questions "
            "with people's evidence” below, load that file in Profiles and take all of it; or run: "
            f"python -m mdqa calibrate --method cafe --queue {shlex.quote(found.queue)} --split all --name NAME "
            f"--model {shlex.quote(model)}",
            place="Evidence",
        )
    name = f"people {datetime.now():%Y-%m-%d %H:%M:%S}"
    file = LoadedFile(f"evidence marked in “{found.queue}”", marked, (), ())
    wish = Wish(
        *("cafe", model, (file,)), split="calibration", limit=len(marked), held_out=HELD_OUT, name=name, before=True
    )
    start_calibration(context, wish)
    return name


def save(context: Context, queue: str, name: str, folder: Path) -> Path:
    """Write one of :data:`FILES` into a folder; InputError where there is nothing to save."""
    if name not in FILES:
        raise InputError(f"there is no file {name!r}; there is: {', '.join(FILES)}", place="Save")
    path = folder / name
    if name.startswith("labels"):
        with path.open("w", encoding="utf-8", newline="") as stream:
            (write_table if name.endswith("csv") else write_lines)(context.store, stream, queue)
        return path
    found = standing(context, queue)
    if name == "agreement.csv":
        if not found.ratings:
            raise InputError("nobody has labelled anything in this queue yet", place="Agreement")
        with path.open("w", encoding="utf-8", newline="") as stream:
            write_csv(stream, COLUMNS, agreement_rows(numbers(found).table, queue))
        return path
    if name == "dataset.zip":
        guidelines = context.store.queue_settings.of(queue).guidelines
        write_archive(path, found.runs, found.ratings, found.decisions, queue=queue, guidelines=guidelines)
        return path
    marked = marked_questions(found.runs, found.together.values()).questions
    if not marked:
        raise InputError("nobody has marked evidence in this queue yet", place="Evidence")
    lines = (to_json(json.loads(question.model_dump_json()), question.id) for question in marked)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _labels(context: Context, queue: str) -> tuple[list[Rating], dict[int, Rating]]:
    try:
        with context.store.read():
            return context.store.labels.counting(queue), context.store.labels.adjudicated(queue)
    except UnknownQueue:
        raise InputError(f"there is no queue {queue!r}; choose one of the list", place="Queue") from None
