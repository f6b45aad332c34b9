"""The evidence flow and the ledger behind it: what became of each document, and why."""

from __future__ import annotations

import re

from mdqa.records import Document, DocumentScore
from tests.ui.hostile import assert_harmless
from tests.ui.staged import many, small_run
from ui.views.flow import evidence_flow
from ui.views.ledger import duplicates, fates, rank_of


def test_fates_follow_the_ledger() -> None:
    found = fates(small_run())
    assert [fate.document.id for fate in found] == ["d2", "d3", "d1", "d4"]
    assert [fate.reached for fate in found] == [True, False, False, False]
    assert [fate.dropped for fate in found] == [None, 1, 0, 0]
    assert found[2].reason == "below the bar"


def test_ties_share_the_better_rank() -> None:
    scores = small_run().stages[0].scores["s"]
    assert [rank_of(scores, key) for key in ("d1", "d2", "d3", "d4")] == [4, 1, 1, 3]


def test_duplicates_point_to_the_first() -> None:
    docs = [Document(id="a", text="Same  text"), Document(id="b", text="other"), Document(id="c", text="same text\n")]
    assert duplicates(docs) == {"c": 1}


def test_flow_has_a_mark_per_stage_and_says_why() -> None:
    markup = assert_harmless(evidence_flow(small_run()))
    classes = [value for name, value in markup.attributes if name == "class" and value.startswith("mark ")]
    assert sum("start" in c for c in classes) == 4
    assert sum("dropped" in c for c in classes) == 3
    assert sum("answer" in c for c in classes) == 1
    assert "below the bar" in markup.text


def test_of_many_documents_the_ones_that_matter_are_drawn_and_the_others_counted() -> None:
    html = evidence_flow(many(200))
    starts = re.findall(r'class="mark start[^>]*data-number="(\d+)"', html)
    assert len(starts) == 30 and {"1", "10", "196", "200"} <= set(starts)
    assert "170 more documents dropped in Ranking: " in html
    assert_inside(html)
    small = evidence_flow(many(60))
    assert len(re.findall(r'class="mark start', small)) == 60 and "more documents" not in small


def assert_inside(html: str) -> None:
    """No mark stands outside the picture."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', html)
    assert size is not None
    for x, y in re.findall(r"translate\(([\d.]+),([\d.]+)\)", html):
        assert 0 < float(x) < int(size[1]) and 0 < float(y) < int(size[2])


def test_the_picture_is_one_stop_for_the_keyboard_and_every_mark_has_a_name() -> None:
    html = evidence_flow(small_run())
    marks = re.findall(r'<g class="mark[^>]*>(?:<title>)?', html)
    assert sum('tabindex="0"' in mark for mark in marks) == 1
    assert all(mark.endswith("<title>") and 'role="img"' in mark for mark in marks)


def test_documents_that_attention_was_steered_towards_are_ringed() -> None:
    plain = small_run()
    last = plain.stages[-1]
    scores = {d: DocumentScore(value=float(d == "d2")) for d in last.documents}
    steered = plain.model_copy(
        update={"stages": (*plain.stages[:-1], last.model_copy(update={"scores": {"steered": scores}}))}
    )
    assert evidence_flow(steered).count('class="towards"') == 1
    assert "steered towards" in evidence_flow(steered) and "steered towards" not in evidence_flow(plain)
