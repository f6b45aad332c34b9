"""Where a document was lost: the signal that decided, its rank in it, and its fate."""

from __future__ import annotations

from mdqa.records import ASIDE
from mdqa.scoring.losses import ballots, deciding_signal, fate, own_stages, placing
from tests.diagnosis.builders import IDS, run, stage, voice, whole

FALLING = dict(zip(IDS, (5.0, 4.0, 3.0, 2.0, 1.0), strict=True))
RISING = dict(zip(IDS, (1.0, 2.0, 3.0, 4.0, 5.0), strict=True))
EQUAL = dict.fromkeys(IDS, 1.0)
NOTHING = dict.fromkeys(IDS, "unavailable")


def test_the_deciding_signal() -> None:
    kept = IDS[:2]
    assert deciding_signal(stage("s", IDS, kept, scores={"a": FALLING, "b": RISING, "c": EQUAL})) == "a"
    assert deciding_signal(stage("s", IDS, kept, scores={"a": FALLING, "b": FALLING})) == "b"
    assert deciding_signal(stage("s", IDS, kept, scores={"a": FALLING, "b": RISING}, thresholds={"b": 9.0})) == "b"
    assert deciding_signal(stage("s", IDS, ("d1", "d5"), scores={"a": FALLING, "b": NOTHING})) == "a"
    assert deciding_signal(stage("s", IDS, kept, scores={"a": NOTHING})) == "a"
    assert deciding_signal(stage("s", IDS, kept)) == ""


def test_equal_scores_rank_in_the_order_in_which_they_came_in() -> None:
    found = placing(stage("s", IDS, ("d1", "d2"), scores={"a": {**EQUAL, "d3": 2.0}}), "d4", ["d1"])
    assert (found.rank, found.of, found.instead) == (4, 5, ("d2",))
    without = placing(stage("s", IDS, ("d1",), scores={"a": {**FALLING, "d4": "truncated"}}), "d4", [])
    assert (without.rank, without.score, without.status) == (None, None, "truncated")


def test_what_was_carried_out_beside_decides_nothing() -> None:
    result = run("x", whole(), stage("other", IDS, ("d2",), branch=ASIDE))
    assert [entry.name for entry in own_stages(result.stages)] == ["answer"]
    assert fate(result, "d1").fate == "reached"


def test_fates() -> None:
    dropping = stage("selection", IDS, ("d2", "d3"))
    result = run("x", dropping, whole("answer", ("d2", "d3")))
    assert [fate(result, name).fate for name in ("d1", "d2", "d9")] == ["dropped", "reached", "never_in"]
    assert fate(result, "d1").stage is dropping
    last = run("x", dropping)
    assert (fate(last, "d1").fate, fate(last, "d2").fate) == ("dropped", "reached")


def test_who_votes() -> None:
    alone = [voice("reader", name, (name,), weight=1.0) for name in IDS[:2]]
    unweighed = [voice("agent", name, (name,)) for name in IDS[:2]]
    judge = voice("judge", "d1", IDS, chosen=True)
    assert ballots(run("x", opinions=(*alone, *unweighed, judge))) == tuple(alone)
