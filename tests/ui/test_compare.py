"""Compare, one question: choosing it and its runs, the columns, and where each document ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

from mdqa.errors import InputError
from mdqa.records import Cost, Document, Opinion, Stage
from storage.runs import UnknownRun
from tests.diagnosis.builders import QUESTION, stage
from tests.reports.builders import run
from tests.ui.compared import answer, river
from tests.ui.helpers import open_scripted
from tests.ui.hostile import EVIL, assert_harmless, hostile_run
from tests.ui.test_reporting import store
from ui.comparing_runs import MOST_RUNS, PAGE, first_runs, offered, read_address, run_label, runs_of, sides
from ui.context import Context
from ui.views.compare import CHIPS, EXCERPT, Side, agreement, question_list, side_by_side
from ui.views.rank_changes import AS_GIVEN, TALL, rank_figure, rank_table, ranked, standings


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_scripted(tmp_path, start=False)
    with closing(opened.store):
        yield opened


def side(number: int, *stages: Stage, answer: str = "Vienna", **fields: object) -> Side:
    """A run over the hand-made question, as a column."""
    made = run(QUESTION, id=f"r{number}", answer=answer, stages=stages, **fields)
    return Side(made, "Method", f"Method {number}", answer == "Vienna", "reply", None)


def test_real_runs_are_found_chosen_and_set_side_by_side(context: Context) -> None:
    item = river(4)
    direct = answer(context.store, "direct", item)
    older = answer(context.store, "retrieve_read", item, ranker="bm25", top_k=2)
    newer = answer(context.store, "retrieve_read", item, ranker="bm25", top_k=1)
    duquad = answer(context.store, "duquad", item)
    answer(context.store, "direct", river(1))
    found = offered(context)
    assert [(one.question, one.runs) for one in found.questions] == [(item.question, 4), (river(1).question, 1)]
    rows = runs_of(context, found.questions[0].id)
    assert [row.id for row in rows] == [duquad.id, newer.id, older.id, direct.id]
    chosen = first_runs(rows)
    assert chosen == [direct.id, duquad.id, newer.id], "the newest of every method, answering directly first"
    failed = [replace(rows[0], id="failed", status="failed"), *rows]
    assert first_runs(failed) == chosen and first_runs(failed[:1]) == ["failed"], (
        "a failed one only where there is no other"
    )
    assert run_label(rows[0]).startswith("DuQUAD (correct) · scripted · 20")

    columns = sides(context, chosen)
    assert [column.label for column in columns] == ["Direct answering (No-Filter)", "DuQUAD", "Retrieve and read"]
    assert [column.correct for column in columns] == [True, True, False]
    assert columns[0].against is None
    assert [column.against for column in columns[1:]] == [(direct.id, direct.cost)] * 2
    assert columns[2].reply.strip() == newer.answer, "the text of the call that the answer was read from"
    page = assert_harmless(side_by_side(columns))
    assert page.tags.count("article") == 3
    assert "Expected: 44 km" in page.text and "2 of 3 are right" in page.text
    ratio = columns[1].run.cost.prompt_tokens / direct.cost.prompt_tokens
    assert f"{ratio:.1f}×" in page.text
    assert all(("data-run", run_id) in page.attributes for run_id in chosen)
    assert ("href", f"?run={direct.id}") in page.attributes

    documents = ranked(columns)
    assert [row.document.id for row in documents if row.best == 1] == ["a", "c"], "each is first in one of the runs"
    assert documents[0].standings[0].rank == 1
    assert isinstance(rank_figure(columns, documents), go.Figure)


def test_the_cost_is_set_against_a_stored_direct_run_of_the_same_model(context: Context) -> None:
    item = river(0)
    answer(context.store, "direct", item, model="another")
    answer(context.store, "direct", item, context="none")
    mine = answer(context.store, "retrieve_read", item, ranker="bm25")
    assert sides(context, [mine.id])[0].against is None, "without documents it is no direct answering"
    direct = answer(context.store, "direct", item)
    assert sides(context, [mine.id])[0].against == (direct.id, direct.cost)


def test_runs_of_one_method_are_numbered_and_of_several_models_named(context: Context) -> None:
    runs = [
        run(QUESTION, id="a", model="house/one"),
        run(QUESTION, id="b", model="house/one"),
        run(QUESTION, id="c", model="house/two"),
    ]
    store(context.store, *runs)
    labels = [column.label for column in sides(context, ["a", "b", "c", "a"])]
    title = "Direct answering (No-Filter)"
    assert labels == [f"{title}, one (1)", f"{title}, one (2)", f"{title}, two"]


def test_what_cannot_be_shown(context: Context) -> None:
    with pytest.raises(InputError, match=f"1 to {MOST_RUNS}"):
        sides(context, [])
    with pytest.raises(UnknownRun):
        sides(context, ["nobody"])
    with pytest.raises(UnknownRun):
        read_address("../../etc")
    assert read_address("a, b,a") == ["a", "b"]
    assert len(read_address(",".join(f"r{i}" for i in range(20)))) == MOST_RUNS


def test_questions_are_offered_a_page_at_a_time(context: Context) -> None:
    empty = offered(context, "nothing like this")
    assert "Ask a question" in assert_harmless(question_list(empty, None, searched=False)).text
    assert "other words" in assert_harmless(question_list(empty, None, searched=True)).text
    items = [river(number).model_copy(update={"id": f"q{number}"}) for number in range(PAGE + 2)]
    store(context.store, *(run(item, id=f"r{i}", question=item) for i, item in enumerate(items)))
    last = offered(context, "", page=99)
    assert (last.total, last.first, len(last.questions)) == (PAGE + 2, PAGE, 2)
    shown = assert_harmless(question_list(last, last.questions[0].id, searched=False))
    assert f"{PAGE + 1} to {PAGE + 2} of {PAGE + 2}" in shown.text
    assert [value for name, value in shown.attributes if name == "aria-pressed"] == ["true", "false"]


def test_final_orders_by_hand() -> None:
    one = side(1, stage("Ranking", ("d1", "d2", "d3", "d4", "d5"), ("d3", "d1"), reasons={"d4": "too far"}))
    two = side(2, stage("Reading", ("d1", "d2", "d3", "d4", "d5"), ("d1", "d4", "d3")))
    places = standings(one.run)
    assert {name: (s.rank, s.stage, s.reason) for name, s in places.items()} == {
        "d3": (1, "", ""),
        "d1": (2, "", ""),
        "d2": (None, "Ranking", ""),
        "d4": (None, "Ranking", "too far"),
        "d5": (None, "Ranking", ""),
    }
    rows = ranked([one, two])
    assert [(row.document.id, row.best) for row in rows] == [
        *(("d1", 1), ("d3", 1), ("d4", 2)),
        *(("d2", None), ("d5", None)),
    ]
    shown = assert_harmless(rank_table([one, two], rows))
    cells = [line.split() for line in shown.text.splitlines()]
    assert "✓ 2" in shown.text and "▲1" in shown.text, "d1: second, then first"
    assert "▼2" in shown.text, "d3: first, then third"
    assert "✓ 2 new" in shown.text, "d4: dropped, then second"
    assert "× Ranking" in shown.text and cells


def test_the_picture_has_a_line_per_document_and_a_zone_for_dropped_ones() -> None:
    one = side(1, stage("Ranking", ("d1", "d2", "d3", "d4", "d5"), ("d3", "d1")))
    two = side(2, stage("Reading", ("d1", "d2", "d3", "d4", "d5"), ("d1", "d4", "d3")))
    rows = ranked([one, two])
    figure = rank_figure([one, two], rows)
    assert figure is not None
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces) == ["dropped everywhere", "reached an answer", "★ gold"]
    assert list(traces["★ gold"].y) == [1.0, 2.0, 1.0, None], "as given, in the first run, in the second"
    kept = list(traces["reached an answer"].y)
    assert kept[:4] == [3.0, 1.0, 3.0, None]
    assert kept[5] > len(rows) and "dropped at Ranking" in traces["reached an answer"].customdata[5]
    assert all(y is None or y > len(rows) for y in list(traces["dropped everywhere"].y)[1:3])
    assert list(figure.layout.xaxis.ticktext) == ["As given", "Method 1", "Method 2"]
    assert rank_figure([one], ranked([one])) is None, "one order has no changes"


def test_many_documents_stay_one_line_each() -> None:
    many = QUESTION.with_documents(tuple(Document(id=f"d{i}", text=f"Text {i}.") for i in range(200)))
    ids = many.document_ids
    columns = [
        Side(run(many, stages=(stage("S", ids, ids[::step][:20]),)), "M", f"M {step}", None, "", None)
        for step in (1, 2)
    ]
    rows = ranked(columns)
    figure = rank_figure(columns, rows)
    assert figure is not None and len(rows) > AS_GIVEN
    assert sum(y is not None for trace in figure.data for y in trace.y) == 2 * 200
    assert len(figure.to_json()) < 200_000
    assert 'class="mdqa-scroll tall framed"' in rank_table(columns, rows) and len(rows) > TALL
    assert f"and {20 - CHIPS} more" in side_by_side(columns)


def test_documents_that_a_run_did_not_have_are_named() -> None:
    one = side(1, stage("S", ("d1", "d2", "d3", "d4", "d5"), ("d1", "d2")))
    less = QUESTION.with_documents(QUESTION.documents[1:])
    two = Side(run(less, stages=(stage("S", less.document_ids, ("d2",)),)), "M", "M", None, "", None)
    shown = assert_harmless(rank_table([one, two], ranked([one, two]))).text
    assert "not given" in shown
    assert "did not read the same documents" in side_by_side([one, two])
    other = two.run.model_copy(update={"question": less.model_copy(update={"question": "Else?"})})
    apart = assert_harmless(side_by_side([one, Side(other, "M", "M", None, "", None)])).text
    assert "different questions" in apart and "Else?" in apart and "answers are the same" not in apart
    bare = Side(run(QUESTION.with_documents(()), stages=()), "M", "M", None, "", None)
    assert ranked([bare]) == [] and "without documents" in rank_table([bare], [])
    assert "No stage of this run" in side_by_side([bare])


def test_answers_are_counted_in_normal_form() -> None:
    assert agreement([side(1), side(2, answer="the vienna.")]) == "All 2 answers are the same. 1 of 2 are right."
    assert agreement([side(1), side(2, answer="Graz")]) == "2 different answers from 2 runs. 1 of 2 are right."
    assert agreement([side(1), side(2, answer=" ")]).startswith("One run has an answer.")
    nobody = Side(run(QUESTION, answer=""), "M", "M", None, "", None)
    assert agreement([nobody]) == "No run has an answer."


def test_a_long_reply_is_cut_and_can_be_opened_and_voices_are_named() -> None:
    opinions = (
        Opinion(role="local_agent", title="Local Agent", answer="Vienna"),
        Opinion(role="global_agent", title="Global Agent", answer="Graz"),
        Opinion(role="judge", title="Judge", answer="Vienna", chosen=True),
    )
    made = run(QUESTION, answer="Vienna", opinions=opinions, cost=Cost(seconds=75))
    column = Side(made, "M", "M", None, "word " * 200, ("direct", Cost(seconds=150)))
    shown = assert_harmless(side_by_side([column])).text
    assert "The whole reply" in shown and len("word " * 200) > EXCERPT
    assert "Local Agent: Vienna" in shown and "Judge: Vienna ✓ chosen" in shown
    assert "1 min 15 s" in shown and "0.5×" in shown


def test_hostile_texts_stay_texts() -> None:
    columns = [Side(hostile_run(), EVIL, f"{EVIL}{i}", False, EVIL, (f"r{i}", Cost())) for i in range(2)]
    rows = ranked(columns)
    assert_harmless(side_by_side(columns))
    assert_harmless(rank_table(columns, rows))
    figure = rank_figure(columns, rows)
    assert figure is not None
    for words in (*figure.layout.xaxis.ticktext, *(text for trace in figure.data for text in trace.customdata)):
        assert "<img" not in words and "<script" not in words and "<b onclick" not in words
