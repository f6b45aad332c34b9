"""Queues and labels out of the database and into another one: equal, all or nothing, and safe in spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mdqa.errors import InputError, StorageError
from storage.label_files import LOG_COLUMNS, import_lines, snapshot, write_lines, write_table
from storage.queue_settings import PracticeItem
from storage.queues import UnknownQueue
from storage.store import Store
from tests.storage.builders import complete, header

NAME = "Local and Global disagree"


def worked_on(store: Store, runs: int = 3) -> None:
    """A queue with two versions of its settings, labels of two people, an undo, a skip, a flag and a decision."""
    for i in range(runs):
        store.runs.begin(header(f"r{i}"))
        store.runs.finish(complete(f"r{i}"), correct=i == 0)
        store.queues.send(f"r{i}", NAME, "analyst", "=look")
    store.queue_settings.change(
        NAME, "chief", guidelines="Read all of it.", practice_items=[PracticeItem("r0", "first")]
    )
    store.queue_settings.change(NAME, "chief", overlap=3)
    for person, labels in {"ann": ("first", "first", "second"), "bob": ("first", "neither", "cannot_tell")}.items():
        for label in labels:
            form = store.assignments.next_item(NAME, person)
            assert form is not None
            store.labels.answer(form.token, person, label, evidence=["d1"], note="\r=1+1", seconds=0.0)
    store.labels.undo(NAME, "bob", "undo-1")
    form = store.assignments.next_item(NAME, "bob")
    assert form is not None
    store.labels.flag(form.token, "bob", "ＳＵＭ", "flag-1")
    store.labels.skip(form.token, "bob", "＝too long")
    assert store.assignments.next_item(NAME, "cid") is not None  # stays open
    contested = next(e.item for e in store.labels.log(NAME) if e.label == "neither")
    store.labels.adjudicate(contested, "first", "chief", "Document 2 says so.", "decide-1")
    store.annotations.add("r1", "correct", True, annotator="ann", token="v")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "one.db") as opened:
        worked_on(opened)
        yield opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The lines of such a queue."""
    with Store.open(tmp_path_factory.mktemp("exported") / "one.db") as opened:
        worked_on(opened)
        return tuple(lines_of(opened))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "two.db") as opened:
        yield opened


def lines_of(store: Store, queue: str = "") -> list[str]:
    stream = io.StringIO()
    write_lines(store, stream, queue)
    return stream.getvalue().splitlines(keepends=True)


def test_an_import_into_an_empty_database_is_equal(store: Store, empty: Store) -> None:
    lines = lines_of(store)
    found = import_lines(empty, lines)
    assert (found.queues, found.items, found.entries, found.runs) == (1, 3, 10, 3)
    assert snapshot(empty) == snapshot(store)
    assert lines_of(empty) == lines
    assert empty.labels.log(NAME) == store.labels.log(NAME)
    assert empty.labels.counting(NAME) == store.labels.counting(NAME)
    assert empty.labels.adjudicated(NAME) == store.labels.adjudicated(NAME)
    assert empty.queue_settings.versions(NAME) == store.queue_settings.versions(NAME)
    assert empty.queues.log(NAME) == store.queues.log(NAME)
    assert empty.assignments.progress(NAME) == store.assignments.progress(NAME)
    assert empty.annotations.list() == store.annotations.list()
    assert empty.runs.get("r1") == store.runs.get("r1")


def test_work_goes_on_after_an_import(store: Store, empty: Store) -> None:
    import_lines(empty, lines_of(store))
    form = empty.assignments.next_item(NAME, "dan")
    assert form is not None
    entry = empty.labels.answer(form.token, "dan", "first")
    assert entry.id > max(e.id for e in store.labels.log(NAME))


def test_into_a_database_with_other_queues_rows_get_other_ids(store: Store, empty: Store) -> None:
    empty.runs.begin(header("other"))
    empty.runs.finish(complete("other"))
    empty.queues.send("other", "Mine", "ann")
    form = empty.assignments.next_item("Mine", "ann")
    assert form is not None
    before = empty.labels.answer(form.token, "ann", "first")
    import_lines(empty, lines_of(store))
    assert empty.labels.log("Mine") == [before]
    one, other = empty.labels.log(NAME), store.labels.log(NAME)
    assert [(e.run, e.annotator, e.label, e.token) for e in one] == [
        (e.run, e.annotator, e.label, e.token) for e in other
    ]
    items = {item.run: item.id for item in empty.queues.items(NAME)}
    assert all(items[e.run] == e.item for e in one)
    assert empty.assignments.own_progress(NAME, "bob") == store.assignments.own_progress(NAME, "bob")


def test_one_queue_of_several(store: Store, empty: Store) -> None:
    store.queues.send("r1", "Another", "ann")
    import_lines(empty, lines_of(store, "Another"))
    assert [queue.name for queue in empty.queues.queues()] == ["Another"]
    assert snapshot(empty, "Another")["labels"] == []
    with pytest.raises(UnknownQueue, match="'none'"):
        lines_of(store, "none")


def test_what_is_there_already_is_not_imported_twice(store: Store, empty: Store) -> None:
    lines = lines_of(store)
    import_lines(empty, lines)
    before = snapshot(empty)
    with pytest.raises(StorageError, match="has a queue 'Local and Global disagree' already"):
        import_lines(empty, lines)
    assert snapshot(empty) == before


def change(of: str, **fields: Any) -> Callable[[list[str]], list[str]]:
    """The lines with fields of the last line of a kind changed; a field that is None is left out."""

    def work(lines: list[str]) -> list[str]:
        place = max(i for i, line in enumerate(lines) if json.loads(line)["line"] == of)
        row = json.loads(lines[place]) | fields
        lines[place] = json.dumps({key: value for key, value in row.items() if value is not None})
        return lines

    return work


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda lines: [], "^f: the file is empty", id="empty"),
        pytest.param(lambda lines: lines[1:], "line 1: this is no export of labels", id="no header"),
        pytest.param(change("header", version=9), "line 1: was written in version 9", id="newer"),
        pytest.param(lambda lines: [*lines, "{"], r"line \d+: is no JSON", id="cut off"),
        pytest.param(lambda lines: [*lines, "[]"], r"line \d+: expected an object", id="list"),
        pytest.param(change("labels", label=None), r"line \d+, label: is missing", id="missing"),
        pytest.param(change("labels", colour="red"), r"line \d+, colour: is no field of labels", id="unknown"),
        pytest.param(change("labels", item="x"), r"line \d+, item: expected int, found 'x'", id="type"),
        pytest.param(change("labels", practice=True), r"line \d+, practice: expected int", id="bool"),
        pytest.param(change("queue_log", item=99), r"line \d+, item: 99 is not among", id="points nowhere"),
        pytest.param(change("queue_items", run="gone"), r"line \d+, run: there is no run 'gone'", id="no run"),
        pytest.param(change("run", result={"id": "r9"}), r"line \d+, result\.\w+: Field required", id="no result"),
        pytest.param(change("run", correct="yes"), r"line \d+, correct: expected true", id="correct"),
        pytest.param(change("annotations", line="other"), r"line \d+, line: there is no line 'other'", id="kind"),
    ],
)
def test_errors_name_line_and_field_and_leave_nothing(
    exported: tuple[str, ...], empty: Store, damage: Callable[[list[str]], list[str]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        import_lines(empty, damage(list(exported)), name="f")
    assert empty.queues.queues() == []
    assert empty.runs.list() == []
    assert empty.labels.log() == []


UNREADABLE = (
    (change("labels", evidence="d1"), r"line \d+, evidence: expected a JSON list of texts"),
    (change("labels", action="drop"), r"line \d+, action: expected one of label, undo"),
    (change("labels", label="third"), r"line \d+, label: expected empty or one of first"),
    (change("labels", annotator=" "), r"line \d+, annotator: expected a name"),
    (change("labels", note="\ud800"), r"line \d+, note: expected a text without NUL"),
    (change("labels", seconds=float("nan")), r"line \d+, seconds: expected a finite"),
    (change("labels", seconds=-1.0), r"line \d+, seconds: expected a time"),
    (change("labels", id=2**63 - 1), r"line \d+, id: expected a number up to"),
    (change("labels", id=10**30), r"line \d+, id: expected a number up to"),
    (change("labels", id=-1), r"line \d+, id: expected a number up to"),
    (change("labels", run="r9"), r"line \d+, run: item \d+ has another one"),
    (change("labels", created="2026-11-30"), r"line \d+, created: expected a time with"),
    (change("queue_settings", labels="[1]"), r"line \d+, labels: expected a JSON list"),
    (change("queue_settings", practice_items="[7]"), r"practice_items: expected a JSON"),
    (change("queue_settings", item_order="up"), r"item_order: expected one of"),
    (change("queue_settings", overlap=0), r"overlap: expected between 1 and 20"),
    (change("assignments", state="x"), r"line \d+, state: expected one of open"),
    (change("assignments", given="now", entry=1), r"line \d+, given: expected a time with its zone"),
    (change("assignments", entry=1), r"line \d+, entry: is about another item"),
    (change("queue_log", present=2), r"line \d+, present: expected 0 or 1"),
    (change("annotations", value="[]"), r"line \d+, value: expected true, false"),
)
"""Damage after which a row could not be read again, or would count for another item or stop all further rows."""


def test_what_could_not_be_read_again_is_not_imported(exported: tuple[str, ...], empty: Store) -> None:
    deep = json.loads("[" * 600 + "]" * 600)
    run = next(row for row in map(json.loads, exported) if row["line"] == "run")["result"]
    nested = (change("run", result=run | {"id": "deep", "config": {"x": deep}}), r"result: is nested too deeply")
    for damage, words in (*UNREADABLE, nested):
        with pytest.raises(InputError, match=words):
            import_lines(empty, damage(list(exported)), name="f")
    assert empty.queues.queues() == [] and empty.runs.list() == [] and empty.labels.log() == []


def test_the_table_is_safe_in_spreadsheets(store: Store) -> None:
    stream = io.StringIO()
    assert write_table(store, stream, NAME) == 10
    rows = list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))
    assert tuple(rows[0]) == LOG_COLUMNS
    assert rows[0]["note"] == "'=1+1"  # the log strips the carriage return
    assert next(row for row in rows if row["action"] == "skip")["note"] == "'＝too long"
    assert rows[0]["evidence"] == '["d1"]'
    assert {row["question"] for row in rows} == {"Who found radium?"}
    assert [row["action"] for row in rows].count("adjudicate") == 1


def test_the_log_keeps_the_items_of_deleted_runs_apart(empty: Store, tmp_path: Path) -> None:
    """Deleted between others and at the end; the id goes to no later item, whose labels would not be its own."""
    with Store.open(tmp_path / "one.db") as store:
        for i in range(4):
            store.runs.begin(header(f"r{i}"))
            store.runs.finish(complete(f"r{i}"))
            store.queues.send(f"r{i}", NAME, "chief")
        for label in ("first", "second", "both", "neither"):
            form = store.assignments.next_item(NAME, "ann")
            assert form is not None
            store.labels.answer(form.token, "ann", label)
        for gone in ("r1", "r3"):
            store.runs.delete(gone, labels=True)
        lines, before = lines_of(store), snapshot(store)
        said = [(entry.run, entry.label) for entry in store.labels.counting(NAME)]
    import_lines(empty, lines)
    assert snapshot(empty) == before
    with Store.open(tmp_path / "three.db") as other:  # where ids are taken
        other.runs.begin(header("other"))
        other.runs.finish(complete("other"))
        for name in ("A", "B", "C"):
            other.queues.send("other", name, "chief")
        import_lines(other, lines)
        for opened in (empty, other):
            opened.runs.begin(header("new"))
            opened.runs.finish(complete("new"))
            opened.queues.send("new", NAME, "chief")
            assert [(entry.run, entry.label) for entry in opened.labels.counting(NAME)] == said
            log = opened.labels.log(NAME)
            assert [entry.run for entry in log] == ["r0", "r1", "r2", "r3"]
            assert len({entry.item for entry in log} | {item.id for item in opened.queues.items(NAME)}) == 5


def test_the_order_of_the_lines_does_not_change_the_log(store: Store, empty: Store) -> None:
    """Rows that get other ids get them in the order of the log."""
    empty.queues.make("Mine")  # takes the first id
    kinds = ["header", "run", *snapshot(store)]
    rows = sorted(map(json.loads, lines_of(store)), key=lambda row: (kinds.index(row["line"]), -row.get("id", 0)))
    import_lines(empty, map(json.dumps, rows))
    assert [entry.token for entry in empty.labels.log(NAME)] == [entry.token for entry in store.labels.log(NAME)]
    assert empty.queue_settings.versions(NAME) == store.queue_settings.versions(NAME)
