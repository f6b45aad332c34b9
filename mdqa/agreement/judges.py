"""The judges of runs as raters: whom a run's answer sides with, on the same labels that people give.

A run's judge is whatever decided its answer: DuQUAD's judge between the Local and the Global Agent, MADARA's router
between its treatments. Its label is ``first`` or ``second`` where the run's answer is that candidate's and ``neither``
where it is nobody's. A run with fewer than two candidates decided nothing and has no label.

Judges are told apart by method and model. They meet where runs of several of them answered the same question over the
same documents in the same order; their candidates, made by their own models, may say different things there, so that
judge with judge says whether they side with the same voice, not whether they give the same answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from mdqa.candidates import candidates_of, label_of
from mdqa.records import RunResult
from mdqa.reports.grouping import same_question


def judge_name(run: RunResult) -> str:
    """What a run's judge is called: its method and its model."""
    return f"{run.method}, {run.model}"


def judge_label(run: RunResult) -> str:
    """Whom the run's answer sides with; empty where there was nothing to decide or the run did not finish."""
    candidates = candidates_of(run)
    return label_of(run.answer, candidates) if run.status == "ok" and len(candidates) > 1 else ""


def judge_labels(runs: Mapping[str, RunResult]) -> dict[str, tuple[str, str]]:
    """By run its judge's name and label; runs without a label are left out."""
    found = {run_id: (judge_name(run), judge_label(run)) for run_id, run in runs.items()}
    return {run_id: said for run_id, said in found.items() if said[1]}


def by_question(runs: Mapping[str, RunResult]) -> list[tuple[Hashable, str, str]]:
    """(question, judge, label) of every judge, the newest run of a judge on a question last."""
    said = judge_labels(runs)
    ordered = sorted((run for run_id, run in runs.items() if run_id in said), key=lambda run: run.created)
    return [(same_question(run.question), *said[run.id]) for run in ordered]
