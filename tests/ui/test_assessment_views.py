"""Scores by agent and document: order, heat, statuses, before and after reasoning, and the reply behind each."""

from __future__ import annotations

import re

import pytest

from mdqa.records import RunResult
from mdqa.trace import ModelCall
from tests.methods.madara.helpers import Run, make_profile, run_madara
from tests.ui.graded import AGAIN, TOO_HIGH, UNREADABLE, graded_run, river
from tests.ui.hostile import assert_harmless
from ui.views.assessment import assessments, read_alone, score_table
from ui.views.documents import document_cards
from ui.views.flow import evidence_flow
from ui.views.ledger import fates, final_stage
from ui.views.reply import reply_view


@pytest.fixture(scope="module")
def run() -> Run:
    """Routed to ATF; base and CoT assessments, all treatments carried out."""
    return graded_run(compare="all")


def calls_of(run: Run) -> dict[int, ModelCall]:
    return {call.index: call for call in run.calls()}


def rows_of(html: str) -> list[str]:
    return re.findall(r"<tr[^>]*>.*?</tr>", html.partition("<tbody>")[2])


def number_of(row: str) -> int:
    """The number of a row's document as it was given."""
    found = re.search(r'class="line">(\d+)', row)
    assert found is not None
    return int(found[1])


def call_behind(run: RunResult, signal: str, document: str) -> int:
    return assessments(run)[0].calls[signal][document]


def test_kept_documents_come_first_and_the_cut_is_drawn(run: Run) -> None:
    html = score_table(run.result, calls_of(run))
    assert_harmless(html)
    rows = rows_of(html)
    kept = run.stage("selection").kept
    numbers = [number_of(row) for row in rows]
    assert [f"d{number}" for number in numbers[: len(kept)]] == list(kept)
    assert sorted(numbers) == list(range(1, 13))
    assert [index for index, row in enumerate(rows) if row.startswith('<tr class="cut">')] == [len(kept) - 1]
    assert '5<span class="star"' in rows[0] and "✓ 1" in rows[0] and "×" in rows[-1]


def test_both_assessments_stand_side_by_side_and_the_deciding_column_is_marked(run: Run) -> None:
    head = score_table(run.result, calls_of(run)).partition("<tbody>")[0]
    assert head.index("Without reasoning") < head.index("After reasoning (CoT)") < head.index("Read alone")
    assert re.findall(r'class="used"[^>]*>([^<]+)<', head) == ["● Weighted"]
    sda = graded_run(profile=make_profile((0.39, 0.04, 0.14), 0.608))
    head = score_table(sda.result, calls_of(sda)).partition("<tbody>")[0]
    assert re.findall(r'class="used"[^>]*>([^<]+)<', head) == ["● Rank-aligned"]
    assert "After reasoning" not in head and "Read alone" not in head
    cot = graded_run(profile=make_profile((0.28, 0.09, 0.01), 0.9))
    assert "After reasoning (CoT)" in score_table(cot.result, calls_of(cot))


def test_a_score_is_a_button_with_its_call_and_its_heat(run: Run) -> None:
    html = score_table(run.result, calls_of(run))
    index = call_behind(run.result, "relevance", "d5")
    button = re.search(rf'<button class="cell s5"[^>]*data-call="{index}"[^>]*data-document="d5"[^>]*>5</button>', html)
    assert button is not None and 'aria-pressed="false"' in button[0]
    assert 'aria-label="relevance 5, document 5: show the reply"' in button[0]
    bare = score_table(run.result, {})
    assert "<button" not in bare and '<span class="cell s5">5</span>' in bare


def test_what_could_not_be_read_is_a_status_and_counted(run: Run) -> None:
    html = score_table(run.result, calls_of(run))
    by_document = {f"d{number_of(row)}": row for row in rows_of(html)}
    assert 'cell status" type="button"' in by_document[UNREADABLE] and ">unread</button>" in by_document[UNREADABLE]
    assert "reply could not be read: no JSON object" in by_document[UNREADABLE]
    assert ">off scale</button>" in by_document[TOO_HIGH]
    assert "cell status" not in by_document[AGAIN]
    assert "Relevance: 2 of 12 replies could not be read" in html
    assert "3 replies asked for a second time" in html
    fine = graded_run(profile=make_profile((0.28, 0.09, 0.01), 0.9))
    assert "every reply could be read" in score_table(fine.result, calls_of(fine))


def test_one_lost_conflict_reply_is_one_reply() -> None:
    lost = run_madara(
        {"relevance": '{"score": 3}', "consistency": '{"score": 3}', "conflict": "no", "generator": "148 km"},
        river(),
        profile=make_profile((0.65, 0.49, 0.10), 0.887),
    )
    html = score_table(lost.result, calls_of(lost))
    assert "Conflict: 1 of 1 reply could not be read" in html and html.count(">unread</button>") == 12


def test_ranks_and_shifts_against_the_weighted_score_before(run: Run) -> None:
    gold = rows_of(score_table(run.result, calls_of(run)))[0]
    small = re.findall(r'<small(?: class="(\w+)")? title="([^"]+)">([^<]+)</small>', gold)
    assert small == [
        ("", "rank 1", "#1"),
        ("", "rank 1", "#1"),
        ("down", "rank 1 before, 5 now", "#5 ▼4"),
        ("", "rank 3", "#3"),
    ]


def test_documents_read_alone_are_right_or_wrong(run: Run) -> None:
    assert set(read_alone(run.result)) == set(run.result.question.document_ids)
    rows = rows_of(score_table(run.result, calls_of(run)))
    assert 'cell said good"' in rows[0] and "✓ 148 km" in rows[0]
    assert 'cell said bad"' in rows[1] and "× unknown" in rows[1]
    unknown = run.result.model_copy(update={"question": run.result.question.model_copy(update={"answers": ()})})
    html = score_table(unknown, calls_of(run))
    assert "said good" not in html and "said bad" not in html and "148 km" in html


def test_the_reply_comes_with_its_attempts_and_its_prompt(run: Run) -> None:
    calls = calls_of(run)
    call = calls[call_behind(run.result, "relevance", AGAIN)]
    html = reply_view(run.result, call, calls, AGAIN)
    markup = assert_harmless(html)
    assert "Relevance Agent on document 6: River survey of district 6" in markup.text
    assert "Attempt 1: reply could not be read" in markup.text and "I would say it helps" in markup.text
    assert markup.text.index("Attempt 1") < markup.text.index("Attempt 2") < markup.text.index('"score": 2')
    assert "Relevance 2" in markup.text and call.prompt[:60] in markup.text
    conflict = calls[call_behind(run.result, "conflict", "d5")]
    one = assert_harmless(reply_view(run.result, conflict, calls, "d5")).text
    assert "Conflict Agent on document 5" in one and "Conflict 5" in one and "one reply for 12 documents" in one
    assert "attempt" not in one
    reading = read_alone(run.result)["d5"]
    assert reading.call is not None
    assert "Generator on document 5" in reply_view(run.result, calls[reading.call], calls, "d5")


def test_markup_of_a_reply_stays_text(run: Run) -> None:
    calls = calls_of(run)
    html = reply_view(run.result, calls[call_behind(run.result, "relevance", "d1")], calls, "d1")
    assert "&lt;b&gt;no markup&lt;/b&gt;" in html and "<b>" not in html


def test_fifty_documents_stay_light() -> None:
    many = graded_run(50, compare="all")
    html = score_table(many.result, calls_of(many))
    assert len(rows_of(html)) == 50
    assert len(html) < 150_000  # no reply and no prompt is in it
    assert "I would say it helps" not in html


def test_methods_without_agents_have_no_table(run: Run) -> None:
    assert score_table(graded_run(treatment="nf").result, {}) == ""
    unfinished = run.result.model_copy(update={"stages": run.result.stages[:1], "status": "cancelled"})
    html = score_table(unfinished, {})
    assert len(rows_of(html)) == 12 and "Kept" not in html


def test_stages_beside_the_way_let_no_document_reach_the_answer(run: Run) -> None:
    last = final_stage(run.result.stages)
    assert last is not None and last.name == "generation" and run.result.stages[-1].name == "comparison"
    reached = [fate.document.id for fate in fates(run.result) if fate.reached]
    assert reached == list(run.stage("generation").kept)
    flow = evidence_flow(run.result)
    assert "through 3 stages" in flow and "The treatments that were not chosen" not in flow
    assert "after reasoning" in document_cards(run.result, {})  # the cards show all scores
