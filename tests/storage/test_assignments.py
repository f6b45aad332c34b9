"""Who gets which item: never twice, as many people as wanted, nobody stalls, contested first, practice first."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mdqa.errors import StorageError
from storage.queue_settings import PracticeItem, QueueSettings
from storage.queues import UnknownQueue
from storage.store import Store
from tests.storage.labelling import QUEUE, filled, label, take


def test_a_person_gets_every_item_once_and_an_open_one_again(store: Store) -> None:
    items = filled(store, 3, overlap=2)
    seen = []
    for _ in items:
        form = take(store, "ada")
        again = take(store, "ada")  # the page was loaded again
        assert replace(again, expires=form.expires) == form
        store.labels.answer(form.token, "ada", "both")
        seen.append(form.item)
    assert seen == items
    assert store.assignments.next_item(QUEUE, "ada") is None


def test_the_overlap_counts_labels_and_leases(store: Store) -> None:
    filled(store, 1, overlap=2)
    label(store, "ada")
    take(store, "ben")
    assert store.assignments.next_item(QUEUE, "cas") is None
    label(store, "ben")
    assert store.assignments.next_item(QUEUE, "cas") is None


def test_people_who_leave_do_not_hold_the_queue_up(store: Store) -> None:
    [item] = filled(store, 1, overlap=1)
    left = store.assignments.next_item(QUEUE, "ada", lease=timedelta(0))
    assert left is not None
    assert take(store, "ben").item == item
    assert store.assignments.next_item(QUEUE, "ada") is None  # somebody else has it now
    label(store, "ben")
    assert store.labels.answer(left.token, "ada", "first").label == "first"  # what is said late is kept all the same
    assert len(store.labels.counting(QUEUE)) == 2


def test_a_sign_of_life_holds_an_item(store: Store) -> None:
    filled(store, 1, overlap=1)
    form = store.assignments.next_item(QUEUE, "ada", lease=timedelta(0))
    assert form is not None
    store.assignments.renew(form.token, "ben")  # not his
    assert store.assignments.form(form.token, "ada").expires == form.expires
    store.assignments.renew(form.token, "ada")
    assert store.assignments.next_item(QUEUE, "ben") is None


def test_a_skipped_item_goes_to_somebody_else(store: Store) -> None:
    first, second = filled(store, 2, overlap=1)
    store.labels.skip(take(store, "ada").token, "ada", "too long")
    assert take(store, "ada").item == second
    assert take(store, "ben").item == first


def test_contested_items_come_first_then_those_that_want_the_fewest(store: Store) -> None:
    one, two, three, four = filled(store, 4, overlap=3)
    for person, said in (("ada", ("first", "first", "first")), ("ben", ("first", "second"))):
        for word in said:
            label(store, person, word)
    # ada: 1, 2, 3. ben: first of those with one label, 1 and 2, the second one with another word.
    assert {r.item for r in store.labels.counting(QUEUE) if r.annotator == "ben"} == {one, two}
    order = []
    for _ in range(4):
        order.append(label(store, "cas").item)
    assert order == [two, one, three, four]


def test_as_sent_and_random(store: Store) -> None:
    items = filled(store, 12, overlap=2, order="as_sent")
    label(store, "ada")
    label(store, "ada")
    assert [label(store, "ben").item for _ in range(3)] == items[:3]
    store.queue_settings.change(QUEUE, "ada", order="random")
    orders = {tuple(label(store, f"p{n}").item for _ in range(2)) for n in range(4)}
    assert len(orders) > 1


def test_practice_items_come_first_and_do_not_count(store: Store) -> None:
    one, two, three = filled(store, 3)
    practice = [PracticeItem("r3", "second", "see document 2"), PracticeItem("r2", "first")]
    store.queue_settings.change(QUEUE, "ada", overlap=1, practice_items=practice)
    for person in ("ada", "ben"):
        forms = [label(store, person), label(store, person)]
        assert [form.item for form in forms] == [three, two]
        assert all(form.practice for form in forms)
    real = label(store, "ben")
    assert (real.item, real.practice) == (one, False)
    assert store.assignments.next_item(QUEUE, "ada") is None
    assert [r.item for r in store.labels.counting(QUEUE)] == [one]
    progress = store.assignments.progress(QUEUE)
    assert (progress.items, progress.labels, progress.wanted, progress.complete, progress.practice) == (1, 1, 1, 1, 2)
    own = store.assignments.own_progress(QUEUE, "ben")
    assert (own.labelled, own.left, own.practised, own.practice) == (1, 0, 2, 2)


def test_what_was_practice_once_never_counts(store: Store) -> None:
    """Who was told what is expected cannot take that back and say it for others to count."""
    [item] = filled(store, 1, overlap=1, practice_items=[PracticeItem("r1", "second")])
    label(store, "ada", "first")
    store.queue_settings.change(QUEUE, "cas", practice_items=())
    store.labels.undo(QUEUE, "ada", "u1")
    assert label(store, "ada", "second").practice
    assert store.labels.counting(QUEUE) == []
    assert label(store, "ben", "first").item == item
    assert [r.annotator for r in store.labels.counting(QUEUE)] == ["ben"]


def test_labels_beyond_the_overlap_are_no_progress(store: Store) -> None:
    filled(store, 2, overlap=2)
    for person in ("ada", "ben"):
        label(store, person)
    store.queue_settings.change(QUEUE, "ada", overlap=1)
    found = store.assignments.progress(QUEUE)
    assert (found.labels, found.wanted, found.complete) == (1, 2, 1)


def test_the_order_of_the_candidates_is_drawn_once_and_balanced(store: Store, tmp_path: Path) -> None:
    items = filled(store, 16, overlap=5)
    drawn = {}
    for person in ("ada", "ben", "cas", "dee", "eve"):
        for _ in items:
            form = take(store, person)
            drawn[form.token] = form.swapped
            store.labels.answer(form.token, person, "first")
    number = sum(drawn.values())
    assert 16 <= number <= 64  # of 80 fair draws; outside by chance once in 10^7
    assert {r.token: r.swapped for r in store.labels.log(QUEUE)} == drawn
    open_ = [store.assignments.next_item(QUEUE, "fay")]
    assert open_ == [None]
    store.queue_settings.change(QUEUE, "ada", overlap=6)
    before = take(store, "fay")
    store.close()
    with Store.open(store.path) as again:
        assert take(again, "fay").swapped == before.swapped


def test_an_item_that_was_taken_out_is_given_to_nobody(store: Store) -> None:
    _, second = filled(store, 2)
    take(store, "ada")
    store.queues.remove("r1", QUEUE, "ada")
    assert take(store, "ada").item == second
    assert take(store, "ben").item == second


def test_progress(store: Store) -> None:
    filled(store, 3, overlap=2)
    for person in ("ada", "ben"):
        label(store, person)
    form = take(store, "ada")
    store.labels.flag(form.token, "ada", "two questions in one", "t1")
    found = store.assignments.progress(QUEUE)
    assert (found.items, found.complete, found.labels, found.wanted) == (3, 1, 2, 6)
    assert (found.people, found.working, found.flagged) == (2, 1, 1)
    store.labels.skip(form.token, "ada", "unclear")
    own = store.assignments.own_progress(QUEUE, "ada")
    assert (own.labelled, own.skipped, own.left) == (1, 1, 1)
    with pytest.raises(UnknownQueue):
        store.assignments.progress("no such queue")


def test_fifty_people_at_once(store: Store) -> None:
    items = filled(store, 20, overlap=3)
    given: dict[str, list[int]] = {}
    problems: list[BaseException] = []

    def work(person: str) -> None:
        mine = given.setdefault(person, [])
        try:
            while (form := store.assignments.next_item(QUEUE, person)) is not None:
                mine.append(form.item)
                store.labels.answer(form.token, person, "first")
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(f"p{number}",)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert all(len(set(mine)) == len(mine) for mine in given.values())
    assert Counter(item for mine in given.values() for item in mine) == dict.fromkeys(items, 3)
    assert len(store.labels.counting(QUEUE)) == 60


def test_settings_are_versions(store: Store) -> None:
    filled(store, 2)
    assert store.queue_settings.of(QUEUE) == QueueSettings()
    first = store.queue_settings.change(QUEUE, "ada", guidelines="Read all documents.\n", overlap=3)
    assert (first.version, first.guidelines, first.made_by) == (1, "Read all documents.", "ada")
    same = store.queue_settings.change(QUEUE, "ben", overlap=3)
    assert same == first
    form = take(store, "ada")
    second = store.queue_settings.change(QUEUE, "ben", guidelines="Read twice.")
    assert (second.version, second.overlap) == (2, 3)
    assert store.labels.answer(form.token, "ada", "first").version == 1
    assert label(store, "ben").version == 2
    assert store.queue_settings.versions(QUEUE) == [first, second]
    assert store.queue_settings.of(QUEUE, 1) == first
    with pytest.raises(StorageError, match="version 7"):
        store.queue_settings.of(QUEUE, 7)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"overlap": 0}, "0 people per item"),
        ({"order": "alphabetical"}, "no order 'alphabetical'"),
        ({"labels": ("first", "third")}, "no label 'third'"),
        ({"labels": ("first",)}, "two different labels"),
        ({"labels": ("neither", "second")}, "first and second go together"),
        ({"guidelines": "x" * 20_001}, "20,001 characters"),
        ({"practice_items": (PracticeItem("r9", "first"),)}, "'r9' is not in the queue"),
        ({"practice_items": (PracticeItem("r1", "third"),)}, "'third'"),
        ({"practice_items": (PracticeItem("r1", "first"), PracticeItem("r1", "first"))}, "twice"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_settings_out_of_their_limits(store: Store, change: dict[str, object], words: str) -> None:
    filled(store, 1)
    with pytest.raises(StorageError, match=words):
        store.queue_settings.change(QUEUE, "ada", **change)  # type: ignore[arg-type]
    assert store.queue_settings.versions(QUEUE) == []
