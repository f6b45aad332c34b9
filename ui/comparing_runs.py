"""The verbs of "One question": questions to choose from, their runs, and what is set side by side; no Gradio here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from mdqa.errors import InputError
from mdqa.records import Cost, RunResult
from mdqa.reporting import changed_options
from mdqa.scoring.answers import run_is_right
from mdqa.trace import ModelCall
from storage.runs import RunRow, UnknownRun
from ui.actions import run_id_from, title_of
from ui.context import Context
from ui.following import error_sentence
from ui.inputs import page_within
from ui.views.compare import Offered, Side

PAGE = 6
"""Questions that are offered at once."""

OFFERED = 60
"""Runs of a question that are offered, the newest ones."""

MOST_RUNS = 6
"""Runs that stand side by side at most."""


def offered(context: Context, text: str = "", page: int = 0) -> Offered:
    """Questions to compare runs of, those that several methods answered first."""
    words = text.strip()[:200]
    total = context.store.questions.count(words)
    first = page_within(page, total, PAGE) * PAGE
    return Offered(tuple(context.store.questions.asked(words, limit=PAGE, offset=first)), total, first)


def runs_of(context: Context, question: int) -> list[RunRow]:
    """The newest finished runs of a question, the newest first."""
    found = []
    for run_id in context.store.questions.runs(question, OFFERED):
        with suppress(UnknownRun):
            found.append(context.store.runs.row(run_id))
    return found


def first_runs(rows: Sequence[RunRow]) -> list[str]:
    """The runs that are compared unless told: the newest of every method and model, answering directly first.

    One that did not go through is the newest only where none did.
    """
    newest: dict[tuple[str, str], RunRow] = {}
    for row in sorted(rows, key=lambda row: row.status != "ok"):
        newest.setdefault((row.method, row.model), row)
    chosen = sorted(newest.values(), key=lambda row: row.method != "direct")
    return [row.id for row in chosen[:MOST_RUNS]]


def run_label(row: RunRow) -> str:
    """A run in the list of those that can be chosen."""
    verdict = "" if row.correct is None else " (correct)" if row.correct else " (not correct)"
    return f"{title_of(row.method)}{verdict} · {row.model} · {row.created.replace('T', ' ')[:16]}"


def read_address(text: object) -> list[str]:
    """Run ids of an address, parted by commas; UnknownRun for what names none."""
    ids = [run_id_from(part) for part in re.split(r"[,\s]+", str(text or "")) if part]
    return list(dict.fromkeys(ids))[:MOST_RUNS]


def sides(context: Context, run_ids: Sequence[str]) -> list[Side]:
    """The runs with what stands in their columns; InputError for none or too many, UnknownRun for one that is gone."""
    ids = list(dict.fromkeys(run_ids))
    if not 1 <= len(ids) <= MOST_RUNS:
        raise InputError(f"choose 1 to {MOST_RUNS} runs, not {len(ids)}")
    runs = [_explained(context.store.runs.get(run_id)) for run_id in ids]
    return [
        Side(
            run=run,
            title=title_of(run.method),
            label=label,
            correct=run_is_right(run),
            reply=_reply(context, run),
            against=_direct(context, run, runs),
        )
        for run, label in zip(runs, _labels(runs), strict=True)
    ]


def _explained(run: RunResult) -> RunResult:
    if run.error is None:
        return run
    shown = run.error.model_copy(update={"message": error_sentence(run.error, run.id)})
    return run.model_copy(update={"error": shown})


def _labels(runs: Sequence[RunResult]) -> list[str]:
    """Method titles; with the model where there are several, with a number where that is not enough."""
    several = len({run.model for run in runs}) > 1
    names = [title_of(run.method) + (f", {run.model.rsplit('/', 1)[-1]}" if several else "") for run in runs]
    return [
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _reply(context: Context, run: RunResult) -> str:
    """The last text that the model wrote in a run, which is what its answer was read from."""
    calls = [event for event in context.store.runs.events(run.id) if isinstance(event, ModelCall) and event.output]
    chosen = {opinion.call for opinion in run.opinions if opinion.chosen and opinion.call is not None}
    own = [call for call in calls if call.index in chosen] or calls
    return own[-1].output if own else ""


def _direct(context: Context, run: RunResult, beside: Sequence[RunResult]) -> tuple[str, Cost] | None:
    """The cost of answering the same question directly with the same model: of a run beside it, else of the newest."""
    if _answers_directly(run):
        return None
    for other in beside:
        if _answers_directly(other) and other.model == run.model and other.question == run.question:
            return other.id, other.cost
    question = context.store.questions.of_run(run.id)
    newest = None if question is None else context.store.questions.newest_run(question, "direct", run.model)
    found = None if newest is None else context.store.runs.get(newest)
    return (found.id, found.cost) if found is not None and _answers_directly(found) else None


def _answers_directly(run: RunResult) -> bool:
    """Whether a run answered from all documents at once, as costs are compared with."""
    return run.method == "direct" and run.status == "ok" and not changed_options(run.method, run.config)
