"""Long work of a command: one line per question, a bar, the way on after a stop, and the stop itself."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mdqa.cancellation import CancelToken
from mdqa.commands.options import one_line
from mdqa.commands.results import Line, ResultFile, Settled
from mdqa.errors import Cancelled, MdqaError
from mdqa.records import Question

Work = Callable[[Question, CancelToken], Line]
"""The finished line of a question; Cancelled if a stop was asked for before it was finished."""


def work_through(questions: Sequence[Question], results: ResultFile, work: Work, *, output: str, quiet: bool) -> int:
    """Write the lines of the questions that have none yet; the exit status: 1 if some are left or failed.

    Args:
        questions: all of them, in the order of the lines.
        results: holds the finished lines, also those of earlier calls.
        work: makes a line; a question that failed has one too, with its ``error``.
        output: the file's name, for people.
        quiet: no progress bar.
    """
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    todo = results.missing(questions)
    kept = len(questions) - len(todo)
    if kept:
        print(f"{kept} of {len(questions)} questions are done already in {output}", file=sys.stderr)
    with (
        stop_by_signal() as cancel,
        tqdm(
            total=len(questions), initial=kept, unit="question", file=sys.stderr, disable=quiet, dynamic_ncols=True
        ) as bar,
    ):
        for item in todo:
            if cancel.cancelled:
                break
            try:
                line = work(item, cancel)
            except Cancelled:
                break
            if error := line.get("error"):
                bar.write(f"question {item.id!r} failed: {one_line(error['message'])}", file=sys.stderr)
            results.append(line, item)
            bar.update()
    left, failed = len(results.missing(questions)), results.failed(questions)
    if left:
        print(f"stopped; {left} questions are left. The same command goes on from here.", file=sys.stderr)
    if failed:
        print(f"{failed} of {len(questions)} questions failed; --retry-failed runs them again.", file=sys.stderr)
    return 1 if left or failed else 0


def line_of(item: Question, settled: Settled, find: Callable[[], Line]) -> Line:
    """The line of a question: how it is made, then what ``find`` finds, or why it fails (any MdqaError of it)."""
    line: Line = {"id": item.id, "run": uuid.uuid4().hex, "question": item.question, **settled.about()}
    try:
        return {**line, "status": "ok", **find()}
    except MdqaError as problem:
        return {**line, "status": "failed", "error": {"type": type(problem).__name__, "message": str(problem)}}


@contextmanager
def stop_by_signal() -> Iterator[CancelToken]:
    """A token that Ctrl-C or SIGTERM sets. A second signal does what it always does."""
    cancel = CancelToken()
    before: dict[int, Any] = {}

    def stop(number: int, _: FrameType | None) -> None:
        cancel.cancel()
        signal.signal(number, before[number])

    for caught in (signal.SIGINT, signal.SIGTERM):
        before[caught] = signal.signal(caught, stop)
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
