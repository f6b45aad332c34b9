"""People's verdicts on stored answers that stand in for gold answers: labels of queues, else what the page was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.agreement.learning import content, verdicts
from mdqa.agreement.ratings import Consensus, consensus
from mdqa.records import Question, RunResult
from storage.annotations import Judged
from storage.runs import UnknownRun
from ui.context import Context


def judged(context: Context, questions: Sequence[Question], model: str, runs: Mapping[str, str]) -> Judged:
    """Verdicts on these questions, by id. ``runs``: method and treatment of the runs that count.

    Labels of queues, which were given blind, come before verdicts that people gave on a result's page.
    """
    stored: dict[str, RunResult] = {}
    together: list[Consensus] = []
    for queue in context.store.queues.queues():
        with context.store.read():
            found = consensus(context.store.labels.counting(queue.name), context.store.labels.adjudicated(queue.name))
        for one in found.values():
            try:
                stored[one.run] = context.store.runs.get(one.run)
            except UnknownRun:  # deleted since
                continue
            together.append(one)
    labelled = verdicts(stored, together, model=model, **runs)
    own = {item.id: labelled[key] for item in questions if (key := content(item)) in labelled}
    rest = context.store.annotations.verdicts(model=model, **runs).on([q for q in questions if q.id not in own])
    return Judged({**rest.right, **own}, rest.tied)
