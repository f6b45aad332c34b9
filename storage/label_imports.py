"""Labels that were made elsewhere: exports of Label Studio and Argilla, brought into a queue, all of them or none.

Label Studio (https://labelstud.io/guide/task_format): a JSON list of tasks with ``data`` and ``annotations``; the label
is the one choice of a ``choices`` result, evidence are the choices of another one, and a ``textarea`` is the note.
Argilla (``Dataset.records.to_json``): a list of records with ``responses`` by question, each a list of values with
``user_id``; of the older form, a list of responses with ``values`` and ``status``, the submitted ones count.

A task or record says what it is about by ``run`` (a run's id) or ``question_id`` in its data or metadata (Argilla: in
its fields, too), or by its own id. A question's id has to belong to exactly one run of the queue or of the database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database

from mdqa.errors import InputError, StorageError
from storage.assignments import new_token
from storage.encoding import clean_text, now, to_json
from storage.labels import IMPORTED, Refused, checked_evidence
from storage.queue_settings import LABELS, settings_of
from storage.queues import MAX_NOTE, person_name, require_queue

if TYPE_CHECKING:
    from storage.store import Store

KNOWN: Mapping[str, str] = {
    **{label: label for label in LABELS},
    **{"a": "first", "b": "second", "cannot tell": "cannot_tell", "can't tell": "cannot_tell"},
}
"""Words that are labels by themselves, in lower case; others need a map."""


@dataclass(frozen=True)
class Foreign:
    """A label from elsewhere. ``about`` are ids to try, the most telling first; ``key`` tells it from all others."""

    place: str
    about: tuple[str, ...]
    annotator: str
    label: str
    evidence: tuple[str, ...]
    note: str
    seconds: float
    created: str
    key: str


@dataclass(frozen=True)
class Fields:
    """Names of the questions (Argilla) or controls (Label Studio): ``label`` may be empty if there is only one.

    ``words``: what a label is called there, to ours. ``people``: ids of annotators to names.
    """

    label: str = ""
    evidence: str = ""
    words: Mapping[str, str] | None = None
    people: Mapping[str, str] | None = None


def read_foreign(text: str, name: str, fields: Fields) -> tuple[str, list[Foreign]]:
    """The format (``labelstudio`` or ``argilla``) and the labels of a file.

    InputError names the file's task or record and the field that is wrong.
    """
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", place=name) from None
    if isinstance(data, dict):
        data = data.get("records", [data])
    if not isinstance(data, list) or not data or not all(isinstance(entry, dict) for entry in data):
        raise InputError("expected a list of Label Studio tasks or Argilla records", place=name)
    if "annotations" in data[0] or "completions" in data[0]:
        return "labelstudio", list(_each(data, name, "task", _tasks, fields))
    if "responses" in data[0]:
        return "argilla", list(_each(data, name, "record", _records, fields))
    raise InputError("has neither annotations (Label Studio) nor responses (Argilla)", place=f"{name}, entry 1")


def import_foreign(store: Store, labels: Iterable[Foreign], queue: str, who: str) -> tuple[int, int]:
    """Bring labels into a queue, which is made if need be; how many are new, and how many were there already.

    Runs that are not in the queue are sent to it by ``who``. After any error nothing has changed.

    Raises:
        InputError: a label is about no run, or about several; its annotator has labelled the item already; the queue
            does not offer it, or a document is not the question's.
    """
    new = there = 0
    with store.write() as db:
        store.queues.make(queue)
        number = require_queue(db, queue)
        (name,) = db.execute("select name from queues where id = ?", [number]).fetchone()
        for label in labels:
            token = _token(label, name)
            if db.execute("select 1 from labels where token = ?", [token]).fetchone():
                there += 1
                continue
            run = _run(db, number, label)
            store.queues.send(run, queue, who, "imported labels")
            _insert(db, number, run, label, token)
            new += 1
    return new, there


def _each(
    data: list[dict[str, Any]],
    name: str,
    what: str,
    read: Callable[[dict[str, Any], str, Fields], Iterator[Foreign]],
    fields: Fields,
) -> Iterator[Foreign]:
    for number, entry in enumerate(data, 1):
        yield from read(entry, f"{name}, {what} {number}", fields)


def _tasks(task: dict[str, Any], place: str, fields: Fields) -> Iterator[Foreign]:
    """The annotations of a Label Studio task that were not cancelled."""
    data = _mapping(task.get("data"), f"{place}, data")
    about = _about((data, _mapping(task.get("meta"), f"{place}, meta")), data.get("id"))
    annotations = task.get("annotations", task.get("completions"))
    if not isinstance(annotations, list):
        raise InputError("expected a list", place=f"{place}, annotations")
    for number, annotation in enumerate(annotations, 1):
        where = f"{place}, annotation {number}"
        annotation = _mapping(annotation, where)
        if annotation.get("was_cancelled"):
            continue
        results = annotation.get("result")
        if not isinstance(results, list):
            raise InputError("expected a list", place=f"{where}, result")
        chosen, note = _chosen(results, f"{where}, result")
        word, marks = _label_of(chosen, f"{where}, result", fields)
        yield _foreign(
            where,
            about,
            _annotator(annotation.get("completed_by"), f"{where}, completed_by", fields),
            word,
            marks,
            note,
            annotation.get("lead_time"),
            annotation.get("created_at"),
            fields,
        )


def _chosen(results: list[Any], place: str) -> tuple[dict[str, list[str]], str]:
    """The choices by the name of their control, and what was written."""
    chosen: dict[str, list[str]] = {}
    notes: list[str] = []
    for number, result in enumerate(results, 1):
        result = _mapping(result, f"{place} {number}")
        value = _mapping(result.get("value"), f"{place} {number}, value")
        if result.get("type") == "choices":
            words = value.get("choices")
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise InputError("expected a list of texts", place=f"{place} {number}, value.choices")
            chosen.setdefault(str(result.get("from_name", "")), []).extend(words)
        elif result.get("type") == "textarea":
            text = value.get("text")
            notes += [str(part) for part in (text if isinstance(text, list) else [text]) if part]
    return chosen, "\n".join(notes)


def _records(record: dict[str, Any], place: str, fields: Fields) -> Iterator[Foreign]:
    """The responses of an Argilla record: of the newer form by question, of the older by person."""
    given, meta = (_mapping(record.get(key), f"{place}, {key}") for key in ("fields", "metadata"))
    about = _about((meta, given), record.get("external_id"), record.get("id"))
    responses = record.get("responses") or {}
    by_person: dict[str, dict[str, list[str]]] = {}
    if isinstance(responses, dict):
        for question, said in responses.items():
            for number, one in enumerate(said if isinstance(said, list) else [said], 1):
                where = f"{place}, responses.{question} {number}"
                one = _mapping(one, where)
                if one.get("status") not in ("draft", "discarded"):
                    by_person.setdefault(str(one.get("user_id")), {})[question] = _words(one.get("value"), where)
    elif isinstance(responses, list):
        for number, one in enumerate(responses, 1):
            where = f"{place}, responses {number}"
            one = _mapping(one, where)
            if one.get("status", "submitted") == "submitted":
                values = _mapping(one.get("values"), f"{where}, values")
                by_person[str(one.get("user_id"))] = {
                    question: _words(_mapping(value, f"{where}, {question}").get("value"), f"{where}, {question}")
                    for question, value in values.items()
                }
    else:
        raise InputError("expected responses by question, or a list of them", place=f"{place}, responses")
    for user, chosen in by_person.items():
        where = f"{place}, responses of {user}"
        word, marks = _label_of(chosen, where, fields)
        name = _annotator(None if user == "None" else user, f"{where}, user_id", fields)
        yield _foreign(where, about, name, word, marks, "", 0.0, record.get("inserted_at"), fields)


def _words(value: Any, place: str) -> list[str]:
    """A label, or several, as texts; whatever else a question asks for (ratings, texts) as it is written."""
    if isinstance(value, dict):
        value = value.get("value")
    found = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) or one is None for one in found):
        raise InputError("expected a text or a list of texts", place=f"{place}, value")
    return [str(one) for one in found]


def _label_of(chosen: Mapping[str, list[str]], place: str, fields: Fields) -> tuple[str, list[str]]:
    """The word of the label and the ids of the marked documents."""
    marks = list(chosen.get(fields.evidence, [])) if fields.evidence else []
    others = {name: words for name, words in chosen.items() if not fields.evidence or name != fields.evidence}
    if fields.label:
        if fields.label not in others:
            there = ", ".join(others) or "none"
            raise InputError(f"there is no label named {fields.label!r}; there is: {there}", place=place)
        words = others[fields.label]
    elif len(others) == 1:
        (words,) = others.values()
    else:
        there = ", ".join(others) or "none"
        raise InputError(f"which of these is the label has to be said: {there}", place=place)
    if len(words) != 1:
        raise InputError(f"expected one label, found {len(words)}: {', '.join(words)[:80]}", place=place)
    return words[0], marks


def _foreign(
    place: str,
    about: tuple[str, ...],
    annotator: str,
    word: str,
    marks: list[str],
    note: str,
    seconds: Any,
    created: Any,
    fields: Fields,
) -> Foreign:
    label = (fields.words or {}).get(word) or KNOWN.get(" ".join(word.casefold().split()))
    if label is None:
        raise InputError(f"{word[:80]!r} is none of our labels; map it to one of: {', '.join(LABELS)}", place=place)
    if label not in LABELS:
        raise InputError(f"{word[:80]!r} is mapped to {label!r}; there is: {', '.join(LABELS)}", place=place)
    if not about:
        raise InputError("says neither a run nor a question_id", place=place)
    if len(note) > MAX_NOTE:
        raise InputError(f"the note has {len(note):,} characters; at most {MAX_NOTE:,} are kept", place=place)
    plain = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    time = float(seconds) if plain and 0 <= seconds < 1e6 else 0.0
    key = to_json([about, annotator, label, marks, note, str(created)], place)
    return Foreign(place, about, annotator, label, tuple(marks), clean_text(note).strip(), time, _moment(created), key)


def _token(label: Foreign, queue: str) -> str:
    """The same for the same label in the same queue: imported twice, it is one."""
    return IMPORTED + hashlib.sha256(to_json([queue, label.key], label.place).encode()).hexdigest()[:32]


def _about(sources: Iterable[Mapping[str, Any]], *ids: Any) -> tuple[str, ...]:
    """Ids that may say what a task is about: runs first, then questions, then its own ids."""
    found = [source[key] for key in ("run", "run_id", "question_id") for source in sources if source.get(key)]
    return tuple(dict.fromkeys(clean_text(str(value)) for value in (*found, *ids) if value not in (None, "")))


def _annotator(value: Any, place: str, fields: Fields) -> str:
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    if value is None or not str(value).strip():
        raise InputError("says nobody who labelled", place=place)
    try:
        return person_name((fields.people or {}).get(str(value), str(value)))
    except StorageError as problem:
        raise InputError(str(problem), place=place) from None


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"expected an object, found {type(value).__name__}", place=place)
    return value


def _moment(value: Any) -> str:
    """A time as UTC with milliseconds; this moment where there is none."""
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        moment = found if found.tzinfo else found.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):  # the second: a zone takes the first year to the year before
        return now()


def _run(db: Database, queue: int, label: Foreign) -> str:
    """The run that a label is about."""
    for value in label.about:
        if db.execute("select 1 from runs where id = ?", [value]).fetchone():
            return value
        of_question = "select runs.id from runs join questions on questions.id = runs.question where questions.name = ?"
        inside = f"{of_question} and runs.id in (select run from queue_items where queue = ?)"
        found = db.execute(inside, [value, queue]).fetchall() or db.execute(of_question, [value]).fetchall()
        if len(found) == 1:
            return str(found[0][0])
        if found:
            raise InputError(f"{len(found)} runs answered the question {value!r}; say which by run", place=label.place)
    raise InputError(f"there is no run or question {label.about[0]!r} in the database", place=label.place)


def _insert(db: Database, queue: int, run: str, label: Foreign, token: str) -> None:
    """An entry of the log and the closed assignment behind it."""
    (item,) = db.execute("select id from queue_items where queue = ? and run = ?", [queue, run]).fetchone()
    settings = settings_of(db, queue)
    if label.label not in settings.labels:
        there = ", ".join(settings.labels)
        raise InputError(f"the queue has no label {label.label!r}; it has: {there}", place=label.place)
    try:
        marked = checked_evidence(db, run, label.evidence)
    except Refused as problem:
        raise InputError(str(problem), place=label.place) from None
    if db.execute("select 1 from assignments where item = ? and annotator = ?", [item, label.annotator]).fetchone():
        raise InputError(f"{label.annotator} has this item already", place=label.place)
    entry = db.execute(
        "insert into labels (token, created, action, annotator, queue, item, run, label, evidence, note, version, "
        "practice, seconds, idle_seconds, swapped) values (?, ?, 'label', ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, 0)",
        [
            *(token, label.created, label.annotator, queue, item, run, label.label),
            *(to_json(marked, label.place), label.note),
            *(settings.version, label.seconds),
        ],
    ).lastrowid
    db.execute(
        "insert into assignments (token, item, annotator, swapped, practice, version, state, label, entry, given, "
        "expires) values (?, ?, ?, 0, 0, ?, 'labelled', ?, ?, ?, ?)",
        [new_token(), item, label.annotator, settings.version, label.label, entry, label.created, label.created],
    )
