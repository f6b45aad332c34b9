"""Costs with their ratio to direct answering, over the questions that both answered."""

from __future__ import annotations

import pytest

from mdqa.records import Cost
from mdqa.reports.costs import report
from tests.reports.builders import question, run

A, B = question("a"), question("b")


def cost(calls: int, sent: int, seconds: float, computed: int = 0) -> Cost:
    return Cost(llm_calls=calls, prompt_tokens=sent, prefill_tokens_computed=computed, seconds=seconds)


def test_means_and_ratios() -> None:
    runs = [
        run(A, "duquad", cost=cost(20, 900, 8.0)),
        run(B, "duquad", cost=cost(30, 1500, 12.0)),
        run(A, "direct", cost=cost(1, 300, 2.0, computed=300)),
    ]
    made = report(runs)
    assert (made.n, made.needs) == (3, "")
    direct, duquad = made.rows
    assert (direct["variant"], direct["llm_calls"], direct["llm_calls_ratio"]) == ("direct", 1.0, 1.0)
    assert (duquad["llm_calls"], duquad["prompt_tokens"], duquad["seconds"]) == (25.0, 1200.0, 10.0)
    assert (duquad["llm_calls_ratio"], duquad["prompt_tokens_ratio"], duquad["seconds_ratio"]) == (20.0, 3.0, 4.0)
    assert (duquad["common"], duquad["n"]) == (1, 2)
    assert duquad["prefill_tokens_computed_ratio"] == 0.0
    assert duquad["completion_tokens_ratio"] is None, "direct answering wrote nothing in these runs"


def test_without_direct_answering_the_first_method_is_the_measure() -> None:
    runs = [run(A, "cafe", cost=cost(2, 500, 1.0)), run(A, "duquad", cost=cost(8, 500, 3.0))]
    first, second = report(runs).rows
    assert (first["variant"], first["seconds_ratio"]) == ("cafe", 1.0)
    assert second["seconds_ratio"] == pytest.approx(3.0)


def test_models_have_a_measure_each_and_nothing_shared_gives_no_ratio() -> None:
    runs = [
        run(A, "direct", model="m1", cost=cost(1, 100, 1.0)),
        run(A, "direct", model="m2", cost=cost(1, 100, 4.0)),
        run(B, "duquad", model="m2", cost=cost(9, 100, 8.0)),
    ]
    rows = report(runs).rows
    assert [(row["group"], row["seconds_ratio"]) for row in rows] == [("m1", 1.0), ("m2", 1.0), ("m2", None)]


def test_runs_that_memory_shortened_say_nothing_of_time_and_computed_tokens() -> None:
    short = Cost(llm_calls=1, prompt_tokens=300, cached_tokens=300, seconds=0.01, remembered_calls=1)
    runs = [
        run(A, "direct", cost=cost(1, 300, 2.0, computed=300)),
        run(A, "direct", cost=short, id="again", created="2026-12-01T10:00:00+00:00"),
        run(B, "direct", cost=short),
        run(A, "duquad", cost=cost(20, 900, 8.0, computed=600)),
        run(B, "duquad", cost=cost(20, 900, 6.0, computed=600)),
    ]
    made = report(runs)
    direct, duquad = made.rows
    assert (direct["seconds"], direct["prefill_tokens_computed"], direct["prompt_tokens"]) == (2.0, 300.0, 300.0)
    assert (duquad["seconds_ratio"], duquad["prefill_tokens_computed_ratio"]) == (4.0, 2.0)
    assert (duquad["common"], duquad["prompt_tokens_ratio"]) == (2, 3.0)
    assert "without 1 of 4 runs" in made.note
    assert "remembered" not in report(runs[:1]).note
    [alone] = report([run(B, "direct", cost=short)]).rows
    assert (alone["seconds"], alone["seconds_ratio"], alone["llm_calls"]) == (None, None, 1.0)
