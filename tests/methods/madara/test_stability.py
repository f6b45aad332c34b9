"""Correlations, intervals, halves and subsets against scipy and by hand."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from mdqa.methods.madara.probe import LEVELS, Pair, table
from mdqa.methods.madara.router import model_class
from mdqa.methods.madara.stability import (
    SUBSET_SIZE,
    bootstrap,
    by_query,
    correlations,
    per_query,
    split_half,
    subsets,
)
from mdqa.records import DocumentScore
from tests.methods.madara.probing import pairs_of, random_columns

LOST = DocumentScore(status="truncated")


def measured(pairs):
    return table(pairs), by_query([pair.query for pair in pairs])


def test_correlations_are_scipys():
    columns = random_columns()
    rhos, counts = correlations(table(pairs_of(columns)))
    assert rhos == pytest.approx([stats.spearmanr(columns[0], c).statistic for c in columns[1:]])
    assert counts == [60] * 4


def test_correlations_leave_out_pairs_without_a_score():
    columns = random_columns()
    pairs = pairs_of(columns)
    first = pairs[0]
    broken = [
        Pair(first.query, first.document, first.normal, (first.levels[0], LOST, *first.levels[2:])),
        Pair("q1", "d1", LOST, pairs[1].levels),
        *pairs[2:],
    ]
    rhos, counts = correlations(table(broken))
    assert counts == [59, 58, 59, 59]
    assert rhos[1] == pytest.approx(stats.spearmanr(columns[0][2:], columns[2][2:]).statistic)


def test_bootstrap_draws_whole_queries():
    # Within either query the two lists agree perfectly, and there are only two queries: every resample is one of
    # three data sets, so the interval's ends are correlations of these.
    low = pairs_of([[0, 1, 2]] + [[0, 1, 2]] * 4, queries=1)
    high = [Pair("z", p.document, p.normal, tuple(DocumentScore(value=5 - s.value) for s in p.levels)) for p in low]
    intervals, stability = bootstrap(*measured([*low, *high]), samples=400, seed=1)
    assert intervals[0] == pytest.approx([-1.0, 1.0])
    assert stability == 1.0


def test_the_interval_is_that_of_a_plain_resampling():
    pairs = pairs_of(random_columns(120), queries=12)
    scores, groups = measured(pairs)
    intervals, _ = bootstrap(scores, groups, samples=300, seed=5)
    rng = np.random.default_rng(99)
    drawn = []
    for _ in range(300):
        rows = np.concatenate([groups[g] for g in rng.integers(12, size=12)])
        drawn.append(stats.spearmanr(scores[rows, 0], scores[rows, 3]).statistic)
    assert intervals[2] == pytest.approx(np.percentile(drawn, (2.5, 97.5)), abs=0.05)


def test_per_query_is_scipys():
    pairs = pairs_of(random_columns(80), queries=8)
    scores, groups = measured(pairs)
    found = per_query(scores, groups, LEVELS)
    for column, level in enumerate(LEVELS, 1):
        values = [stats.spearmanr(scores[g, 0], scores[g, column]).statistic for g in groups]
        assert found[level] == {
            "mean": pytest.approx(np.mean(values)),
            "sd": pytest.approx(statistics.pstdev(values)),
            "n": 8,
        }


def test_per_query_leaves_out_what_is_undefined():
    constant = pairs_of([[1] * 4, [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], queries=1)
    single = [Pair("z", "d", DocumentScore(value=1), tuple(DocumentScore(value=1) for _ in LEVELS))]
    falling = [
        Pair("y", f"d{i}", DocumentScore(value=i), (LOST, *(DocumentScore(value=5 - i) for _ in LEVELS[1:])))
        for i in range(3)
    ]
    found = per_query(*measured([*constant, *single, *falling]), LEVELS)
    assert found["control"] == {"mean": None, "sd": None, "n": 0}
    assert found["random"] == {"mean": pytest.approx(-1.0), "sd": 0.0, "n": 1}


def test_halves_are_the_first_and_the_last_queries():
    ordered = pairs_of(random_columns(40, seed=1), queries=4)
    flat = [Pair(f"r{p.query}", p.document, p.normal, tuple(p.normal for _ in LEVELS)) for p in ordered]
    scores, groups = measured([*ordered, *flat])
    found = split_half(scores, groups)
    assert (found["first"]["queries"], found["second"]["queries"]) == (4, 4)
    assert found["first"]["rho"] == correlations(table(ordered))[0][1:]
    assert found["first"]["model_class"] == model_class(tuple(found["first"]["rho"])) == "quality_ordered"
    assert found["second"] == {"rho": [1.0, 1.0, 1.0], "model_class": "stochastic", "queries": 4}


def test_the_middle_query_belongs_to_the_last_half():
    found = split_half(*measured(pairs_of(random_columns(15), queries=5)))
    assert (found["first"]["queries"], found["second"]["queries"]) == (2, 3)
    assert split_half(*measured(pairs_of(random_columns(6), queries=1))) is None


def test_subsets_of_a_borderline_probe():
    # half of the queries have the levels shuffled and contradicted exchanged: which comes first hangs on the draw
    columns = random_columns(400, seed=2)
    pairs = pairs_of(columns, queries=40)
    mirrored = [
        Pair(p.query, p.document, p.normal, tuple(p.levels[i] for i in (0, 2, 1, 3))) if int(p.query[1:]) % 2 else p
        for p in pairs
    ]
    found = subsets(*measured(mirrored), seed=4)
    assert found["status"] == "ok" and (found["size"], found["draws"]) == (SUBSET_SIZE, 100)
    assert 0 < found["quality_ordered"] < 1
    assert found == subsets(*measured(mirrored), seed=4) and subsets(*measured(pairs), seed=4)["quality_ordered"] == 1.0
    rng = np.random.default_rng([4, SUBSET_SIZE])
    scores, groups = measured(mirrored)
    hits = 0
    for _ in range(100):
        rows = [i for q in rng.choice(40, size=30, replace=False) for i in groups[q]]
        rho = [stats.spearmanr(scores[rows, 0], scores[rows, column]).statistic for column in (2, 3, 4)]
        hits += rho[0] > rho[1] > rho[2]
    assert found["quality_ordered"] == hits / 100


@pytest.mark.parametrize("queries", [2, 30])
def test_too_few_queries_for_subsets_is_said(queries):
    found = subsets(*measured(pairs_of(random_columns(90), queries=queries)), seed=1)
    assert (found["status"], found["quality_ordered"], found["draws"]) == ("unavailable", None, 0)
    assert f"{queries} queries" in found["detail"] and not math.isnan(found["size"])
