"""What CAFE's heads look at and keep, and what other ways of selecting keep: by hand."""

from __future__ import annotations

import math

import pytest

from mdqa.records import RunResult, Stage
from mdqa.reports.cafe import heads, recall, selection
from tests.reports.builders import question, run
from tests.reports.cafe.builders import cafe

NEAR = {"1-0": (0.5, 0.3, 0.2), "2-3": (0.1, 0.2, 0.7)}
"""The first head prefers the first document, the second the last."""


def test_recall_by_heads_and_documents_per_head():
    item = question("q", gold=(3,), documents=3)
    found = recall.report([cafe(item, NEAR, {"3-3": (0.25, 0.75)}, options={"m1": 1, "k1": 2})], documents=(1, 2, 3))
    cells = {(row["stage"], row["heads"], row["documents"]): (row["recall"], row["kept"]) for row in found.rows}
    assert cells == {
        ("Coarse filtering", 1, 1): (0.0, 1.0),
        ("Coarse filtering", 1, 2): (0.0, 2.0),
        ("Coarse filtering", 1, 3): (1.0, 3.0),
        ("Coarse filtering", 2, 1): (1.0, 2.0),
        ("Coarse filtering", 2, 2): (1.0, 3.0),
        ("Coarse filtering", 2, 3): (1.0, 3.0),
        ("Fine steering", 1, 1): (1.0, 1.0),  # d3 is the second of the two that filtering left
        ("Fine steering", 1, 2): (1.0, 2.0),
        ("Fine steering", 1, 3): (1.0, 2.0),
    }
    assert recall.report([cafe(question("q", gold=()), NEAR | {"1-0": (1.0, 0, 0, 0), "2-3": (0, 0, 0, 1.0)})]).needs


def test_where_the_heads_look():
    rows = heads.report([cafe(question("q", gold=(3,), documents=3), NEAR, options={"m1": 3})]).rows
    found = {(row["head"], row["where"]): row for row in rows}
    assert [found["1-0", str(place)]["share"] for place in (1, 2, 3)] == [0.5, 0.3, 0.2]
    assert [found["all heads", str(place)]["share"] for place in (1, 2, 3)] == pytest.approx([0.3, 0.25, 0.45])
    assert found["2-3", heads.GOLD]["share"] == 0.7 and found["all heads", heads.GOLD]["share"] == pytest.approx(0.45)
    entropy = -sum(share * math.log(share) for share in (0.5, 0.3, 0.2))
    assert found["1-0", heads.BREADTH]["breadth"] == pytest.approx(math.exp(entropy))
    assert heads.report([cafe(question("q"), None, None)]).needs


@pytest.mark.parametrize(("shares", "breadth"), [((1.0, 0.0), 1.0), ((0.5, 0.5), 2.0)])
def test_how_far_attention_spreads(shares: tuple[float, ...], breadth: float):
    rows = heads.report([cafe(question("q", documents=2), {"0-0": shares})]).rows
    assert [row["breadth"] for row in rows if row["where"] == heads.BREADTH] == [pytest.approx(breadth)]
    assert {row["head"] for row in rows} == {"0-0"}  # one head has no mean of several


def named(number: int, *kept: str) -> RunResult:
    """In-context retrieval that named these documents."""
    item = question(f"q{number}", gold=(1, 2))
    stage = Stage(name="in_context_retrieval", title="", documents=item.document_ids, kept=kept)
    return run(item, "in_context", stages=(stage,), config={"form": "indices", "top_k": 2})


def filtered(number: int, first: int) -> RunResult:
    """CAFE with one head that keeps two documents from the one at ``first`` (from 0) on."""
    shares = [0.0] * 4
    shares[first], shares[first + 1] = 0.6, 0.4
    return cafe(question(f"q{number}", gold=(1, 2)), {"0-0": shares}, options={"m1": 2})


def test_recall_of_what_is_selected():
    runs = [named(0, "d1", "d3"), named(1, "d3"), filtered(0, 0), filtered(1, 0), filtered(2, 1)]
    found = selection.report(runs)
    icr, heads_ = found.rows
    assert (icr["recall"], icr["precision"], icr["kept"], icr["given"]) == (0.25, 0.25, 1.5, 4.0)
    assert icr["difference"] is None
    assert (heads_["recall"], heads_["n"]) == (pytest.approx((1 + 1 + 0.5) / 3), 3)
    assert heads_["difference"] == pytest.approx((0.5 + 1.0) / 2)  # over the two questions of both
    assert found.n == 5


def test_who_keeps_everything_selects_nothing():
    item = question("q")
    everything = Stage(name="retrieval", title="", documents=item.document_ids, kept=item.document_ids)
    reordered = run(item, "retrieve_read", stages=(everything,), config={"top_k": 20})
    appended = run(item, "in_context", stages=(everything,), config={"form": "append"})
    assert selection.report([reordered, appended]).needs
