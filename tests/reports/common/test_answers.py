"""Accuracy, paired bootstrap and latency by hand: three methods on the same four questions."""

from __future__ import annotations

import pytest

from mdqa.records import Cost, RunResult
from mdqa.reports.common import accuracy, latency, paired_bootstrap
from tests.reports.builders import duquad, placed, question, run

RIGHT = {"direct": "1000", "cafe": "1110", "duquad": "1111"}
SECONDS = {"direct": 2.0, "cafe": 1.0, "duquad": 4.0}


def runs(data: str = "nq") -> list[RunResult]:
    """Direct answering gets the first question right, CAFE three of four, DuQUAD all."""
    made = []
    for number in range(4):
        item = question(f"q{number}", meta={"dataset": data})
        for method, right in RIGHT.items():
            answer = "the Danube" if right[number] == "1" else "Rhine"
            cost = Cost(llm_calls=1, prompt_tokens=10, seconds=SECONDS[method])
            if method == "duquad":
                made.append(duquad(item, answer=answer, cost=cost))
            else:
                made.append(run(item, method, answer=answer, cost=cost))
    return made


def test_accuracy_against_direct_answering():
    found = accuracy.report(runs())
    direct, cafe, whole = found.rows
    assert [row["variant"] for row in found.rows] == ["direct", "cafe", "duquad"]
    assert [row["sub_em"] for row in found.rows] == [0.25, 0.75, 1.0]
    assert [row["em"] for row in found.rows] == [0.25, 0.75, 1.0]  # articles do not count
    assert direct["sub_em_change"] is None and direct["p"] is None
    assert (cafe["sub_em_change"], cafe["b"], cafe["c"], cafe["p"]) == (0.5, 2, 0, pytest.approx(0.5))
    assert (whole["b"], whole["c"], whole["p"]) == (3, 0, pytest.approx(0.25))
    assert (whole["p_holm"], cafe["p_holm"]) == (pytest.approx(0.5), pytest.approx(0.5))  # 2 * 0.25, then 1 * 0.5
    assert (found.n, found.needs, {row["n"] for row in found.rows}) == (12, "", {4})


def test_data_sets_are_families_of_their_own():
    rows = accuracy.report([*runs(), *runs("hotpot")]).rows
    assert [row["group"] for row in rows] == ["m, nq"] * 3 + ["m, hotpot"] * 3
    assert [row["p_holm"] for row in rows[:3]] == [row["p_holm"] for row in rows[3:]]


def test_what_a_run_does_beside_its_answer_makes_no_other_method():
    also = duquad(question("q4", meta={"dataset": "nq"}), options={"compare_ablations": True})
    rows = accuracy.report([*runs(), also]).rows
    assert [(row["variant"], row["n"]) for row in rows] == [("direct", 4), ("cafe", 4), ("duquad", 5)]


def test_places_of_the_evidence_come_in_their_order():
    item = question("q", meta={"dataset": "nq"}, documents=12)
    made = [run(one) for one in (*placed(item, 10), *placed(item, 2))]
    rows = accuracy.report([*runs("squad"), *made, *[run(one, model="m2") for one in placed(item, 1)]]).rows
    assert list(dict.fromkeys(row["group"] for row in rows)) == ["m, squad", "m, nq@p2", "m, nq@p10", "m2, nq@p1"]


def test_accuracy_leaves_out_what_cannot_be_measured():
    unknown = run(question("u", answers=()))
    failed = run(question("f"), status="failed")
    found = accuracy.report([unknown, failed, *runs()])
    assert found.n == 12 and "2 of 14 runs are left out" in found.note
    assert accuracy.report([unknown, failed]).needs


def test_paired_bootstrap_of_each_proposed_method():
    rows = paired_bootstrap.report(runs()).rows
    assert [(row["variant"], row["baseline"]) for row in rows] == [
        ("cafe", "direct"),
        ("duquad", "direct"),
        ("duquad", "cafe"),
    ]
    first = rows[1]
    assert (first["mine"], first["theirs"], first["difference"], first["n"]) == (1.0, 0.25, 0.75, 4)
    # (1, 1, 1, 0): a draw of four has no difference with the chance (1 / 4) ** 4, so p is about 2 / 256
    assert first["p"] == pytest.approx(2 / 256, abs=0.003) and first["stars"] == "**"
    assert first["p_holm"] == pytest.approx(3 * float(first["p"]))


def test_paired_bootstrap_takes_only_questions_that_both_answered():
    some = [one for one in runs() if not (one.method == "direct" and one.question.id == "q0")]
    [row] = [
        row for row in paired_bootstrap.report(some).rows if row["baseline"] == "direct" and row["variant"] == "duquad"
    ]
    assert (row["mine"], row["theirs"], row["n"]) == (1.0, 0.0, 3)
    assert row["p"] == pytest.approx(2 / 10_001) and row["stars"] == "***"


def test_paired_bootstrap_needs_two_methods():
    assert paired_bootstrap.report([one for one in runs() if one.method == "direct"]).needs
    assert paired_bootstrap.report([one for one in runs() if one.method == "duquad"]).needs


def test_latency_marks_what_no_other_beats_in_both():
    rows = {str(row["variant"]): row for row in latency.report(runs()).rows}
    assert {name: (row["seconds"], row["sub_em"], row["front"]) for name, row in rows.items()} == {
        "direct": (2.0, 0.25, None),  # CAFE is faster and right more often
        "cafe": (1.0, 0.75, "yes"),
        "duquad": (4.0, 1.0, "yes"),
    }
    assert latency.report(()).needs


def test_latency_takes_no_run_that_memory_shortened():
    short = Cost(llm_calls=1, prompt_tokens=100, cached_tokens=100, seconds=0.01, remembered_calls=1)
    again = [one.model_copy(update={"id": f"{one.id}-2", "created": "2027-01-01", "cost": short}) for one in runs()]
    made = latency.report([*runs(), *again])
    assert [row["seconds"] for row in made.rows] == [row["seconds"] for row in latency.report(runs()).rows]
    assert f"{len(runs())} of {2 * len(runs())} runs are left out: the program answered them in part" in made.note
    assert latency.report(again).needs
