"""Thresholds, DocScores, attention and stability: what happened to the gold documents."""

from __future__ import annotations

import math

import pytest

from mdqa.reports.duquad import attention, document_scores, stability, thresholds
from tests.reports.builders import duquad, placed, question


def test_recall_at_other_thresholds_is_the_methods_own_pruning() -> None:
    runs = [
        duquad(question("a", (1,)), doc_scores={"d1": 0.5, "d2": 0.9, "d3": None}),
        duquad(question("b", (2, 4)), doc_scores={"d2": 0.6, "d3": 0.2}),  # d4 was cited by nobody
    ]
    found = thresholds.report(runs, thresholds=(0.2, 0.6, 0.95))
    by_setting = {str(row["setting"]): row for row in found.rows}
    assert list(by_setting) == ["before pruning", "0.2", "0.6", "0.95"]
    assert [row["recall"] for row in found.rows] == [0.75, 0.75, 0.25, 0.25]
    assert [row["kept"] for row in found.rows] == [2.5, 2.0, 1.0, 1.0]
    assert [row["fallback"] for row in found.rows] == [None, 0.0, 0.0, 1.0], "at 0.95 the best document is kept"
    assert found.rows[0]["threshold"] is None, "the candidates stand beside the picture and not in it"


def test_without_any_score_the_document_that_ranks_first_is_kept() -> None:
    signals = dict.fromkeys(("sim", "ppl", "cont"), (1.0, 2.0, 3.0, 4.0))
    run = duquad(question("a", (3,)), signals=signals, doc_scores={"d1": None, "d3": None})
    [row] = [row for row in thresholds.report([run], thresholds=(0.4,)).rows if row["threshold"] == 0.4]
    assert (row["recall"], row["kept"], row["fallback"]) == (1.0, 1.0, 1.0)


def test_runs_of_other_thresholds_tell_the_same() -> None:
    runs = [
        duquad(question(name, (1,)), doc_scores={"d1": 0.5}, options={"threshold": threshold})
        for name, threshold in (("a", 0.4), ("b", 0.6))
    ]
    assert {row["n"] for row in thresholds.report(runs).rows} == {2}


def test_doc_scores_and_cited_ids() -> None:
    runs = [
        duquad(
            question("a", (1,)),
            local=("Danube", ("d1", "d2")),
            overall=("Mur", ("d1",)),
            doc_scores={"d1": 0.8, "d2": 0.4},
        ),
        duquad(
            question("b", (1,)),
            local=("Danube", ("d1",)),
            overall=("Mur", ("d3", "d4")),
            doc_scores={"d1": 0.5, "d3": 0.5, "d4": 0.9},
        ),
    ]
    gold, others = document_scores.report(runs).rows
    assert (gold["documents"], gold["doc_score"], gold["scored"]) == ("gold", 0.65, 2)
    assert others["doc_score"] == pytest.approx((0.4 + 0.5 + 0.9) / 3)
    assert (gold["citations"], gold["cited"], others["citations"], others["cited"]) == (3, 0.5, 3, 0.5)
    # within questions: 0.8 > 0.4; 0.5 = 0.5 (half), 0.5 < 0.9. Over all: 0.8 beats 0.4 and 0.5, 0.5 beats 0.4 and ties
    assert gold["auc"] == pytest.approx(1.5 / 3)
    assert gold["auc_pooled"] == pytest.approx((2 + 1.5) / 6)


def test_attention_is_compared_within_a_question_by_the_gold_documents_place() -> None:
    item = question("a", (1,), documents=3)
    first, third = placed(item, 1, 3)
    runs = [duquad(first, attention=(3.0, 1.0, 2.0)), duquad(third, attention=(5.0, 5.0, 5.0))]
    found = attention.report(runs)
    spread = math.sqrt(2 / 3)
    rows = {(row["gold"], row["position"]): row for row in found.rows}
    assert [rows["1", i]["z"] for i in (1, 2, 3)] == pytest.approx([1 / spread, -1 / spread, 0.0])
    assert [rows["3", i]["z"] for i in (1, 2, 3)] == [0.0, 0.0, 0.0], "equal attention says nothing"
    assert [key for key, row in rows.items() if row["here"]] == [("1", 1), ("3", 3)]


def test_attention_with_several_or_no_gold_documents() -> None:
    runs = [
        duquad(question("a", (1, 2), documents=2), attention=(1.0, 3.0)),
        duquad(question("b", (), documents=2), attention=(1.0, 3.0)),
        duquad(question("c", (1,), documents=1), attention=(1.0,)),
        duquad(question("d", (1,))),
    ]
    runs.append(duquad(question("e", (1,), documents=2), attention=(math.nan, 1.0)))
    found = attention.report(runs)
    assert {(row["gold"], row["position"]): row["z"] for row in found.rows} == {
        ("several", 1): -1.0,
        ("several", 2): 1.0,
        ("not marked", 1): -1.0,
        ("not marked", 2): 1.0,
    }
    assert "3 of 5 runs are left out" in found.note


def test_stability_of_what_two_models_keep() -> None:
    def run(name: str, model: str, *kept: str) -> object:
        scores = {f"d{i}": 0.5 for i in range(1, 5)}
        return duquad(question(name, (1, 2)), doc_scores=scores, kept=kept, model=model)

    runs = [
        run("a", "m1", "d1", "d2", "d3"),
        run("a", "m2", "d1", "d3", "d4"),  # gold 1 of 2 shared, others 1 of 2
        run("b", "m1", "d1"),
        run("b", "m2", "d1"),  # gold the same, others: neither
        run("c", "m1", "d3"),
        run("c", "m2", "d4"),  # gold: neither, others: nothing shared
        run("d", "m1", "d1"),  # not answered by the other
    ]
    stable, variable = stability.report(runs).rows  # type: ignore[arg-type]
    assert (stable["group"], stable["measure"]) == ("m1 and m2", stability.STABILITY)
    assert (stable["value"], stable["n"]) == (0.75, 2)
    assert (variable["value"], variable["n"]) == (0.75, 2)


def test_stability_needs_two_models_with_the_same_options() -> None:
    one = duquad(question("a", (1,)), doc_scores={"d1": 0.5}, model="m1")
    two = duquad(question("a", (1,)), doc_scores={"d1": 0.5}, model="m2", options={"k": 3})
    for runs in ([one], [one, two]):
        assert stability.report(runs).needs
    assert stability.jaccard((), ()) is None
