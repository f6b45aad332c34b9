"""What if: documents off, elsewhere, twice or edited; what is noted of it, and the identities that must hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mdqa.benchmarks.placing import place
from mdqa.errors import InputError
from mdqa.interventions import (
    Duplicate,
    Edit,
    Intervention,
    Move,
    SwitchOff,
    Wanted,
    apply,
    done_to,
    in_words,
    longest_rising,
    plan,
    read_intervention,
    words_between,
)
from mdqa.records import Document, Question
from mdqa.reports.grouping import data_set, same_question
from tests.ui.helpers import question

Q = question(4)  # d1 to d4, the second gold


def ids(*interventions: Intervention) -> tuple[str, ...]:
    """Ids of the documents after these interventions on Q."""
    return apply(Q, interventions).document_ids


@st.composite
def chains(draw: st.DrawFn) -> list[Intervention]:
    """Up to six interventions that can be carried out on Q one after the other."""
    item, chain = Q, []
    for _ in range(draw(st.integers(0, 6))):
        n, name = len(item.documents), draw(st.sampled_from(item.document_ids))
        kinds: list[st.SearchStrategy[Intervention]] = [
            st.builds(Move, document=st.just(name), position=st.integers(1, n)),
            st.builds(Duplicate, document=st.just(name), position=st.integers(1, n + 1)),
            st.builds(Edit, document=st.just(name), title=st.text(max_size=3), text=st.sampled_from(["a", "b c"])),
        ]
        kinds += [st.builds(SwitchOff, document=st.just(name))] if n > 1 else []
        step = draw(st.one_of(kinds))
        item = apply(item, [step])
        chain.append(step)
    return chain


def test_documents_go_where_they_are_put() -> None:
    assert ids(SwitchOff(document="d3")) == ("d1", "d2", "d4")
    assert ids(Move(document="d1", position=3)) == ("d2", "d3", "d1", "d4")
    assert ids(Move(document="d4", position=1)) == ("d4", "d1", "d2", "d3")
    assert ids(Duplicate(document="d2", position=5)) == ("d1", "d2", "d3", "d4", "d2~2")
    assert ids(SwitchOff(document="d1"), Move(document="d4", position=3)) == ("d2", "d3", "d4")


def test_gold_marks_stay() -> None:
    item = apply(
        Q, [Duplicate(document="d2", position=1), Edit(document="d2", title="New", text="Nothing about rivers.")]
    )
    assert item.gold_ids == ("d2~2", "d2")
    assert item.document("d2") == Document(id="d2", title="New", text="Nothing about rivers.", gold=True)
    assert item.document("d2~2").text == Q.document("d2").text
    assert (item.answers, item.question) == (Q.answers, Q.question)
    placed = Q.model_copy(update={"meta": {"gold_position": 1, "dataset": "nq20"}})
    moved = apply(placed, [Move(document="d2", position=4)])
    assert moved.meta["gold_position"] == 3 and moved.meta["dataset"] == "nq20"


def test_a_copy_never_gets_an_id_that_was_there() -> None:
    twice = apply(Q, [Duplicate(document="d1", position=2), Duplicate(document="d1~2", position=3)])
    assert twice.document_ids == ("d1", "d1~2", "d1~3", "d2", "d3", "d4")
    gone = apply(twice, [SwitchOff(document="d1~3"), Duplicate(document="d1", position=1)])
    assert gone.document_ids[0] == "d1~4"
    named = Q.with_documents((*Q.documents, Document(id="d1~2", text="Its own.")))
    assert apply(named, [Duplicate(document="d1", position=1)]).document_ids[0] == "d1~3"


def test_what_was_done_is_noted_and_survives_json() -> None:
    item = apply(Q, [SwitchOff(document="d3"), Duplicate(document="d1", position=1)])
    again = apply(item, [Edit(document="d4", title="Title 4", text="Short.")])
    assert [entry["words"] for entry in done_to(again)] == [
        "Switched off document 3 “Title 3”",
        "Put a copy of document 1 “Title 1” at position 1",
        "Edited the text of document 4 “Title 4”",
    ]
    assert done_to(item)[1]["copy"] == "d1~2"
    assert Question.model_validate_json(again.model_dump_json()) == again
    assert json.loads(json.dumps(again.meta, allow_nan=False)) == again.meta
    fields = {"words", "copy"}
    noted = [read_intervention({k: v for k, v in e.items() if k not in fields}) for e in done_to(again)]
    assert apply(Q, noted) == again
    assert done_to(Q) == ()


def test_the_id_stays_and_tables_keep_the_question_apart() -> None:
    known = Q.model_copy(update={"meta": {"dataset": "nq20"}})
    changed = apply(known, [SwitchOff(document="d1")])
    assert changed.id == known.id
    assert same_question(changed) != same_question(known)
    assert (data_set(known), data_set(changed), data_set(place(changed, position=2))) == (
        "nq20", "nq20@what-if", "nq20@p2@what-if"
    )  # fmt: skip


def test_in_words_names_what_changes() -> None:
    untitled = Q.with_documents((Document(id="x", text="word " * 40),))
    assert in_words(SwitchOff(document="x"), untitled).endswith("word…”")
    assert in_words(Edit(document="d1", title="T", text=Q.documents[0].text), Q).startswith("Edited the title of")
    assert in_words(Edit(document="d1", title="T", text="x"), Q).startswith("Edited the title and the text of")
    assert in_words(Move(document="d2", position=1), Q) == "Moved document 2 “Title 2” to position 1"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        pytest.param(SwitchOff(document="dx"), "intervention 2: there is no document 'dx'; .* d1, d3", id="unknown"),
        pytest.param(SwitchOff(document="d2"), "intervention 2: there is no document 'd2'", id="off-already"),
        pytest.param(Move(document="d1", position=0), "position 0 does not exist; positions are 1 to 3", id="zero"),
        pytest.param(Move(document="d1", position=4), "position 4 does not exist; positions are 1 to 3", id="behind"),
        pytest.param(Duplicate(document="d1", position=5), "positions are 1 to 4", id="copy-behind"),
        pytest.param(Edit(document="d1", title="T", text=" \n"), "text of document 'd1' is empty", id="empty"),
    ],
)
def test_what_cannot_be_done_is_refused(step: Intervention, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply(Q, [SwitchOff(document="d2"), step])


def test_one_document_must_be_left() -> None:
    with pytest.raises(InputError, match="intervention 4: would switch off the last document"):
        apply(Q, [SwitchOff(document=name) for name in Q.document_ids])
    with pytest.raises(ValidationError):
        read_intervention({"kind": "shout", "document": "d1"})


def test_doing_nothing_is_the_same_question() -> None:
    assert apply(Q, []) is Q
    second = Q.documents[1]
    nothing = [Move(document="d2", position=2), Edit(document="d2", title=second.title, text=second.text)]
    assert apply(Q, nothing) is Q
    there = [Move(document="d1", position=4), Move(document="d1", position=1)]
    assert apply(Q, there).documents == Q.documents
    copied = [Duplicate(document="d1", position=3), SwitchOff(document="d1~2")]
    assert apply(Q, copied).documents == Q.documents


@settings(max_examples=40, deadline=None)
@given(chains(), chains())
def test_one_after_the_other_is_both_at_once(first: list[Intervention], second: list[Intervention]) -> None:
    half = apply(Q, first)
    try:
        whole = apply(half, second)
    except InputError:  # the second chain was drawn for the original question
        return
    assert whole == apply(Q, [*first, *second])


@settings(max_examples=40, deadline=None)
@given(chains())
def test_documents_are_kept_apart_and_in_order(chain: list[Intervention]) -> None:
    item = apply(Q, chain)
    assert len(set(item.document_ids)) == len(item.documents) > 0
    off = {step.document for step in chain if isinstance(step, SwitchOff)}
    copies = {entry["copy"] for entry in done_to(item) if "copy" in entry}
    assert set(item.document_ids) == (set(Q.document_ids) | copies) - off
    if not any(isinstance(step, Move) for step in chain):
        assert [d for d in item.document_ids if d in Q.document_ids] == [d for d in Q.document_ids if d not in off]


def words(*wanted: Wanted | str) -> list[str]:
    """Words of the plan from Q to these documents."""
    entries = [Wanted(document=entry) if isinstance(entry, str) else entry for entry in wanted]
    return [entry["words"] for entry in done_to(apply(Q, plan(Q, entries)))]


def test_a_plan_is_short_and_in_the_persons_terms() -> None:
    assert words("d1", "d2", "d3", "d4") == []
    assert words("d1", "d2", "d4") == ["Switched off document 3 “Title 3”"]
    assert words("d2", "d3", "d4", "d1") == ["Moved document 1 “Title 1” to position 4"]
    assert words("d4", "d1", "d2", "d3") == ["Moved document 4 “Title 4” to position 1"]
    twin = Wanted(document="d1", copied=True)
    assert words("d1", "d2", twin, "d3", "d4") == ["Put a copy of document 1 “Title 1” at position 3"]
    edited = Wanted(document="d2", text="New.")
    assert words("d1", edited, "d3", "d4") == ["Edited the text of document 2 “Title 2”"]
    assert len(words("d4", "d3", "d2", "d1")) == 3
    only_twin = apply(Q, plan(Q, [twin, Wanted(document="d4")]))
    assert only_twin.document_ids == ("d1~2", "d4")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param([], "documents: every document is switched off", id="none"),
        pytest.param(["d1", "dx"], "documents, number 2: the question has no document 'dx'", id="unknown"),
        pytest.param(["d1", "d2", "d1"], "documents, number 3: document 'd1' is listed twice", id="twice"),
    ],
)
def test_what_cannot_be_planned_is_refused(wanted: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(Q, [Wanted(document=name) for name in wanted])


@settings(max_examples=40, deadline=None)
@given(
    st.permutations(Q.document_ids),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(Q.document_ids)), max_size=2),
    st.sampled_from(Q.document_ids),
    st.sampled_from([None, "a new text"]),
)
def test_a_plan_gives_what_is_wanted(
    order: list[str], kept: int, copies: list[tuple[int, str]], edited: str, text: str | None
) -> None:
    wanted = [Wanted(document=name, text=text if name == edited else None) for name in order[:kept]]
    for index, name in copies:
        wanted.insert(index, Wanted(document=name, copied=True))
    item = apply(Q, plan(Q, wanted))
    assert [d.text for d in item.documents] == [entry.text or Q.document(entry.document).text for entry in wanted]
    assert [d.id for d in item.documents if d.id in Q.document_ids] == [e.document for e in wanted if not e.copied]


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(7)))
def test_the_longest_rising_subsequence_is_found(numbers: list[int]) -> None:
    found = longest_rising(numbers)
    assert found == sorted(found) and [n for n in numbers if n in found] == found
    chosen = ([n for i, n in enumerate(numbers) if mask >> i & 1] for mask in range(128))
    assert len(found) == max(len(some) for some in chosen if some == sorted(some))


def test_what_was_done_is_counted_from_the_earlier_run() -> None:
    first = apply(Q, [SwitchOff(document="d1")])
    second = apply(first, [SwitchOff(document="d2")])
    sibling = apply(Q, [SwitchOff(document="d3")])
    assert words_between(first, second) == ("Switched off document 1 “Title 2”",)
    assert words_between(Q, second) == ("Switched off document 1 “Title 1”", "Switched off document 1 “Title 2”")
    assert words_between(first, sibling) == ("Switched off document 2 “Title 3”", "Put back “Title 1” as document 1")
    assert words_between(second, first) == ("Put back “Title 2” as document 1",)
    assert words_between(sibling, Q) == ("Put back “Title 3” as document 3",)
    other = Q.with_documents((Document(id="x", text="Other."),))
    assert words_between(second, other) == ("Switched off all 2 documents", "Put back “Other.” as document 1")
