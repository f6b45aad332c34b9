"""Gold recall and precision after every stage."""

from __future__ import annotations

from mdqa.records import Stage
from mdqa.scoring.evidence import gold_precision, gold_recall, gold_recall_at, stage_evidence

GOLD = ("d1", "d3")


def test_recall_is_of_all_gold_documents_and_lost_of_this_stage() -> None:
    first = Stage(name="a", title="A", documents=("d1", "d2", "d3", "d4"), kept=("d2", "d3"))
    second = Stage(name="b", title="B", documents=("d2", "d3"), kept=("d2",))
    one, two = stage_evidence(first, GOLD), stage_evidence(second, GOLD)
    assert (one.recall, one.precision, one.lost) == (0.5, 0.5, ("d1",))
    assert (two.recall, two.precision, two.lost) == (0.0, 0.0, ("d3",))


def test_undefined_values_are_none() -> None:
    empty = Stage(name="a", title="A", documents=("d1",), kept=())
    no_gold = stage_evidence(empty, ())
    assert (no_gold.recall, no_gold.precision, no_gold.lost) == (None, None, ())
    nothing_kept = stage_evidence(empty, GOLD)
    assert (nothing_kept.recall, nothing_kept.precision, nothing_kept.lost) == (0.0, None, ("d1",))


def test_recall_at_k() -> None:
    assert gold_recall_at(["d2", "d3", "d1"], ["d1", "d3"], 2) == 0.5
    assert gold_recall({"d1"}, []) is None
    assert gold_precision({"d1", "d2"}, ["d1"]) == 0.5
