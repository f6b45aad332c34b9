"""Questions, setups and workers for tests of evaluations; importable from worker processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from mdqa.backends.scripted import ScriptedBackend
from mdqa.evaluation.plan import Entry, make_entry, tasks
from mdqa.evaluation.work import Line, Setup, Worker
from mdqa.methods.base import Tools
from mdqa.records import Document, Question

ENTRIES = (make_entry("vanilla", {}), make_entry("retrieve_read", {"top_k": 1}, label="top1"))


def question(number: int) -> Question:
    documents = (
        Document(id="a", title="Velden", text=f"The river Ostra{number} flows through Velden.", gold=True),
        Document(id="b", title="Bread", text="Rye bread keeps for a week.", gold=False),
        Document(id="c", title="Towns", text="Some town has a market.", gold=False),
    )
    return Question(
        id=f"q{number}",
        question="Which river flows through Velden?",
        answers=(f"The river Ostra{number} flows through Velden",),
        documents=documents,
    )


QUESTIONS = tuple(question(number) for number in range(6))
TASKS = tasks(ENTRIES, QUESTIONS)


def setup(entries: tuple[Entry, ...] = ENTRIES, seed: int = 0) -> Setup:
    return Setup(
        model="scripted",
        backend="auto",
        devices=("cpu",),
        dtype="auto",
        cache=Path(),
        entries=entries,
        seed=seed,
        overflow="refuse",
    )


def scripted_worker(number: int) -> Worker:
    backend = ScriptedBackend()
    return Worker(setup(), backend, {entry.label: Tools(backend) for entry in ENTRIES})


def without_times(line: Line) -> Line:
    """A result line without what may differ between two runs of one task."""
    stages = [{**stage, "seconds": 0} for stage in line["stages"]]
    kept = {name: value for name, value in line.items() if name not in ("run", "created", "input_sha256")}
    return {**kept, "stages": stages, "cost": {**line["cost"], "seconds": 0}}


class MortalWorker(Worker):
    """A worker that kills its process on question q2: once, or every time it is asked."""

    def __init__(self, folder: Path, always: bool) -> None:
        backend = ScriptedBackend()
        super().__init__(setup(), backend, {entry.label: Tools(backend) for entry in ENTRIES})
        self._folder, self._always = folder, always

    def line(self, task, cancel=None):
        mark = self._folder / f"{task.entry}-{task.item.id}"
        if task.item.id == "q2" and (self._always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)  # so that no worker does everything before another is there
        return super().line(task, cancel)


def mortal_worker(folder: Path, always: bool, number: int) -> Worker:
    return MortalWorker(folder, always)
