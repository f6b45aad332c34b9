"""A queue of DuQUAD disagreements that two people labelled, with what a calculation by hand gives."""

from __future__ import annotations

from collections.abc import Mapping

from mdqa.records import RunResult
from storage.store import Store
from tests.reports.builders import duquad, question

QUEUE = "Local and Global disagree"

WINNERS = ("Danube", "Rhine", "Danube", "Danube", "Rhine", "Danube", "Rhine", "Danube")
"""What each run's judge says; Danube is the Local Agent's answer and the accepted one."""

SAID: Mapping[str, str] = {"ann": "11221n21", "bob": "12221b11"}
"""What each person says of the items (see ``LABELS``): they agree on 1, 3, 4, 5 and 8, and differ on 2, 6 and 7."""

LABELS: Mapping[str, str] = {"1": "first", "2": "second", "b": "both", "n": "neither"}

SAME = 5 / 8
KAPPA = 15 / 39
"""Chance: ann says 1, 2, n four, three and one times, bob 1, 2, b as often: (16 + 9)/64. (40 - 25)/(64 - 25)."""

ALPHA = 1 - 6 * 15 / 154
"""Three items differ, 2 each; of 16 labels 8, 6, 1, 1: (256 - 64 - 36 - 1 - 1)/15 are expected."""


def run(number: int) -> RunResult:
    """A run whose agents disagree; documents 1 to 3 have DocScores, the first a high one."""
    made = duquad(
        question(f"q{number}"),
        local=("Danube", ("d1",)),
        overall=("Rhine", ("d2",)),
        doc_scores={"d1": 0.9, "d2": 0.6, "d3": 0.1},
        kept=("d1", "d2"),
        answer=WINNERS[number - 1],
    )
    return made.model_copy(update={"id": f"r{number}"})


def fill(store: Store, *, evidence: bool = True) -> None:
    """The runs, the queue, and both people's labels, in the order in which the page would give the items."""
    for number in range(1, len(WINNERS) + 1):
        made = run(number)
        store.runs.begin(made.model_copy(update={"status": "running", "answer": ""}))
        store.runs.finish(made, correct=made.answer == "Danube")
        store.queues.send(made.id, QUEUE, "analyst")
    store.queue_settings.change(QUEUE, "chief", order="as_sent", guidelines="Read *all* documents.")
    for person, letters in SAID.items():
        for _ in letters:
            form = store.assignments.next_item(QUEUE, person)
            assert form is not None
            label = LABELS[letters[int(form.run[1:]) - 1]]
            note = f"<b>{person}</b> on {form.run}" if label != "first" else ""
            store.labels.answer(form.token, person, label, evidence=["d1"] if evidence else [], note=note)
