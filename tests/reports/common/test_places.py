"""Accuracy by position and by number of documents, and what the questions look like."""

from __future__ import annotations

import pytest

from mdqa.benchmarks.placing import place
from mdqa.records import Cost, Question, RunResult
from mdqa.reports.common import by_documents, by_position, data_sets
from tests.reports.builders import placed, question, run


def answered(item: Question, right: bool, method: str = "direct", **fields: object) -> RunResult:
    return run(item, method, answer="Danube" if right else "Rhine", **fields)


def at_three_places() -> list[RunResult]:
    """Two questions at positions 1 to 3. Direct answering is right at the ends, CAFE everywhere but once."""
    made = []
    for number in range(2):
        for position, item in enumerate(placed(question(f"q{number}", meta={"dataset": "nq"}), 1, 2, 3), 1):
            made.append(answered(item, position == 1 or (position == 3 and number == 0)))
            made.append(answered(item, (number, position) != (1, 2), "cafe"))
    return made


def test_position_by_position():
    rows = by_position.report(at_three_places()).rows
    found = {(row["variant"], row["where"]): row for row in rows}
    assert [found["direct", str(place)]["sub_em"] for place in (1, 2, 3)] == [1.0, 0.0, 0.5]
    assert [found["cafe", str(place)]["sub_em"] for place in (1, 2, 3)] == [1.0, 0.5, 1.0]
    assert (found["direct", "all"]["sub_em"], found["direct", "all"]["spread"]) == (0.5, 1.0)
    assert (found["cafe", "all"]["sub_em"], found["cafe", "all"]["spread"]) == (pytest.approx(5 / 6), 0.5)
    assert [found["cafe", str(place)]["sub_em_change"] for place in (1, 2, 3)] == [0.0, 0.5, 0.5]
    assert found["direct", "1"]["p"] is None and found["direct", "1"]["group"] == "m, nq"
    # Over all places q0 gains 1 (2 wrong becomes right: position 2) and q1 gains 1 (position 3): signs of two clusters
    everywhere = found["cafe", "all"]
    assert (everywhere["b"], everywhere["c"], everywhere["p"], everywhere["common"]) == (2, 0, pytest.approx(0.5), 6)


def test_one_question_at_several_places_is_drawn_whole():
    rows = by_position.report([one for one in at_three_places() if one.question.id.startswith("q0@")]).rows
    overall = next(row for row in rows if row["where"] == "all" and row["variant"] == "direct")
    assert overall["sub_em"] == overall["sub_em_low"] == overall["sub_em_high"] == pytest.approx(2 / 3)


def test_positions_of_questions_that_nobody_placed():
    runs = [answered(question("a", gold=(1,)), True), answered(question("b", gold=(3,)), False)]
    assert [(row["where"], row["sub_em"]) for row in by_position.report(runs).rows] == [
        ("1", 1),
        ("3", 0),
        ("all", 0.5),
    ]
    several = answered(question("c", gold=(1, 2)), True)
    assert "1 of 3 runs are left out" in by_position.report([*runs, several]).note


def test_one_position_is_not_enough():
    assert by_position.report([answered(question("a"), True), answered(question("b"), True)]).needs


def with_more_documents() -> list[RunResult]:
    """Four questions with 2, 4 and gold documents alone: 4 documents cost one answer and give none."""
    made = []
    for number in range(4):
        item = question(f"q{number}", meta={"dataset": "nq"})
        made.append(answered(place(item, documents=2), number < 3))
        made.append(answered(item, number < 2))
        made.append(answered(place(item, setting="oracle"), True))
        made.append(answered(place(item, setting="no_gold"), False))
    return made


def test_more_documents():
    found = by_documents.report(with_more_documents())
    alone, few, many = found.rows
    assert [row["setting"] for row in found.rows] == ["gold only (1)", "2", "4"]
    assert [row["sub_em"] for row in found.rows] == [1.0, 0.75, 0.5]
    assert (alone["documents"], few["documents"], many["documents"]) == (None, 2, 4)
    assert few["sub_em_change"] is None
    assert (many["sub_em_change"], many["b"], many["c"], many["p"]) == (-0.25, 0, 1, 1.0)
    assert found.n == 12 and "4 of 16 runs are left out" in found.note


def test_only_questions_asked_with_both_numbers_are_compared():
    more = answered(place(question("other", meta={"dataset": "nq"}), documents=2), False)
    rows = by_documents.report([*with_more_documents(), more]).rows
    assert rows[1]["sub_em"] == pytest.approx(3 / 5) and rows[2]["sub_em_change"] == -0.25 and rows[2]["common"] == 4


def test_one_number_of_documents_is_not_enough():
    assert by_documents.report([answered(question("a"), True)]).needs


def test_what_the_questions_look_like():
    tokens = iter((100, 300))
    runs = []
    for name, gold in (("a", (1,)), ("b", (1, 2))):
        item = question(name, gold=gold, documents=2 if name == "a" else 4, meta={"dataset": "nq"})
        runs.append(answered(item, True, cost=Cost(llm_calls=1, prompt_tokens=next(tokens))))
        runs.append(answered(item, True, "cafe", cost=Cost(llm_calls=2, prompt_tokens=9999)))
        alone = {"config": {"context": "gold_only"}, "cost": Cost(llm_calls=1, prompt_tokens=5)}
        runs.append(answered(item, True, **alone))
    [row] = data_sets.report(runs).rows
    assert (row["n"], row["documents"], row["gold"], row["data"]) == (2, 3.0, "1 to 2", "nq")
    assert (row["tokens"], row["tokens_sd"], row["tokens_max"], row["counted"]) == (200.0, 100.0, 300.0, 2)


def test_no_length_without_direct_answering():
    found = data_sets.report([answered(question("a"), True, "cafe")])
    assert found.rows[0]["tokens"] is None and "no input length is known" in found.note
    assert data_sets.report(()).needs
