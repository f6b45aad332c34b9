"""The verbs of judging an answer, without Gradio: what people said, saying it."""

from __future__ import annotations

from dataclasses import dataclass

from mdqa.errors import InputError
from mdqa.records import RunStatus
from ui.context import Context
from ui.faceting import refresh


@dataclass(frozen=True)
class Judgement:
    """What is said of a run's answer: ``own`` by the person who looks, None if nothing.

    ``others``: how many other people judged it; ``others_right``: how many of them found it right, None as long as
    the person has said nothing, so that nobody judges after others.
    """

    own: bool | None = None
    others: int = 0
    others_right: int | None = None


def can_be_judged(status: RunStatus) -> bool:
    """Whether a run has an answer that can be right or wrong; an empty one of a finished run is wrong."""
    return status == "ok"


def judgement(context: Context, run_id: str, who: str) -> Judgement:
    """What people said of the run's answer, as ``who`` may see it."""
    labels = context.store.annotations.latest(run_id)
    own = next((label.value for label in labels if label.annotator == who), None)
    others = [label.value for label in labels if label.annotator != who]
    return Judgement(own, len(others), None if own is None else sum(others))


def judge(context: Context, run_id: str, right: bool | None, who: str, token: str) -> None:
    """Keep that ``who`` finds the answer right or wrong; None takes back what they said.

    What is said already is not said again. ``token`` belongs to the form, so that sending it twice is one verdict.

    Raises:
        UnknownRun: the run is not there any more.
        InputError: the run has no answer to judge.
    """
    with context.store.write():  # nobody writes between the look and the entry
        if not can_be_judged(context.store.runs.row(run_id).status):
            raise InputError("this run has not come to an answer, so there is nothing to judge", place="Verdict")
        if judgement(context, run_id, who).own is not right:
            context.store.annotations.add(run_id, "correct", right, annotator=who, token=token)
            refresh(context.store, run_id)  # a wrong answer that people accept is a fault of the metric
