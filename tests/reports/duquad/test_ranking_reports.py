"""Signals, weights and the Local Agent's k: what a ranking is worth, from the scores that runs stored."""

from __future__ import annotations

import pytest

from mdqa.records import RunResult
from mdqa.reports.base import Report, Row
from mdqa.reports.duquad import local_documents, signals, weights
from tests.reports.builders import duquad, placed, question

UP, DOWN, FLAT = (1.0, 2.0, 3.0, 4.0), (4.0, 3.0, 2.0, 1.0), (1.0, 1.0, 1.0, 1.0)


def row(report: Report, **wanted: object) -> Row:
    [found] = [row for row in report.rows if all(row[key] == value for key, value in wanted.items())]
    return found


def ranked(name: str, gold: tuple[int, ...], sim: object, ppl: object, cont: object, **fields: object) -> RunResult:
    measured = {"sim": sim, "ppl": ppl, "cont": cont}
    return duquad(question(name, gold), signals=measured, **fields)  # type: ignore[arg-type]


def test_recall_by_signal_and_fused() -> None:
    runs = [
        ranked("a", (4,), sim=UP, ppl=DOWN, cont=FLAT),  # fused: 0.5 up + 1.0 down = down
        ranked("b", (1, 4), sim=UP, ppl=DOWN, cont=UP),  # fused: up and down cancel out, input order
    ]
    found = signals.report(runs, k=1)
    recalls = {str(r["ranker"]): r["recall"] for r in found.rows}
    assert recalls["Sim"] == (1.0 + 0.5) / 2
    assert recalls["PPL"] == (0.0 + 0.5) / 2
    assert recalls["Cont"] == (0.0 + 0.5) / 2, "equal scores rank in input order"
    assert recalls["Sim + Cont"] == (1.0 + 0.5) / 2
    assert recalls["Sim + PPL"] == recalls["PPL + Cont"] == recalls["Fused (SFS)"] == 0.25
    assert recalls["Random order (expected)"] == 0.25
    assert row(found, ranker="Sim")["difference"] == -0.5
    assert row(found, ranker="Fused (SFS)")["difference"] is None
    assert {r["where"] for r in found.rows} == {"all"}, "one question with a single gold document is no comparison"
    assert found.chart is not None and found.chart.kind == "bars"


def test_bm25_takes_equal_scores_in_random_order() -> None:
    item = question("a", (2,), question="where is the castle")
    documents = list(item.documents)
    documents[3] = documents[3].model_copy(update={"text": "the castle is here", "title": ""})
    same = [duquad(item.with_documents(tuple(documents)), signals={"sim": UP})]
    assert row(signals.report(same, k=1), ranker="BM25")["recall"] == 0.0
    # the castle is first, and the gold document is one of three without any word of the question
    assert row(signals.report(same, k=2), ranker="BM25")["recall"] == pytest.approx(1 / 3)


def test_positions_are_told_apart_and_drawn_together_overall() -> None:
    items = placed(question("a", (1,)), 1, 3)
    runs = [duquad(item, signals={"sim": UP, "ppl": UP, "cont": UP}) for item in items]
    found = signals.report(runs, k=2)
    assert [(r["where"], r["recall"], r["n"]) for r in found.rows if r["ranker"] == "Sim"] == [
        ("all", 0.5, 2),
        ("1", 0.0, 1),
        ("3", 1.0, 1),
    ]
    overall = row(found, ranker="Sim", where="all")
    assert (overall["recall_low"], overall["recall_high"]) == (0.5, 0.5), "one question at two places is one draw"
    assert found.chart is not None and (found.chart.kind, found.chart.x) == ("lines", "position")


def test_a_signal_that_was_not_measured_takes_its_rankers_along() -> None:
    found = signals.report([duquad(question("a", (4,)), signals={"sim": UP})], k=1)
    assert {r["ranker"] for r in found.rows} == {"Sim", "BM25", "Random order (expected)"}


def test_gold_always_first_is_said() -> None:
    first = [ranked(name, (1,), UP, UP, UP) for name in "ab"]
    mixed = [first[0], ranked("c", (2,), UP, UP, UP)]
    for report in (signals.report, lambda runs: weights.report(runs, grid=(0.5, 1.0)), local_documents.report):
        assert "the first document is gold" in report(first).note
        assert "the first document is gold" not in report(mixed).note


def test_the_best_weights_are_chosen_on_one_half_and_measured_on_the_other() -> None:
    """Four documents; which one ranks first depends on whether sim or ppl weighs more."""
    names = "abcdefgh"
    by_sim = [ranked(name, (4,), sim=UP, ppl=DOWN, cont=FLAT) for name in names]
    found = weights.report(by_sim, k=1, grid=(0.5, 1.0))
    settings = [r for r in found.rows if r["kind"] != weights.CROSS]
    # ratios of (sim, ppl, cont) from {0.5, 1.0}: 8 settings, of which (0.5, 0.5, 0.5) and (1, 1, 1) rank alike
    assert len(settings) == 7
    best = [(r["sim"], r["ppl"], r["cont"]) for r in settings if r["recall"] == 1.0]
    assert best == [(1.0, 0.5, 0.5), (1.0, 0.5, 1.0)], "sim must weigh more than ppl; equal weights leave input order"
    assert [r["rank"] for r in settings] == [1, 1, 3, 3, 3, 3, 3]
    paper = row(found, kind=weights.PAPER)
    assert (paper["sim"], paper["ppl"], paper["cont"], paper["recall"], paper["difference"]) == (
        0.5,
        1.0,
        0.5,
        0.0,
        None,
    )
    cross = row(found, kind=weights.CROSS)
    assert (cross["recall"], cross["difference"], cross["n"], cross["rank"]) == (1.0, 1.0, 8, None)
    assert "m: the paper's weights rank 3 of 7 settings." in found.note


def test_a_choice_that_does_not_carry_over_shows() -> None:
    """One half wants sim, the other ppl: chosen on one half, nothing of the other is found."""
    from hashlib import sha256  # noqa: PLC0415 (the halves are made by it)

    names = sorted("abcdefgh", key=lambda name: sha256(name.encode()).digest())
    runs = [
        ranked(name, (4,), sim=UP if i % 2 else DOWN, ppl=DOWN if i % 2 else UP, cont=FLAT)
        for i, name in enumerate(names)
    ]
    found = weights.report(runs, k=1, grid=(0.5, 1.0))
    assert {r["recall"] for r in found.rows if r["kind"] != weights.CROSS} == {0.0, 0.5}
    assert row(found, kind=weights.CROSS)["recall"] == 0.0
    assert "has 100.0% where it was chosen and 0.0% on the other half" in found.note


def test_recall_for_every_k_and_accuracy_for_those_that_were_run() -> None:
    runs = [
        ranked("a", (1,), UP, UP, UP, options={"k": 2}, answer="the Danube"),
        ranked("b", (3, 4), UP, UP, UP, options={"k": 2}, answer="Mur"),
        ranked("b", (3, 4), UP, UP, UP, options={"k": 3}, answer="Danube", created="2026-12-01"),
    ]
    found = local_documents.report(runs)
    recalls = [r["value"] for r in found.rows if r["measure"] == local_documents.RECALL]
    assert recalls == [0.25, 0.5, 0.5, 1.0]
    accuracies = [(r["k"], r["value"], r["n"]) for r in found.rows if r["measure"] == local_documents.ACCURACY]
    assert accuracies == [(2, 0.5, 2), (3, 1.0, 1)]
    assert found.n == 3


def test_another_ranker_of_the_local_agent_is_a_group_of_its_own() -> None:
    sfs = ranked("a", (1,), UP, UP, UP)
    other = duquad(question("a", (1,)), options={"local_ranker": "bm25"})
    stage = sfs.stages[0].model_copy(
        update={"name": "local_selection", "scores": {"bm25": {**sfs.stages[0].scores["sim"]}}}
    )
    found = local_documents.report([sfs, other.model_copy(update={"stages": (stage, *other.stages)})])
    groups = {r["group"] for r in found.rows if r["measure"] == local_documents.RECALL}
    assert groups == {"m, local_ranker=sfs", "m, local_ranker=bm25"}
