"""Stored questions with the runs that answered them, and runs in outline: which documents went on, and what it cost.

Comparisons ask two things of the database that a list of runs does not answer: which questions several methods
answered, and the numbers of thousands of runs. For the second most of a run is left unread.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import Document, Question, RunResult
from storage.encoding import clean_text, holds, unpack

if TYPE_CHECKING:
    from storage.store import Store

AT_ONCE = 100
"""Runs that one query reads."""

_LEFT_OUT = ("opinions", "routing", "attention_summary", "notices")
_LEFT_OUT_OF_STAGES = ("scores", "reasons", "calls", "key_sentences", "thresholds")
"""What an outline does not have: most of a run's record, and most of the time that reading it takes."""


@dataclass(frozen=True)
class Asked:
    """A stored question with at least one finished run. ``methods`` are those of its finished runs, by name."""

    id: int
    name: str
    question: str
    documents: int
    runs: int
    methods: tuple[str, ...]
    newest: str


@dataclass(frozen=True)
class Said:
    """What a run answered to which question, for lists."""

    run: str
    question: str
    answer: str


class QuestionStore:
    """The questions of a :class:`~storage.store.Store`, as the runs on them see them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def asked(self, text: str = "", limit: int = 10, offset: int = 0) -> list[Asked]:
        """Questions with finished runs: those that several methods answered first, then by their newest run.

        ``text`` stands anywhere in the question (upper and lower case are the same for ASCII letters only). Runs that
        a study had carried out do not count: a position sweep would fill the list with versions of one question.
        """
        where, values = _where(text)
        sql = (
            "select questions.id, questions.name, questions.question, questions.documents, count(*) as runs, "
            "group_concat(distinct runs.method) as methods, max(runs.created) as newest "
            f"from runs join questions on questions.id = runs.question {where} group by runs.question "
            "order by count(distinct runs.method) > 1 desc, newest desc, questions.id desc limit ? offset ?"
        )
        with self._store.read() as db:
            rows = list(db.query(sql, [*values, max(limit, 0), max(offset, 0)]))
        return [Asked(**row | {"methods": tuple(sorted(row["methods"].split(",")))}) for row in rows]

    def count(self, text: str = "") -> int:
        """How many questions :meth:`asked` finds in all."""
        where, values = _where(text)
        sql = f"select count(distinct runs.question) from runs join questions on questions.id = runs.question {where}"
        with self._store.read() as db:
            return int(db.execute(sql, values).fetchone()[0])

    def runs(self, question: int, limit: int) -> list[str]:
        """Ids of the newest finished runs of a question, the newest first."""
        sql = "select id from runs where question = ? and status = 'ok' order by created desc, id desc limit ?"
        with self._store.read() as db:
            return [run for (run,) in db.execute(sql, [question, max(limit, 0)])]

    def of_run(self, run: str) -> int | None:
        """The question that a run answers; None without such a run."""
        with self._store.read() as db:
            row = db.execute("select question from runs where id = ?", [clean_text(run)]).fetchone()
        return None if row is None else int(row[0])

    def newest_run(self, question: int, method: str, model: str) -> str | None:
        """The newest finished run of a method and model on a question; None without one."""
        sql = (
            "select id from runs where question = ? and status = 'ok' and method = ? and model = ? "
            "order by created desc, id desc limit 1"
        )
        with self._store.read() as db:
            row = db.execute(sql, [question, clean_text(method), clean_text(model)]).fetchone()
        return None if row is None else str(row[0])

    def said(self, runs: Sequence[str]) -> dict[str, Said]:
        """Question and answer of these runs by id; those that are gone are not there."""
        found: dict[str, Said] = {}
        for part in _parts(runs):
            sql = (
                "select runs.id, questions.question, runs.answer from runs join questions on questions.id = "
                f"runs.question where runs.id in ({_marks(part)})"
            )
            with self._store.read() as db:
                found |= {row[0]: Said(*row) for row in db.execute(sql, part)}
        return found

    def outlines(self, runs: Sequence[str]) -> Iterator[tuple[str, RunResult]]:
        """These runs in their order, each with a key of its question, for counting: answer, cost and documents kept.

        Questions with the same id, words and answers over the same documents in one order have one key, whatever else
        was noted of them, such as the benchmark that they come from.

        Documents have ids and gold marks but no text; stages say what was kept but neither scores nor reasons;
        opinions, routing and attention are left out. Runs that are gone, or have not ended yet, are passed over.
        StorageError for a run of a newer version.
        """
        questions: dict[int, tuple[str, Question]] = {}
        for part in _parts(runs):
            sql = (
                "select id, question, status, answer, record from runs "
                f"where finished is not null and id in ({_marks(part)})"
            )
            with self._store.read() as db:
                rows = {row["id"]: row for row in db.query(sql, part)}
                questions |= _outlined(db, {row["question"] for row in rows.values()} - questions.keys())
            for run in part:
                if run in rows:
                    key, question = questions[rows[run]["question"]]
                    yield key, _outline(rows[run], question)


def _outline(row: dict[str, Any], question: Question) -> RunResult:
    parts = json.loads(unpack(row["record"])) | {"status": row["status"], "answer": row["answer"]}
    kept = {name: value for name, value in parts.items() if name not in _LEFT_OUT}
    kept["stages"] = [
        {name: value for name, value in stage.items() if name not in _LEFT_OUT_OF_STAGES}
        for stage in parts.get("stages", ())
    ]
    try:
        return RunResult.model_validate({**kept, "question": question})
    except ValidationError as error:
        raise StorageError(f"run {row['id']!r} cannot be read by this version: {error}") from error


def _outlined(db: Database, wanted: set[int]) -> dict[int, tuple[str, Question]]:
    """Keys and questions by row; the documents have no text. Call it inside a transaction."""
    rows = sorted(wanted)
    documents: dict[int, list[Document]] = {row: [] for row in rows}
    sql = (
        f"select question, name, gold, document from question_documents where question in ({_marks(rows)}) "
        "order by question, position"
    )
    contents: dict[int, list[tuple[int, str]]] = {row: [] for row in rows}
    for row, name, gold, document in db.execute(sql, rows):
        contents[row].append((document, name))
        # Not validated: the row was written from a valid document, and there are very many of them.
        documents[row].append(
            Document.model_construct(id=name, title="", text="", gold=None if gold is None else bool(gold))
        )
    sql = f"select id, name, question, answers, meta from questions where id in ({_marks(rows)})"
    found = {}
    for row, name, words, answers, meta in db.execute(sql, rows):
        question = Question(
            id=name,
            question=words,
            answers=tuple(json.loads(answers)),
            documents=tuple(documents[row]),
            meta=json.loads(meta),
        )
        same = json.dumps([name, words, answers, contents[row]])
        found[row] = hashlib.sha256(same.encode()).hexdigest()[:16], question
    return found


def _where(text: str) -> tuple[str, list[str]]:
    where = "where runs.status = 'ok' and not exists (select 1 from study_runs where study_runs.run = runs.id)"
    words = clean_text(text)
    return (f"{where} and {holds('questions.question')}", [words]) if words else (where, [])


def _parts(runs: Sequence[str]) -> Iterator[list[str]]:
    """The ids in parts that one query takes."""
    ids = [clean_text(run) for run in runs]
    for first in range(0, len(ids), AT_ONCE):
        yield ids[first : first + AT_ONCE]


def _marks(values: Sequence[str] | Sequence[int]) -> str:
    return ", ".join("?" * len(values))
