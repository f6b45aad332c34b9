"""Deleting a run together with the runs that are there only because a study of it asked for them."""

from __future__ import annotations

from sqlite_utils import Database

from storage.documents import drop_unused
from storage.people import left_on


def drop_run(db: Database, run: str, question: int) -> None:
    """Delete a run, its studies and their members, with the questions and documents that nothing else uses.

    Members that people left something on stay, as runs of their own. Call it inside a write transaction.
    """
    members = db.execute(
        "select runs.id, runs.question from studies join study_runs on study_runs.study = studies.id "
        "join runs on runs.id = study_runs.run where studies.base = ?",
        [run],
    ).fetchall()  # asked first: the study's rows go with its run
    db.execute("delete from runs where id = ?", [run])
    drop_unused(db, question)
    for member, its_question in members:
        if not left_on(db, member):
            drop_run(db, member, its_question)
