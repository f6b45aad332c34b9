"""Studies as the page shows them: sentences, marks, pictures, links; nothing unescaped, nothing left out silently."""

from __future__ import annotations

import pytest

from mdqa.records import Cost, RunError
from mdqa.studies.base import Tally
from mdqa.studies.leave_one_out import leave_one_out
from mdqa.studies.position_sweep import at_position, position_sweep
from tests.diagnosis.builders import IDS, QUESTION, run
from tests.studies.test_leave_one_out import base, member
from tests.studies.test_position_sweep import result
from ui.views.leave_one_out import (
    change_table,
    correlation_line,
    correlation_table,
    findings,
    predictor_choices,
    scatter,
)
from ui.views.position_sweep import measure_choices, sweep_figure, sweep_findings, sweep_table
from ui.views.studies import Estimate, StudyState, member_note, progress_view, signed, spent_line, tally_line

HOSTILE = "<img src=x onerror=alert(1)>"
TITLES = {"direct": "Direct answering"}


def test_the_document_that_misled_is_named() -> None:
    found = leave_one_out(base(), {name: member(name, "Vienna" if name == "d2" else "Graz") for name in IDS})
    words = findings(found, base())
    assert "The answer changes without document 2." in words and "mdqa-message good" in words
    assert "It becomes right without document 2: this is what misled the model." in words
    table = change_table(found, base())
    assert table.count("<tr>") == 6 and "× → ✓" in table and "“Vienna”" in table
    assert table.count("same answer") == 4 and table.count('href="?run=without-') == 5
    assert "before=base" in table and "1. Text 1." in table and "★" in table


def test_what_the_answer_rests_on_is_named() -> None:
    right = base("Vienna")
    found = leave_one_out(right, {name: member(name, "Linz" if name == "d1" else "Vienna") for name in IDS})
    assert "becomes wrong without document 1 ★: the right answer rests on this." in findings(found, right)
    same = leave_one_out(right, {name: member(name, "Vienna") for name in IDS})
    assert "stays the same without any one of 5 documents" in findings(same, right)
    assert "undefined (n = 5): the effect is the same for every document" in correlation_line(same, "attention")


def test_members_without_an_answer_are_shown() -> None:
    error = RunError(type="ModelError", message=HOSTILE)
    found = leave_one_out(base(), {"d1": member("d1", HOSTILE), "d2": member("d2", "", status="failed", error=error)})
    table, words = change_table(found, base()), findings(found, base())
    assert "Failed" in table and table.count("Not begun") == 3
    assert "1 of 5 runs came to an answer; 1 failed, 3 not begun." in words
    assert HOSTILE not in table + words and "&lt;img" in table
    figure = scatter(found, base().question.documents, "attention")
    assert figure is not None and "<img" not in figure.to_json()


def test_the_picture_is_that_of_the_chosen_predictor_and_effect() -> None:
    found = leave_one_out(base(), {name: member(name, "Vienna" if name == "d2" else "Graz") for name in IDS})
    assert [name for _, name in predictor_choices(found)] == ["attention", "rank/sim", "rank/other"]
    figure = scatter(found, QUESTION.documents, "attention")
    assert figure is not None
    assert list(figure.data[0].x) == [0.1, 0.5, 0.2, 0.05, 0.15] and list(figure.data[0].y) == [0, 1, 0, 0, 0]
    assert list(figure.data[0].text) == ["1", "2", "3", "4", "5"]
    lost = scatter(found, QUESTION.documents, "attention", "f1")
    assert lost is not None and list(lost.data[0].y) == [0, -1, 0, 0, 0]
    assert scatter(found, QUESTION.documents, "nothing") is None
    assert "Spearman&#x27;s rank correlation +0.71 over n = 5 documents" in correlation_line(found, "attention")
    assert "undefined (n = 5)" in correlation_table(found) and "F1 lost" in correlation_table(found)


def test_a_run_without_attention_says_so() -> None:
    blind = base(attention_summary=())
    found = leave_one_out(blind, {"d1": member("d1", "Graz")})
    assert "did not look at attention; choose one of its scores" in correlation_line(found, "attention")
    bare = leave_one_out(run("Graz", id="base"), {})
    assert "no score of it can be set against the effect" in correlation_line(bare, "attention")
    assert "Attention" not in change_table(found, blind) and correlation_table(bare) == ""


def test_a_sweep_shows_curves_rows_and_what_is_missing() -> None:
    placed = {f"direct@{p}": at_position(QUESTION, "", p) for p in (1, 3, 5)}
    results = {
        "direct@1": result(placed["direct@1"], "Vienna", id="a"),
        "direct@3": result(placed["direct@3"], HOSTILE, id="b"),
    }
    found = position_sweep(QUESTION, ["direct"], (1, 3, 5), results)
    words = sweep_findings(found, QUESTION, TITLES, "")
    assert "Moved: the gold document, 1. Text 1. ★ gold." in words
    assert "Direct answering is right at position 1 (1 of 2)." in words
    assert "2 of 3 runs came to an answer; 1 not begun." in words
    table = sweep_table(found, "base", TITLES)
    assert "as given" in table and "Not begun" in table and "7 / 0" in table and HOSTILE not in table
    assert "rank 1 of 5" in table and 'href="?run=a&amp;before=base"' in table
    figure = sweep_figure(found, "sub_em", TITLES)
    assert figure is not None and list(figure.data[0].x) == [1, 3] and list(figure.data[0].y) == [1.0, 0.0]
    assert "<img" not in figure.to_json()
    assert sweep_figure(found, "rank", TITLES) is not None
    assert [name for _, name in measure_choices(found)][:2] == ["sub_em", "f1"]
    assert sweep_figure(position_sweep(QUESTION, ["direct"], (1,), {}), "sub_em", TITLES) is None


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(6, 6, 2.0), "6 runs, about 12 s at the time of this run. Other"),
        (Estimate(6, 2, 90.0), "6 runs, 4 are there already, about 3 min 00 s"),
        (Estimate(1, 1, 0.0), "1 run. Other"),
        (Estimate(6, 0, 2.0), "All 6 runs of it are there already."),
        (Estimate(0, 0, 0.0, "the model is gone"), "The model is gone"),
    ],
    ids=["all", "some", "unknown time", "none", "obstacle"],
)
def test_what_a_study_would_take(estimate: Estimate, words: str) -> None:
    assert estimate.words.startswith(words)


def test_progress_says_where_it_is() -> None:
    state = StudyState("s", "r", "Leave one out", "running", 20, 5, doing="Switched off document 6", remaining=61.0)
    shown = progress_view(state)
    assert 'data-copy="?study=s"' in shown
    assert "5 of 20 runs · Switched off document 6 · about 1 min 01 s left" in shown and 'aria-valuenow="5"' in shown
    waiting = progress_view(StudyState("s", "r", "t", "running", 2, 0, place=3))
    assert "Waiting, 3 jobs before it" in waiting
    failed = progress_view(StudyState("s", "r", "t", "failed", 2, 1, failed=1, error=HOSTILE))
    assert "1 failed" in failed and HOSTILE not in failed and "Failed" in failed


def test_small_parts() -> None:
    assert [signed(value) for value in (0.5, -0.25, 0.0, -0.001)] == ["+0.50", "−0.25", "0", "0"]
    assert tally_line(Tally(3, 3, 0, 0, 0, 0)) == ""
    assert "1 stopped before the end, 1 at work" in tally_line(Tally(3, 1, 0, 1, 1, 0))
    cost = Cost(llm_calls=4, prompt_tokens=1000, prefill_tokens_computed=250, cached_tokens=750, seconds=2.0)
    assert "1,000 prompt tokens sent, 250 of them computed (75% not computed again)" in spent_line(cost, 2)
    assert 'href="?study=abc"' in member_note("r1", "abc")
