"""The report on treatments: shares by hand, losses that add up, tests and their families."""

from __future__ import annotations

import pytest

from mdqa.methods.madara.report import outcomes, report, table
from mdqa.records import Document, Opinion, Question, RunResult


def result(
    number: int, answers: dict[str, str], readings: dict[str, str], kept: tuple[str, ...] = ("a", "b")
) -> RunResult:
    """A run over documents a (gold), b and c whose right answer is 1932."""
    documents = tuple(Document(id=d, text=d, gold=d == "a") for d in "abc")
    item = Question(id=f"q{number}", question="When?", answers=("1932",), documents=documents)
    opinions = [
        Opinion(
            role="treatment", title=key.upper(), answer=answer, group=key, chosen=key == "nf",
            documents=kept if key.startswith("pde") else ("a", "b", "c"),
        )
        for key, answer in answers.items()
    ]  # fmt: skip
    opinions += [Opinion(role="reading", title="", answer=text, documents=(d,)) for d, text in readings.items()]
    return RunResult(
        id=f"r{number}", question=item, method="madara", model="m", backend="scripted", status="ok", created="",
        seed=0, opinions=tuple(opinions),
    )  # fmt: skip


RESULTS = [
    result(0, {"nf": "x", "pde": "1932"}, {"a": "1932", "b": "x", "c": "x"}),
    result(1, {"nf": "x", "pde": "x"}, {"a": "1932", "b": "x", "c": "x"}),  # the vote loses it
    result(2, {"nf": "1932", "pde": "x"}, {"a": "y", "b": "x", "c": "1932"}),  # evidence kept, not read
    result(3, {"nf": "x", "pde": "x"}, {"a": "1932", "b": "x", "c": "x"}, kept=("b", "c")),  # not kept
    result(4, {"nf": "x", "pde": "the 1932."}, {"a": "y", "b": "1932", "c": "x"}),
]


def test_shares_and_losses_by_hand():
    rows = {row.get("treatment", row.get("bound")): row for row in report(outcomes(RESULTS))}
    assert list(rows) == ["nf", "pde", "gold_alone", "any_alone"]
    assert rows["nf"]["em"]["mean"] == pytest.approx(1 / 5) and rows["pde"]["em"]["mean"] == pytest.approx(2 / 5)
    assert rows["pde"]["losses"] == pytest.approx(
        {"n": 5, "right": 0.4, "selection": 0.2, "extraction": 0.2, "vote": 0.2}
    )
    assert "losses" not in rows["nf"] and "mcnemar" not in rows["nf"]
    assert (rows["nf"]["routed"], rows["pde"]["routed"]) == (5, 0)
    assert (rows["pde"]["mcnemar"]["b"], rows["pde"]["mcnemar"]["c"]) == (2, 1)
    assert rows["gold_alone"]["em"]["mean"] == pytest.approx(3 / 5)
    assert rows["any_alone"]["em"]["mean"] == pytest.approx(5 / 5)


def test_families_are_corrected_apart():
    wrong = {"three_agent": "x", "sda": "x", "pde": "x", "pde_uniform": "x"}
    right = dict.fromkeys(wrong, "1932")
    results = [result(i, {"nf": "x", **right}, {}) for i in range(6)] + [result(9, {"nf": "x", **wrong}, {})]
    rows = {row["treatment"]: row for row in report(outcomes(results))}
    p = 2 * 0.5**6
    assert {key: rows[key]["mcnemar"]["p"] for key in wrong} == pytest.approx(dict.fromkeys(wrong, p))
    assert rows["sda"]["mcnemar"]["p_holm"] == pytest.approx(2 * p), "two scoring tests, two of isolation"
    assert rows["pde"]["mcnemar"]["family"] == "isolation" and rows["sda"]["mcnemar"]["family"] == "scoring"


def test_what_cannot_be_reported_is_left_out():
    bare = RESULTS[0].model_copy(update={"opinions": ()})
    failed = RESULTS[0].model_copy(update={"status": "failed"})
    unknown = RESULTS[0].model_copy(update={"question": RESULTS[0].question.model_copy(update={"answers": ()})})
    assert outcomes([bare, failed, unknown]) == [] and report([]) == []


def test_substrings_count_where_they_are_asked_for():
    wordy = [result(i, {"nf": "x", "pde": "It was 1932 then"}, {"a": "in 1932", "b": "x", "c": "x"}) for i in range(2)]
    strict, loose = (report(outcomes(wordy), metric)[1] for metric in ("em", "sub_em"))
    assert strict["losses"]["extraction"] == 1 and loose["losses"]["right"] == 1
    assert (strict["mcnemar"]["b"], loose["mcnemar"]["b"]) == (0, 2)


def test_the_table_names_every_row():
    text = table(report(outcomes(RESULTS)))
    assert text.splitlines()[1].startswith("NF") and "20 / 20 / 20" in text and "Best reading of any document" in text
