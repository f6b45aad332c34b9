"""The same question in another setting: places, numbers, ids that can be traced back, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.benchmarks.base import in_split, load
from mdqa.benchmarks.placing import Placeable, Placement, is_closed_book, place, place_all, read_suffix, source_id
from mdqa.errors import ConfigError, InputError
from mdqa.records import Document, Question


def question(gold: tuple[int, ...] = (0,), count: int = 6, **meta: object) -> Question:
    """A question with ``count`` documents d0, d1, ..."""
    documents = tuple(Document(id=f"d{i}", text=f"Text {i}.", gold=i in gold) for i in range(count))
    return Question(id="q", question="Where?", answers=("x",), documents=documents, meta=meta)


@pytest.mark.parametrize(
    ("position", "order"),
    [(1, "d0 d1 d2 d3 d4 d5"), (3, "d1 d2 d0 d3 d4 d5"), (6, "d1 d2 d3 d4 d5 d0")],
)
def test_the_gold_document_moves_and_the_others_keep_their_order(position: int, order: str) -> None:
    found = place(question(), position)
    assert " ".join(found.document_ids) == order
    assert (found.id, found.answers, source_id(found)) == (f"q@p{position}", ("x",), "q")
    assert found.meta["placed"] == {"source_id": "q", "position": position, "documents": 6, "setting": "given"}


def test_several_gold_documents_stand_together() -> None:
    assert place(question((1, 4)), 2).document_ids == ("d0", "d1", "d4", "d2", "d3", "d5")
    assert place(question((1, 4)), 5).document_ids == ("d0", "d2", "d3", "d5", "d1", "d4")
    with pytest.raises(InputError, match=r"question 'q': position 6 is behind the last, 5: 2 gold of 6 documents"):
        place(question((1, 4)), 6)


def test_fewer_documents_leave_out_distractors_from_the_end() -> None:
    found = place(question((4,)), documents=3)
    assert (found.id, found.document_ids) == ("q@n3", ("d0", "d1", "d4"))
    both = place(question((4,)), 2, 3)
    assert (both.id, both.document_ids) == ("q@p2-n3", ("d0", "d4", "d1"))


def test_more_documents_come_from_the_record() -> None:
    extra = [{"id": "d1", "title": "T", "text": "More."}, {"text": "And more."}]
    found = place(question(extra_documents=extra), documents=8)
    assert found.document_ids == ("d0", "d1", "d2", "d3", "d4", "d5", "d1'", "x2")
    assert (found.documents[6].title, found.documents[6].gold) == ("T", False)
    with pytest.raises(InputError, match=r"question 'q': has 8 documents, too few for 9"):
        place(question(extra_documents=extra), documents=9)
    with pytest.raises(InputError, match=r"field 'meta.extra_documents\[0\]': has no text"):
        place(question(extra_documents=[7]), documents=7)


@pytest.mark.parametrize(
    ("setting", "documents"),
    [("oracle", "d1 d4"), ("closed_book", ""), ("no_gold", "d0 d2 d3 d5")],
)
def test_settings(setting: str, documents: str) -> None:
    found = place(question((1, 4)), setting=setting)  # type: ignore[arg-type]
    assert (found.id, " ".join(found.document_ids)) == (f"q@{setting}", documents)
    assert found.meta["placed"]["setting"] == setting
    assert is_closed_book(found) == (setting == "closed_book")


def test_some_distractors_without_evidence() -> None:
    assert place(question((1,)), documents=2, setting="no_gold").document_ids == ("d0", "d2")
    with pytest.raises(InputError, match="without them none is left"):
        place(question((0,), count=1), setting="no_gold")


def test_the_place_in_meta_stays_true() -> None:
    assert place(question((0,), gold_position=0), 3).meta["gold_position"] == 2
    assert place(question((0, 1), gold_position=[0, 1]), 3).meta["gold_position"] == [2, 3]
    assert place(question((0,), gold_position=0), setting="no_gold").meta["gold_position"] == []


def test_nothing_asked_for_is_nothing_done() -> None:
    item = question()
    assert place(item) is item


def test_what_cannot_be_placed() -> None:
    with pytest.raises(InputError, match="no document is marked gold"):
        place(question(()), 1)
    with pytest.raises(InputError, match="has 2 gold documents, more than the 1 documents asked for"):
        place(question((0, 1)), documents=1)
    done = place_all([question(), question(())], Placement(position=2))
    assert ([item.id for item in done.questions], len(done.left_out)) == (["q@p2"], 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"position": 0}, "above zero"),
        ({"setting": "open"}, "there is: given, oracle"),
        ({"setting": "oracle", "position": 1}, "leaves nothing to place"),
        ({"setting": "closed_book", "documents": 3}, "says how many"),
    ],
)
def test_placements_that_exclude_each_other(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Placement(**values)  # type: ignore[arg-type]


@given(
    st.one_of(
        st.builds(Placement, position=st.integers(1, 99), documents=st.none() | st.integers(1, 99)),
        st.builds(Placement, documents=st.integers(1, 99), setting=st.sampled_from(("given", "no_gold"))),
        st.builds(Placement, setting=st.sampled_from(("oracle", "closed_book", "no_gold"))),
    )
)
def test_the_id_says_what_was_done(wanted: Placement) -> None:
    assert read_suffix("a@b" + wanted.suffix) == ("a@b", wanted)


def test_other_ids_say_nothing() -> None:
    assert [read_suffix(name) for name in ("q", "q@home", "@p1", "q@p1x", "q@p1-p2")] == [None] * 5


def test_placed_questions_are_found_by_their_ids() -> None:
    item, odd = question(), question().model_copy(update={"id": "odd@p1"})
    known = Placeable([item, odd])
    assert known["q@p3"] == place(item, 3)
    assert known["odd@p1"] is odd, "an id of the file comes first"
    assert known["odd@p1@n2"].document_ids == ("d0", "d1")
    assert [known.get(name) for name in ("x", "x@p1", "q@p99")] == [None] * 3
    assert (list(known), len(known)) == (["q", "odd@p1"], 2)


def test_a_placed_question_stays_in_its_half() -> None:
    items = [question().model_copy(update={"id": f"q{i}"}) for i in range(20)]
    kept = [item.id for item in in_split(items, "held-out")]
    assert [source_id(i) for i in in_split((place(item, 4) for item in items), "held-out")] == kept
    assert 0 < len(kept) < 20


def test_every_position_of_a_real_file(shared_data: Path) -> None:
    items = load(shared_data / "nq20.jsonl.gz", limit=20).questions
    for position in (1, 10, 20):
        done = place_all(items, Placement(position=position))
        assert done.left_out == ()
        assert {item.document_ids.index(item.gold_ids[0]) + 1 for item in done.questions} == {position}
    assert {len(item.documents) for item in place_all(items, Placement(documents=30)).questions} == {30}
