"""The log of labels: append-only, one form one entry, undo as an entry, what counts, what is refused."""

from __future__ import annotations

import sqlite3
import time

import pytest

from mdqa.errors import StorageError
from storage.assignments import UnknownForm
from storage.labels import Refused, SavedOtherwise
from storage.store import Store
from tests.storage.labelling import QUEUE, filled, label, take


def test_a_label_with_everything(store: Store) -> None:
    [item] = filled(store, 1)
    form = take(store, "ada")
    time.sleep(0.05)
    said = store.labels.answer(
        form.token, "ada", "second", evidence=["d2", "d0", "d2"], note=" see d2 ", seconds=0.02, idle_seconds=9999.0
    )
    assert (said.item, said.run, said.queue, said.annotator, said.action) == (item, "r1", QUEUE, "ada", "label")
    assert (said.label, said.evidence, said.note, said.practice) == ("second", ("d0", "d2"), "see d2", False)
    assert (said.swapped, said.version, said.token) == (form.swapped, 0, form.token)
    assert said.seconds == 0.02
    assert 0.02 <= said.idle_seconds < 5  # the browser may say what it likes: no more than has passed
    assert store.labels.log(QUEUE) == store.labels.log() == store.labels.counting(QUEUE) == [said]


def test_time_that_is_no_number_counts_as_none(store: Store) -> None:
    filled(store, 1)
    form = take(store, "ada")
    said = store.labels.answer(form.token, "ada", "first", seconds=float("nan"), idle_seconds=-3)
    assert (said.seconds, said.idle_seconds) == (0, 0)


def test_two_saves_of_one_form_are_one_label(store: Store) -> None:
    filled(store, 2)
    form = take(store, "ada")
    one = store.labels.answer(form.token, "ada", "first", note="x")
    assert store.labels.answer(form.token, "ada", "first", note="x") == one
    with pytest.raises(Refused, match="saved already"):
        store.labels.answer(form.token, "ada", "second")
    with pytest.raises(Refused, match="saved already"):
        store.labels.skip(form.token, "ada", "why not")
    assert store.labels.log(QUEUE) == [one]


def test_another_note_or_evidence_is_not_said_to_be_saved(store: Store) -> None:
    """Two tabs with one form: the second one's words must not vanish behind a "saved"."""
    filled(store, 2)
    form = take(store, "ada")
    one = store.labels.answer(form.token, "ada", "first", note=" x ", evidence=["d1", "d0"])
    assert store.labels.answer(form.token, "ada", "first", note="x", evidence=["d0", "d1"]) == one
    for more in ({"note": "y", "evidence": ["d0", "d1"]}, {"note": "x", "evidence": ["d0"]}):
        with pytest.raises(SavedOtherwise):
            store.labels.answer(form.token, "ada", "first", **more)  # type: ignore[arg-type]
    second = take(store, "ada")
    store.labels.skip(second.token, "ada", "too long")
    with pytest.raises(SavedOtherwise):
        store.labels.skip(second.token, "ada", "cannot read it")
    assert [entry.note for entry in store.labels.log(QUEUE)] == ["x", "too long"]


def test_a_token_from_outside_takes_no_other_ones_place(store: Store) -> None:
    filled(store, 1)
    form = take(store, "ada")
    for token in (form.token, "import-4711", "x" * 101):
        with pytest.raises(Refused):
            store.labels.flag(form.token, "ada", "odd", token)
    assert store.labels.answer(form.token, "ada", "first").id == 1
    for token in (form.token, "import-4711", "x" * 101):
        with pytest.raises(Refused):
            store.labels.undo(QUEUE, "ada", token)
    assert len(store.labels.log(QUEUE)) == 1


def test_a_form_belongs_to_one_person(store: Store) -> None:
    filled(store, 1)
    form = take(store, "ada")
    with pytest.raises(UnknownForm):
        store.labels.answer(form.token, "ben", "first")
    with pytest.raises(UnknownForm):
        store.labels.answer("guessed", "ada", "first")
    store.labels.answer(form.token, "ada", "first")
    with pytest.raises(Refused):
        store.labels.answer(form.token, "ben", "first")
    assert len(store.labels.log(QUEUE)) == 1


@pytest.mark.parametrize(
    ("said", "more", "words"),
    [
        ("third", {}, "no label 'third'"),
        ("both", {}, "no label 'both'"),
        ("first", {"evidence": ["d9"]}, "no document 'd9'"),
        ("first", {"note": "x" * 2001}, "2,001 characters"),
    ],
    ids=["unknown", "not offered", "evidence", "note"],
)
def test_what_cannot_be_kept(store: Store, said: str, more: dict[str, object], words: str) -> None:
    filled(store, 1, labels=("first", "second"))
    form = take(store, "ada")
    with pytest.raises(Refused, match=words):
        store.labels.answer(form.token, "ada", said, **more)  # type: ignore[arg-type]
    assert store.labels.log(QUEUE) == []
    assert take(store, "ada").token == form.token


def test_undo_goes_back_and_forward_again(store: Store) -> None:
    items = filled(store, 3)
    for word in ("first", "second"):
        label(store, "ada", word)
    third = take(store, "ada")
    undone = store.labels.undo(QUEUE, "ada", "u1")
    assert undone is not None and (undone.item, undone.action, undone.label) == (items[1], "undo", "")
    assert store.labels.undo(QUEUE, "ada", "u1") == undone  # sent twice
    store.labels.undo(QUEUE, "ada", "u2")
    assert store.labels.undo(QUEUE, "ada", "u3") is None
    assert store.labels.counting(QUEUE) == []
    swapped = {entry.item: entry.swapped for entry in store.labels.log(QUEUE)}
    forms = [label(store, "ada", "both") for _ in items]
    assert [form.item for form in forms] == items
    assert forms[2].token == third.token
    assert all(form.swapped == swapped[form.item] for form in forms[:2])
    assert [entry.action for entry in store.labels.log(QUEUE)] == ["label"] * 2 + ["undo"] * 2 + ["label"] * 3
    assert [(entry.item, entry.label) for entry in store.labels.counting(QUEUE)] == [(item, "both") for item in items]


def test_an_undone_form_is_another_form(store: Store) -> None:
    filled(store, 1)
    old = label(store, "ada", "first")
    store.labels.undo(QUEUE, "ada", "u1")
    assert store.labels.answer(old.token, "ada", "first").id == 1  # sent again by a bad line: what it said was kept
    assert store.labels.counting(QUEUE) == []
    assert label(store, "ada", "second").token != old.token
    assert [entry.label for entry in store.labels.counting(QUEUE)] == ["second"]


def test_an_undone_item_is_not_given_away_at_once(store: Store) -> None:
    filled(store, 1, overlap=1)
    label(store, "ada")
    store.labels.undo(QUEUE, "ada", "u1")
    assert store.assignments.next_item(QUEUE, "ben") is None


def test_a_skip_needs_a_reason_and_can_be_undone(store: Store) -> None:
    filled(store, 1)
    form = take(store, "ada")
    with pytest.raises(Refused, match="why"):
        store.labels.skip(form.token, "ada", "  ")
    skipped = store.labels.skip(form.token, "ada", "no time")
    assert (skipped.action, skipped.note, skipped.label) == ("skip", "no time", "")
    assert store.labels.skip(form.token, "ada", "no time") == skipped
    store.labels.undo(QUEUE, "ada", "u1")
    assert take(store, "ada").item == form.item


def test_flags_and_notes_leave_the_item_open(store: Store) -> None:
    filled(store, 1)
    form = take(store, "ada")
    flag = store.labels.flag(form.token, "ada", "typo in the question", "f1")
    assert store.labels.flag(form.token, "ada", "typo in the question", "f1") == flag
    note = store.labels.note(form.token, "ada", "came back to it", "n1")
    assert [entry.action for entry in store.labels.log(QUEUE)] == ["flag", "note"]
    assert (flag.note, note.note) == ("typo in the question", "came back to it")
    store.labels.answer(form.token, "ada", "neither")
    assert len(store.labels.counting(QUEUE)) == 1


def test_adjudication_is_a_further_entry(store: Store) -> None:
    [item] = filled(store, 1)
    label(store, "ada", "first")
    label(store, "ben", "second")
    store.labels.adjudicate(item, "first", "eve", "document 1 is older", "t1")
    decided = store.labels.adjudicate(item, "second", "eve", "on second thoughts", "t2")
    assert store.labels.adjudicate(item, "second", "eve", "on second thoughts", "t2") == decided
    assert store.labels.adjudicated(QUEUE) == {item: decided}
    assert [entry.annotator for entry in store.labels.counting(QUEUE)] == ["ada", "ben"]
    assert len(store.labels.log(QUEUE)) == 4
    with pytest.raises(Refused, match="no item 99"):
        store.labels.adjudicate(99, "first", "eve")
    with pytest.raises(Refused, match="no label 'third'"):
        store.labels.adjudicate(item, "third", "eve")
    store.labels.adjudicate(item, "", "eve", "we have to talk")  # takes the decision back
    assert store.labels.adjudicated(QUEUE) == {}


def test_the_database_refuses_to_change_or_delete(store: Store) -> None:
    filled(store, 1, overlap=1)
    label(store, "ada")
    statements = (
        "update labels set label = 'second'",
        "delete from labels",
        "update queue_settings set overlap = 9",
        "delete from queue_settings",
    )
    for statement in statements:
        with pytest.raises(StorageError, match="never"), store.write() as db:
            db.execute(statement)
    other = sqlite3.connect(store.path)  # nor through another program
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        other.execute("delete from labels")
    other.close()
    assert len(store.labels.counting(QUEUE)) == 1


def test_the_log_outlives_the_run(store: Store) -> None:
    filled(store, 2)
    label(store, "ada")
    with pytest.raises(StorageError, match="1 place in a queue and 1 entry in the log of labels"):
        store.runs.delete("r1")
    store.runs.delete("r1", labels=True)
    assert [entry.run for entry in store.labels.log(QUEUE)] == ["r1"]
    assert store.labels.counting(QUEUE) == []
    assert store.assignments.progress(QUEUE).items == 1


def test_an_item_that_was_taken_out_does_not_count_until_it_is_back(store: Store) -> None:
    filled(store, 1)
    said = label(store, "ada")
    store.queues.remove("r1", QUEUE, "ada")
    assert store.labels.counting(QUEUE) == []
    store.queues.send("r1", QUEUE, "ada")
    assert [entry.token for entry in store.labels.counting(QUEUE)] == [said.token]
