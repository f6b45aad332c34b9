"""Comparisons: every number of a report beside a direct computation from the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mdqa.benchmarks.placing import place
from mdqa.comparison.markdown import to_markdown
from mdqa.comparison.numbers import report
from mdqa.comparison.observations import COSTS, series_of
from mdqa.records import Cost, Document, Question, RunError, RunResult, Stage
from mdqa.reporting import difference
from mdqa.reporting import report as file_report
from mdqa.result_lines import Group
from mdqa.scoring.answers import HEADLINE
from mdqa.statistics.bootstrap import mean_interval, ratio_interval
from mdqa.statistics.effects import cohens_h
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import exact_p, sign_flip_p

ANSWERS = ("Ostra", "the Ostra, surely", "Mur", "Rye and Ostra")


def question(number: int) -> Question:
    documents = (
        Document(id="a", text="The Ostra.", gold=True),
        Document(id="b", text="Rye."),
        Document(id="c", text="x"),
    )
    return Question(id=f"q{number}", question="Which river?", answers=("Ostra", "Ostra river"), documents=documents)


def run(item: Question, draw: np.random.Generator, **more: Any) -> RunResult:
    kept = ("a", "b") if draw.random() < 0.6 else ("c",)
    cost = Cost(llm_calls=int(draw.integers(1, 4)), prompt_tokens=int(draw.integers(90, 200)), seconds=draw.random())
    values: dict[str, Any] = {
        "id": f"run of {item.id}",
        "question": item,
        "method": "direct",
        "model": "m",
        "backend": "b",
        "status": "ok",
        "created": "now",
        "seed": 0,
        "answer": str(draw.choice(ANSWERS)),
        "stages": (Stage(name="filtering", title="f", documents=("a", "b", "c"), kept=kept),),
        "cost": cost,
    }
    return RunResult(**{**values, **more})


def runs(seed: int, items: Sequence[Question]) -> list[RunResult]:
    draw = np.random.default_rng(seed)
    return [run(item, draw) for item in items]


def compare(**entries: Sequence[RunResult]) -> dict[str, Any]:
    return report(series_of((Group(name, r.model), r) for name, results in entries.items() for r in results))


PLAIN = [question(number) for number in range(20)]
PLACED = [place(item, position) for item in PLAIN for position in (1, 2, 3)]


def test_single_questions_are_scored_as_files_of_answer_are() -> None:
    first, second = runs(1, PLAIN), runs(2, PLAIN)
    found = compare(one=first, two=second)
    for row, results in zip(found["entries"], (first, second), strict=True):
        expected = file_report("f", results)
        for name in HEADLINE:
            assert row[name] == pytest.approx(expected[name])
        for what in ("gold_recall", "kept"):
            assert row["stages"]["filtering"][what] == pytest.approx(expected["stages"]["filtering"][what])
        assert (row["n"], row["failed"]) == (20, 0)
        for name in COSTS:
            values = [float(getattr(r.cost, name)) for r in results]
            assert row["cost"][name]["mean"] == pytest.approx(np.mean(values))
            assert row["cost"][name]["low"] == pytest.approx(mean_interval(values).low)
        assert row["median_seconds"] == pytest.approx(expected["median"]["seconds"])
    other = found["entries"][1]
    assert other["first"] == "one"
    for name, expected in difference(second, first).items():
        assert other["difference"][name] == pytest.approx(expected)
    assert found["placements"] == []
    assert (found["questions"], found["runs"]) == (20, 40)
    assert "difference" not in found["entries"][0]


def test_tests_effects_and_ratios_by_a_direct_computation() -> None:
    first, second, third = runs(1, PLAIN), runs(2, PLAIN), runs(3, PLAIN)
    rows = compare(one=first, two=second, three=third)["entries"]
    for metric in ("em", "sub_em"):
        right = [
            [HEADLINE[metric](r.answer, r.question.answers) for r in results] for results in (first, second, third)
        ]
        expected = []
        for row, mine in zip(rows[1:], right[1:], strict=True):
            b = sum(x > y for x, y in zip(mine, right[0], strict=True))
            c = sum(x < y for x, y in zip(mine, right[0], strict=True))
            test = row["tests"][metric]
            assert (test["b"], test["c"], test["n"]) == (b, c, 20)
            assert test["p"] == pytest.approx(exact_p(b, c))
            expected.append(test["p"])
            effect = row["effect"][metric]
            assert effect["mean"] == pytest.approx(cohens_h(np.mean(mine), np.mean(right[0])))
            assert effect["low"] <= effect["mean"] <= effect["high"]
        assert [row["tests"][metric]["p_holm"] for row in rows[1:]] == pytest.approx(holm(expected))
    tokens = [[float(r.cost.prompt_tokens) for r in results] for results in (second, first)]
    expected_ratio = ratio_interval(*tokens)
    ratio = rows[1]["cost_ratio"]["prompt_tokens"]
    assert [ratio[name] for name in ("mean", "low", "high")] == pytest.approx(
        [expected_ratio.mean, expected_ratio.low, expected_ratio.high]
    )
    assert rows[1]["cost_ratio"]["cached_tokens"] is None, "nothing was cached: there is no ratio to 0"


def test_questions_asked_several_times_are_drawn_whole() -> None:
    first, second = runs(4, PLACED), runs(5, PLACED)
    found = compare(one=first, two=second)
    assert (found["questions"], found["runs"]) == (20, 120)
    row = found["entries"][1]
    f1 = [HEADLINE["f1"](r.answer, r.question.answers) for r in second]
    sums = [sum(f1[i : i + 3]) for i in range(0, 60, 3)]
    expected = ratio_interval(sums, [3.0] * 20)
    assert [row["f1"][name] for name in ("mean", "low", "high")] == pytest.approx(
        [expected.mean, expected.low, expected.high]
    )
    assert row["f1"]["n"] == 60
    right = [np.array([HEADLINE["em"](r.answer, r.question.answers) for r in results]) for results in (second, first)]
    gaps = (right[0] - right[1]).reshape(20, 3).sum(axis=1)
    assert row["tests"]["em"]["p"] == pytest.approx(sign_flip_p([int(gap) for gap in gaps]))
    assert row["tests"]["em"]["b"] == int((right[0] > right[1]).sum())


def test_every_place_of_the_evidence_has_a_part_of_its_own() -> None:
    first, second = runs(4, PLACED), runs(5, PLACED)
    found = compare(one=first, two=second)
    assert [part["placement"] for part in found["placements"]] == ["gold at 1", "gold at 2", "gold at 3"]
    for position, part in enumerate(found["placements"], 1):
        assert part["position"] == position
        here = [[r for r in results if r.question.id.endswith(f"@p{position}")] for results in (first, second)]
        for row, results in zip(part["entries"], here, strict=True):
            assert row["em"] == pytest.approx(file_report("f", results)["em"])
        assert part["entries"][1]["difference"]["f1"] == pytest.approx(difference(here[1], here[0])["f1"])
    family = [part["entries"][1]["tests"]["em"] for part in found["placements"]]
    assert [test["p_holm"] for test in family] == pytest.approx(holm([test["p"] for test in family]))


def test_failures_are_counted_and_left_out() -> None:
    first, second = runs(1, PLAIN), runs(2, PLAIN)
    error = RunError(type="PromptTooLong", message="too | <long>\n\x1b[2J")
    second[3] = run(PLAIN[3], np.random.default_rng(0), status="failed", answer="", error=error)
    bare = question(30).model_copy(update={"answers": (), "documents": question(30).documents[1:]})
    second.append(run(bare, np.random.default_rng(0)))
    found = compare(one=first, two=second)
    row = found["entries"][1]
    assert (row["n"], row["failed"], row["without_answers"], row["without_gold"]) == (20, 1, 1, 1)
    assert row["errors"] == [{"type": "PromptTooLong", "n": 1, "messages": [error.message]}]
    assert (row["em"]["n"], row["difference"]["em"]["n"], row["tests"]["em"]["n"]) == (19, 19, 19)
    assert row["cost"]["seconds"]["n"] == 20
    text = to_markdown(found, "again")
    assert "too \\| &lt;long> " in text
    assert "\x1b" not in text
    assert "1 questions without accepted answers" in text


def test_runs_that_memory_shortened_count_for_answers_and_for_no_time() -> None:
    first, second = runs(1, PLAIN), runs(2, PLAIN)
    second[3] = second[3].model_copy(update={"cost": Cost(llm_calls=1, prompt_tokens=90, remembered_calls=1)})
    found = compare(one=first, two=second)
    row = found["entries"][1]
    assert (row["n"], row["remembered"], row["em"]["n"]) == (20, 1, 20)
    assert [row["cost"][name]["n"] for name in ("llm_calls", "prompt_tokens", "seconds")] == [20, 20, 19]
    assert row["cost_ratio"]["seconds"]["n"] == 19
    assert row["median_seconds"] > 0 and "two: 1 runs were shortened" in to_markdown(found)
    alone = compare(one=first, two=second[3:4])["entries"][1]
    assert (alone["cost"]["seconds"], alone["cost_ratio"]["seconds"], alone["median_seconds"]) == (None, None, None)


def test_where_nothing_can_be_said_nothing_is_said() -> None:
    failed = [r.model_copy(update={"status": "failed", "answer": "", "stages": ()}) for r in runs(1, PLAIN)]
    found = compare(one=runs(1, PLAIN), two=failed, three=runs(3, [question(99)]))
    two, three = found["entries"][1:]
    assert (two["n"], two["failed"], two["em"], two["tests"]["em"], two["median_seconds"]) == (0, 20, None, None, None)
    assert two["errors"][0]["type"] == "failed"
    assert three["difference"]["em"] is None, "no common question"
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert " - " in to_markdown(found)


def test_entries_are_compared_within_their_model() -> None:
    one, two = runs(1, PLAIN), runs(2, PLAIN)
    others = [[r.model_copy(update={"model": "other"}) for r in results] for results in (one, two)]
    named = [
        (Group(name, r.model), r) for name, results in zip("abab", (one, two, *others), strict=True) for r in results
    ]
    found = report(series_of(named))["entries"]
    assert [(row["label"], row.get("first")) for row in found] == [
        ("a (m)", None),
        ("b (m)", "a"),
        ("a (other)", None),
        ("b (other)", "a"),
    ]
    assert found[3]["difference"] == found[1]["difference"]


def test_the_report_for_people() -> None:
    text = to_markdown(compare(one=runs(4, PLACED), two=runs(5, PLACED)), "python -m mdqa evaluate --report-only")
    assert text.startswith("# Evaluation\n\n20 questions, 120 runs.")
    assert "| SubEM | gold at 1 | gold at 2 | gold at 3 |" in text
    assert "python -m mdqa evaluate --report-only" in text
    for title in ("Answers", "Beside the first entry", "Evidence after every stage", "Cost per question"):
        assert f"## {title}" in text
