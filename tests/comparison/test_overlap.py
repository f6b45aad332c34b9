"""Who is right where, by hand; accuracy by position beside a direct computation; the Pareto front."""

from __future__ import annotations

import pytest

from mdqa.comparison.entries import choose, first_choice
from mdqa.comparison.overlap import overlap, pair, pareto, patterns, rights
from mdqa.errors import InputError
from mdqa.statistics.bootstrap import mean_interval
from tests.comparison.test_entries import ITEMS, answers, counted

ONE = {"a": True, "b": True, "c": False, "d": False, "e": True}
TWO = {"b": True, "a": False, "c": True, "d": False}


def test_two_entries_by_hand() -> None:
    found = pair(ONE, TWO)
    assert (found.both, found.first_only, found.second_only, found.neither) == (("b",), ("a",), ("c",), ("d",))
    assert found.n == 4, "the question that only one was asked does not count"
    other = pair(TWO, ONE)
    assert (other.first_only, other.second_only) == (("c",), ("a",))
    assert pair(ONE, {}).n == 0


def test_patterns_by_hand() -> None:
    columns = [
        {"a": True, "b": True, "c": False, "d": False, "e": True},
        {"a": False, "b": False, "c": True, "d": False, "e": True},
    ]
    assert [(p.right, p.questions) for p in patterns(columns)] == [
        ((True, False), ("a", "b")),
        ((True, True), ("e",)),
        ((False, True), ("c",)),
        ((False, False), ("d",)),
    ]
    assert patterns([]) == []
    assert patterns([ONE, {}]) == []


@pytest.mark.parametrize(
    ("points", "front"),
    [
        pytest.param([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)], {0, 1}, id="dominated"),
        pytest.param([(1.0, 0.5), (1.0, 0.5), (1.0, 0.4)], {0, 1}, id="equal"),
        pytest.param([None, (2.0, 0.1)], {1}, id="no number"),
        pytest.param([], set(), id="none"),
    ],
)
def test_pareto_front(points: list[tuple[float, float] | None], front: set[int]) -> None:
    assert pareto(points) == front


def test_the_whole_of_two_entries() -> None:
    found = counted(*answers(), *answers((True, False, False, False, True), config={"context": "none"})).made()
    compared = choose(found, first_choice(found))
    made = overlap(compared, "em")
    ids = [item.id for item in ITEMS]
    assert made.rights[0] == dict(zip(ids, (True, True, False, True, False), strict=True))
    assert made.pairs[0, 1].both == (ids[0],)
    assert made.pairs[0, 1].first_only == (ids[1], ids[3])
    assert made.pairs[1, 0].first_only == (ids[4],)
    test = compared.report()["entries"][1]["tests"]["em"]
    assert (test["b"], test["c"]) == (len(made.pairs[1, 0].first_only), len(made.pairs[1, 0].second_only))
    assert [(p.right, len(p.questions)) for p in made.patterns] == [
        ((True, False), 2),
        ((True, True), 1),
        ((False, True), 1),
        ((False, False), 1),
    ]
    with pytest.raises(InputError, match="does not say what is right"):
        overlap(compared, "f1")


def test_accuracy_at_every_position() -> None:
    found = counted(*answers()).made()
    compared = choose(found, first_choice(found))
    at = {one.position: one.entries[0] for one in overlap(compared, "sub_em").positions}
    assert set(at) == {1, 3}
    assert at[1] is not None and at[3] is not None
    assert (at[1]["mean"], at[1]["n"]) == (pytest.approx(1 / 3), 3), "questions a and b at 1, and c as given"
    assert (at[3]["mean"], at[3]["n"]) == (1.0, 2)
    assert at[3]["low"] == at[3]["high"] == 1.0
    assert at[1]["low"] == 0.0 <= at[1]["mean"] <= at[1]["high"]  # type: ignore[operator]
    assert at[1]["high"] == mean_interval([1.0, 0.0, 0.0]).high


def test_only_answers_that_can_be_judged_have_a_side() -> None:
    bare = [r.model_copy(update={"question": r.question.model_copy(update={"answers": ()})}) for r in answers()]
    found = counted(*bare).made()
    assert rights(choose(found, first_choice(found)).series[0], "em") == {}
