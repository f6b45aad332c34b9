"""Position sweeps on questions and runs built by hand."""

from __future__ import annotations

import pytest

from mdqa.benchmarks.placing import place
from mdqa.errors import ConfigError, InputError
from mdqa.interventions import done_to
from mdqa.records import AttentionSummary, Cost, Question, RunResult
from mdqa.studies.base import Outcome
from mdqa.studies.position_sweep import (
    Point,
    at_position,
    every_position,
    few_positions,
    given_position,
    key,
    last_position,
    moved_documents,
    position_sweep,
    read_positions,
    variants,
)
from tests.diagnosis.builders import DOCUMENTS, IDS, QUESTION, run, stage

TWO_GOLD = QUESTION.with_documents(tuple(d.model_copy(update={"gold": d.id in ("d2", "d4")}) for d in DOCUMENTS))


def order(item: Question) -> str:
    return " ".join(item.document_ids)


def result(item: Question, answer: str, method: str = "direct", **more: object) -> RunResult:
    ids = item.document_ids
    scores = {"sim": {name: 1.0 if name == "d1" else 0.5 - 0.01 * i for i, name in enumerate(ids)}}
    kept = [name for name in ids if name in ("d1", "d2")]
    return run(
        answer,
        stage("rank", ids, kept, scores=scores),
        item=item,
        method=method,
        attention_summary=(
            AttentionSummary(
                stage="rank",
                layers=1,
                heads=1,
                retrieval_heads=(),
                document_mass={name: 0.1 * i for i, name in enumerate(ids, 1)},
                head_mass={},
            ),
        ),
        cost=Cost(prefill_tokens_computed=7, seconds=0.25),
        **more,
    )


def test_positions() -> None:
    assert every_position(QUESTION) == (1, 2, 3, 4, 5) and few_positions(QUESTION) == (1, 3, 5)
    assert last_position(TWO_GOLD) == 4 and few_positions(TWO_GOLD) == (1, 2, 4)
    assert last_position(TWO_GOLD, "d2") == 5
    assert few_positions(QUESTION.with_documents(DOCUMENTS[:1])) == (1,)


@pytest.mark.parametrize(("words", "found"), [("5, 1 1;3", (1, 3, 5)), ("2", (2,))])
def test_typed_positions(words: str, found: tuple[int, ...]) -> None:
    assert read_positions(words, 5) == found


@pytest.mark.parametrize("words", ["", " , ", "0", "6", "1.5", "-1", "first", "²", "1" * 40])
def test_typed_positions_that_are_none(words: str) -> None:
    with pytest.raises(ConfigError, match="positions: "):
        read_positions(words, 5)


def test_gold_documents_are_placed_together_and_a_chosen_one_alone() -> None:
    assert order(at_position(TWO_GOLD, "", 3)) == "d1 d3 d2 d4 d5"
    assert order(at_position(TWO_GOLD, "d3", 1)) == "d3 d1 d2 d4 d5"
    assert at_position(TWO_GOLD, "d3", 3).documents == TWO_GOLD.documents
    assert at_position(TWO_GOLD, "d3", 1).gold_ids == ("d2", "d4")
    with pytest.raises(InputError, match="no document is marked gold"):
        moved_documents(QUESTION.with_documents(DOCUMENTS[1:]))
    with pytest.raises(InputError, match="there is no document 'x'"):
        at_position(QUESTION, "x", 1)


@pytest.mark.parametrize("document", ["", "d3"])
@pytest.mark.parametrize("item", [QUESTION, TWO_GOLD, at_position(TWO_GOLD, "", 4)], ids=["one", "apart", "together"])
def test_the_position_that_changes_nothing(item: Question, document: str) -> None:
    same = [p for p in every_position(item, document) if at_position(item, document, p).documents == item.documents]
    found = given_position(item, document)
    assert same == ([] if found is None else [found])


def test_nothing_but_the_position_differs() -> None:
    for document, position in (("", 3), ("d3", 1)):
        item = at_position(TWO_GOLD, document, position)
        assert item.id == TWO_GOLD.id  # seeds are made of it
        assert sorted(d.id for d in item.documents) == list(IDS) and done_to(item)  # no table counts it as the original
    once = place(TWO_GOLD, 4)
    assert order(at_position(once, "", 2)) == order(place(TWO_GOLD, 2))


def test_variants_go_position_by_position() -> None:
    found = variants(QUESTION, ["direct", "cafe"], (1, 5))
    assert [variant.key for variant in found] == ["direct@1", "cafe@1", "direct@5", "cafe@5"]
    assert [order(variant.question) for variant in found[::2]] == ["d1 d2 d3 d4 d5", "d2 d3 d4 d5 d1"]
    with pytest.raises(ConfigError, match="choose at least one"):
        variants(QUESTION, [], (1,))
    with pytest.raises(ConfigError, match="choose at least one"):
        variants(QUESTION, ["direct"], ())
    with pytest.raises(InputError, match="position 6 is behind the last"):
        variants(QUESTION, ["direct"], (6,))


def test_points_say_what_became_of_the_moved_document() -> None:
    planned = {variant.key: variant.question for variant in variants(QUESTION, ["direct"], (1, 3, 5))}
    results = {
        key("direct", 1): result(planned["direct@1"], "in Vienna"),
        key("direct", 5): result(planned["direct@5"], "Graz", status="failed"),
    }
    found = position_sweep(QUESTION, ["direct"], (1, 3, 5), results)
    first, middle, last = found.curve("direct")
    assert found.moved == ("d1",)
    assert [point.value("sub_em") for point in found.points] == [1.0, None, None]
    assert first.value("f1") == pytest.approx(2 / 3) and first.value("attention") == pytest.approx(0.1)
    assert (first.value("reached"), first.value("rank")) == (1.0, 1.0)
    assert (first.value("computed"), first.value("seconds")) == (7.0, 0.25)
    (at,) = first.stages
    assert (at.came, at.kept, at.signal, at.rank, at.of, at.score) == (1, 1, "sim", 1, 5, 1.0)
    assert first.same and not last.same
    assert (middle.outcome.state, last.outcome.state) == ("missing", "failed")
    assert (found.tally.total, found.tally.ok, found.tally.failed, found.tally.missing) == (3, 1, 1, 1)
    assert found.measures() == ["sub_em", "f1", "attention", "reached", "rank", "computed", "seconds"]
    with pytest.raises(ConfigError, match="there is no measure 'colour'"):
        first.value("colour")


def test_several_moved_documents_add_their_attention_and_give_the_best_rank() -> None:
    item = at_position(TWO_GOLD, "", 1)  # d2 d4 d1 d3 d5
    found = position_sweep(TWO_GOLD, ["direct"], (1,), {"direct@1": result(item, "Graz")})
    (point,) = found.points
    assert point.value("attention") == pytest.approx(0.3)
    assert point.value("reached") == 1.0 and point.value("rank") == 2.0  # d1 stands before d2


def test_what_nobody_measured_is_no_measure() -> None:
    item = QUESTION.model_copy(update={"answers": ()})
    bare = run("Graz", item=at_position(item, "d2", 1), method="direct")
    found = position_sweep(item, ["direct"], (1,), {"direct@1": bare}, "d2")
    assert found.measures() == ["computed", "seconds"]
    assert item.document_ids == IDS


def test_what_memory_shortened_says_nothing_of_the_position() -> None:
    short = Outcome("ok", "r", "Danube", cost=Cost(prefill_tokens_computed=3, seconds=0.1, remembered_calls=1))
    point = Point("direct", 1, short, attention=0.2)
    assert (point.value("computed"), point.value("seconds"), point.value("attention")) == (None, None, 0.2)
