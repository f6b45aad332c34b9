"""Labels from Label Studio and Argilla: what they mean here, all or none, and errors that name the place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mdqa.agreement.ratings import IMPORTED
from mdqa.errors import InputError
from storage.label_imports import Fields, import_foreign, read_foreign
from storage.store import Store
from tests.storage.builders import complete, header, question

QUEUE = "from elsewhere"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mdqa.db") as opened:
        for number in (1, 2):
            about = {"question": question(f"q{number}", f"Question {number}?")}
            opened.runs.begin(header(f"r{number}", **about))
            opened.runs.finish(complete(f"r{number}", **about))
        yield opened


def choices(name: str, *words: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(words)}}


def annotation(*result: Any, who: object = 10, **more: Any) -> dict[str, Any]:
    values = {"id": 1, "completed_by": who, "lead_time": 4.288, "created_at": "2021-03-09T22:16:08.728353Z"}
    return {**values, "was_cancelled": False, "result": list(result), **more}


def task(*annotations: Any, **data: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"text": "t", **data}, "annotations": list(annotations), "predictions": []}


LABEL_STUDIO = [
    task(
        annotation(
            choices("who", "Answer A"),
            choices("evidence", "d2", "d1"),
            {"from_name": "why", "type": "textarea", "value": {"text": ["It says so."]}},
        ),
        annotation(choices("who", "neither"), who={"id": 11, "email": "bob@example.org"}),
        annotation(choices("who", "neither"), who=12, was_cancelled=True),
        run="r1",
    ),
    task(annotation(choices("who", "Cannot tell")), question_id="q2"),
]
WORDS = Fields("who", "evidence", words={"Answer A": "first"}, people={"10": "ann"})

ARGILLA = [
    {
        "id": "r1",
        "fields": {"question": "?"},
        "metadata": {},
        "suggestions": {"who": {"value": "second", "score": None, "agent": "m"}},
        "responses": {
            "who": [{"value": "first", "user_id": "u1"}, {"value": "second", "user_id": "u2"}],
            "evidence": [{"value": ["d1"], "user_id": "u1"}],
        },
        "vectors": {},
    },
    {"id": "x", "fields": {"run": "r2"}, "metadata": None, "responses": {"who": [{"value": "both", "user_id": "u1"}]}},
]
OLDER = [
    {
        "external_id": "q1",
        "fields": {},
        "responses": [
            {"values": {"who": {"value": "first"}}, "user_id": "u1", "status": "submitted"},
            {"values": {"who": {"value": "second"}}, "user_id": "u2", "status": "discarded"},
        ],
    }
]


def load(data: object, fields: Fields) -> Any:
    return read_foreign(json.dumps(data), "f.json", fields)


def test_label_studio(store: Store) -> None:
    kind, labels = load(LABEL_STUDIO, WORDS)
    assert (kind, import_foreign(store, labels, QUEUE, "chief")) == ("labelstudio", (3, 0))
    one, two, three = store.labels.counting(QUEUE)
    assert (one.run, one.annotator, one.label, one.evidence, one.note) == (
        "r1",
        "ann",
        "first",
        ("d1", "d2"),
        "It says so.",
    )
    assert (one.seconds, one.created, one.practice) == (4.288, "2021-03-09T22:16:08.728+00:00", False)
    assert (two.annotator, two.label, three.run, three.label) == ("bob@example.org", "neither", "r2", "cannot_tell")
    assert one.token.startswith(IMPORTED)
    assert [item.run for item in store.queues.items(QUEUE)] == ["r1", "r2"]
    assert store.assignments.own_progress(QUEUE, "ann").labelled == 2
    assert store.assignments.next_item(QUEUE, "ann") is None  # what they labelled elsewhere does not come to them again


def test_twice_is_once(store: Store) -> None:
    _, labels = load(LABEL_STUDIO, WORDS)
    import_foreign(store, labels, QUEUE, "chief")
    assert import_foreign(store, labels, QUEUE, "chief") == (0, 3)
    assert len(store.labels.log(QUEUE)) == 3


def test_another_queue_gets_them_too(store: Store) -> None:
    _, labels = load(LABEL_STUDIO, WORDS)
    import_foreign(store, labels, QUEUE, "chief")
    assert import_foreign(store, labels, "another", "chief") == (3, 0)
    assert import_foreign(store, labels, "ANOTHER", "chief") == (0, 3)  # the same queue
    assert [entry.label for entry in store.labels.counting("another")] == [
        entry.label for entry in store.labels.counting(QUEUE)
    ]


def test_numbers_and_times_beyond_all_bounds_count_as_none(store: Store) -> None:
    odd = {"lead_time": 10**400, "created_at": "0001-01-01T00:00:00+05:00"}
    _, labels = load([task(annotation(choices("who", "first"), **odd), run="r1")], Fields("who"))
    import_foreign(store, labels, QUEUE, "chief")
    [entry] = store.labels.counting(QUEUE)
    assert entry.seconds == 0 and entry.created > "2026"


def test_argilla(store: Store) -> None:
    kind, labels = load(ARGILLA, Fields("who", "evidence"))
    assert (kind, import_foreign(store, labels, QUEUE, "chief")) == ("argilla", (3, 0))
    found = [(entry.run, entry.annotator, entry.label, entry.evidence) for entry in store.labels.counting(QUEUE)]
    assert found == [("r1", "u1", "first", ("d1",)), ("r1", "u2", "second", ()), ("r2", "u1", "both", ())]


def test_older_argilla_by_question_id(store: Store) -> None:
    _, labels = load(OLDER, Fields(people={"u1": "ann"}))
    assert import_foreign(store, labels, QUEUE, "chief") == (1, 0)
    assert [(entry.run, entry.annotator) for entry in store.labels.counting(QUEUE)] == [("r1", "ann")]


@pytest.mark.parametrize(
    ("data", "fields", "words"),
    [
        pytest.param("x", Fields(), "f.json: expected a list of Label Studio tasks", id="text"),
        pytest.param([{"a": 1}], Fields(), "entry 1: has neither annotations", id="neither"),
        pytest.param([task("x", run="r1")], Fields(), "task 1, annotation 1: expected an object, found str", id="str"),
        pytest.param(
            [task(annotation(), run="r1")], Fields(), "annotation 1, result: which of these is the label", id="no"
        ),
        pytest.param(
            [task(annotation(choices("who", "a", "b")), run="r1")],
            Fields(),
            "result: expected one label, found 2",
            id="2",
        ),
        pytest.param(
            [task(annotation({"type": "choices", "value": {"choices": "a"}}), run="r1")],
            Fields(),
            r"result 1, value\.choices: expected a list of texts",
            id="choices",
        ),
        pytest.param(
            [task(annotation(choices("who", "good")), run="r1")],
            Fields(),
            "'good' is none of our labels; map it",
            id="word",
        ),
        pytest.param(
            [task(annotation(choices("who", "a"), who=None), run="r1")], Fields(), "completed_by: says nobody", id="who"
        ),
        pytest.param(
            [task(annotation(choices("who", "a")))], Fields(), "says neither a run nor a question_id", id="about"
        ),
        pytest.param(
            [task(annotation(choices("who", "a")), run="r1")],
            Fields("what"),
            "no label named 'what'; there is: who",
            id="l",
        ),
        pytest.param(
            [{"responses": 3}], Fields(), "record 1, responses: expected responses by question", id="responses"
        ),
    ],
)
def test_errors_of_the_file_name_the_place(data: object, fields: Fields, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(data, fields)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        pytest.param(
            task(annotation(choices("who", "a")), run="gone"), "task 2, .*no run or question 'gone'", id="gone"
        ),
        pytest.param(
            task(annotation(choices("who", "a"), choices("evidence", "d9")), run="r2"),
            "no document 'd9'",
            id="document",
        ),
        pytest.param(task(annotation(choices("who", "b"), who=10), run="r1"), "ann has this item already", id="twice"),
    ],
)
def test_after_an_error_nothing_is_imported(store: Store, second: dict[str, Any], words: str) -> None:
    _, labels = load([LABEL_STUDIO[0], second], WORDS)
    with pytest.raises(InputError, match=words):
        import_foreign(store, labels, QUEUE, "chief")
    assert store.queues.queues() == []
    assert store.labels.log() == []


def test_a_question_with_several_runs_needs_the_run(store: Store) -> None:
    about = {"question": question("q2", "Question 2?")}
    store.runs.begin(header("r3", **about))
    _, labels = load([LABEL_STUDIO[1]], WORDS)
    with pytest.raises(InputError, match="2 runs answered the question 'q2'; say which by run"):
        import_foreign(store, labels, QUEUE, "chief")
    store.queues.send("r2", QUEUE, "chief")  # one of them is in the queue: that one is meant
    assert import_foreign(store, labels, QUEUE, "chief") == (1, 0)
