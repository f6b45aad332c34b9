"""Compare, one benchmark: numbers beside a direct computation, and what every cell leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mdqa.benchmarks.placing import place
from mdqa.comparison.entries import Compared, choose, first_choice
from mdqa.comparison.numbers import report
from mdqa.comparison.observations import series_of
from mdqa.comparison.overlap import Overlap, overlap
from mdqa.diagnosis.facets import facets_of
from mdqa.errors import ConfigError, InputError
from mdqa.records import RunResult
from mdqa.result_lines import Group
from mdqa.scoring.answers import best_subspan_em
from tests.reports.builders import question, run
from tests.ui.compared import answer, answer_all, placed, river
from tests.ui.helpers import open_scripted
from tests.ui.hostile import EVIL, assert_harmless
from tests.ui.test_reporting import store
from ui.benchmarking import STEP, Shelf, cell_questions, gather, listed
from ui.context import Context
from ui.reporting import Reading
from ui.views.benchmark import (
    COST_NAMES,
    MOST,
    Gathered,
    Wish,
    cost_table,
    entry_choices,
    main_table,
    on_front,
    p_value,
    position_table,
    summary,
)
from ui.views.benchmark_figures import cost_figure, position_figure
from ui.views.benchmark_files import saved
from ui.views.listing import PAGE, listing
from ui.views.right_where import SHOWN, key_line, right_where

ENTRIES = (("direct", {}), ("direct", {"context": "none"}), ("retrieve_read", {"ranker": "bm25", "top_k": 1}))
COST = "prompt_tokens"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, dict[str, list[RunResult]]]]:
    """Three entries over five questions with their evidence at two positions, run by the scripted backend."""
    opened = open_scripted(tmp_path_factory.mktemp("compared"), start=False)
    with closing(opened.store):
        yield opened, answer_all(opened.store, placed(), ENTRIES)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_scripted(tmp_path, start=False)
    with closing(opened.store):
        yield opened


def gathered(context: Context, wish: Wish | None = None) -> Gathered:
    last = list(gather(context, wish or Wish()))[-1]
    assert isinstance(last, Gathered)
    return last


def compare(context: Context, *, common: bool = True, metric: str = "sub_em") -> tuple[Gathered, Compared, Overlap]:
    found = gathered(context)
    compared = choose(found.found, first_choice(found.found), common=common)
    return found, compared, overlap(compared, metric)


def test_stored_runs_have_the_numbers_of_the_runs_themselves(made: tuple[Context, dict[str, list[RunResult]]]) -> None:
    context, runs = made
    _, compared, found = compare(context)
    assert [entry.label for entry in compared.entries] == [
        "Direct answering (No-Filter)",
        "Direct answering (No-Filter) context=none",
        "Retrieve and read top_k=1",
    ]
    theirs = report(series_of((Group(name, "scripted"), one) for name, results in runs.items() for one in results))
    mine = compared.report()
    for row, expected in zip(mine["entries"], theirs["entries"], strict=True):
        for name in ("n", "failed", "em", "sub_em", "f1", "stages", "tests", "effect", "difference", "config"):
            assert row.get(name) == expected.get(name), name
        assert row["cost"]["prompt_tokens"] == expected["cost"]["prompt_tokens"]
    assert [part["placement"] for part in mine["placements"]] == ["gold at 1", "gold at 4"]

    right = [
        {one.question.id: best_subspan_em(one.answer, one.question.answers) > 0 for one in results}
        for results in runs.values()
    ]
    assert [sum(own.values()) for own in right] == [9, 0, 8], "the lure is followed, at the end also by the reader"
    assert [len(found.pairs[0, 2].both), len(found.pairs[0, 2].first_only), len(found.pairs[2, 0].first_only)] == [
        8,
        1,
        0,
    ]
    assert [(p.right, len(p.questions)) for p in found.patterns] == [
        ((True, False, True), 8),
        ((True, False, False), 1),
        ((False, False, False), 1),
    ]
    at = {one.position: [entry and (entry["mean"], entry["n"]) for entry in one.entries] for one in found.positions}
    assert at == {1: [(1.0, 5), (0.0, 5), (0.8, 5)], 4: [(0.8, 5), (0.0, 5), (0.8, 5)]}


def test_every_cell_of_the_page_leads_to_as_many_questions_as_it_says(
    made: tuple[Context, dict[str, list[RunResult]]],
) -> None:
    context, _ = made
    _, compared, found = compare(context)
    numbers = compared.report()
    page = (
        main_table(compared, numbers, found, COST)
        + right_where(compared, found)
        + position_table(compared, found)
        + cost_table(compared, numbers, found, COST)
    )
    cells = [value for name, value in assert_harmless(page).attributes if name == "data-cell"]
    assert len(cells) > 20
    for name in cells:
        answered = listed(context, compared, found, name)
        assert answered.total > 0 and len(answered.questions) == min(answered.total, PAGE), name
        assert_harmless(listing(answered))
    keys = [entry.key for entry in compared.entries]
    for name, total in {
        f"own:{keys[0]}:all": 10,
        f"own:{keys[0]}:right": 9,
        f"own:{keys[0]}:wrong": 1,
        f"own:{keys[1]}:right": 0,
        f"own:{keys[0]}:failed": 0,
        f"pair:{keys[0]}:{keys[2]}:first": 1,
        f"pair:{keys[0]}:{keys[2]}:second": 0,
        f"pair:{keys[2]}:{keys[0]}:neither": 1,
        f"at:{keys[2]}:4": 5,
        "who:100": 1,
    }.items():
        assert listed(context, compared, found, name).total == total, name


def test_the_list_shows_every_answer_with_its_run(made: tuple[Context, dict[str, list[RunResult]]]) -> None:
    context, runs = made
    _, compared, found = compare(context)
    answered = listed(context, compared, found, "who:100")
    assert answered.title == "right by Direct answering (No-Filter) only"
    (row,) = answered.questions
    wanted = [one for results in runs.values() for one in results if one.question.id == "q4@p1"]
    assert [one and (one.run, one.answer, one.right) for one in row.runs] == [
        (one.id, one.answer, place == 0) for place, one in enumerate(wanted)
    ]
    shown = assert_harmless(listing(answered))
    together = ",".join(one.id for one in wanted)
    assert ("href", f"?run={together}&tab=compare") in shown.attributes
    assert all(("href", f"?run={one.id}") in shown.attributes for one in wanted)
    assert row.question == river(4).question


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "own",
        "own:x:all",
        "own:{0}:best",
        "at:{0}:one",
        "pair:{0}:{0}:both",
        "pair:{0}:x:both",
        "who:11",
        "who:111",
        None,
    ],
)
def test_cells_that_are_none(made: tuple[Context, dict[str, list[RunResult]]], cell: str | None) -> None:
    _, compared, found = compare(made[0])
    with pytest.raises(InputError, match=r"no such number|compared ones"):
        cell_questions(compared, found, cell and cell.format(compared.entries[0].key))


def test_the_table_shows_intervals_tests_and_what_was_left_out(
    made: tuple[Context, dict[str, list[RunResult]]],
) -> None:
    found_runs, compared, found = compare(made[0])
    numbers = compared.report()
    shown = assert_harmless(main_table(compared, numbers, found, COST)).text
    row = numbers["entries"][2]
    assert f"{100 * row['sub_em']['mean']:.1f}" in shown and f"{100 * row['sub_em']['low']:.1f} to" in shown
    assert f"{100 * row['difference']['sub_em']['mean']:+.1f}".replace("-", "−") in shown
    assert p_value(row["tests"]["sub_em"]["p_holm"]) in shown
    words = assert_harmless(summary(found_runs, compared)).text
    assert "10 questions that all 3 entries answered, of 10." in words
    assert "Read 30 of 30 stored runs" in words and "Left out" not in words


def test_pictures_have_intervals_and_the_front(made: tuple[Context, dict[str, list[RunResult]]]) -> None:
    _, compared, found = compare(made[0])
    numbers = compared.report()
    places = position_figure(compared, found)
    assert places is not None and len(places.data) == 3
    assert list(places.data[0].y) == [100.0, 80.0] and places.data[0].error_y.arrayminus is not None
    for cost in COST_NAMES:
        figure = cost_figure(compared, numbers, found, cost)
        assert figure is not None
        points = [trace for trace in figure.data if trace.text]
        assert [trace.text[0] for trace in points] == ["1", "2", "3"]
        assert points[0].x[0] == numbers["entries"][0]["cost"][cost]["mean"]
        assert points[0].error_x.array is not None and points[0].error_y.array is not None
        assert figure.layout.yaxis.range is None
    assert on_front(numbers, "sub_em", COST) == {0, 1, 2}, "each is cheaper or better than the others"
    marked = assert_harmless(cost_table(compared, numbers, found, COST)).text
    assert marked.count("Pareto front") == 3


def test_shares_that_are_all_the_same_do_not_stretch_the_axis(made: tuple[Context, dict[str, list[RunResult]]]) -> None:
    _, compared, found = compare(made[0])
    numbers = compared.report()
    for row in numbers["entries"]:
        row["sub_em"] = {"mean": 1.0, "low": 1.0, "high": 1.0, "n": 10}
    figure = cost_figure(compared, numbers, found, COST)
    assert figure is not None and tuple(figure.layout.yaxis.range) == (90, 101.5)


def test_what_is_saved_is_unrounded_and_says_what_it_rests_on(
    made: tuple[Context, dict[str, list[RunResult]]],
) -> None:
    found_runs, compared, found = compare(made[0])
    numbers = compared.report()
    shown = assert_harmless(saved(found_runs, compared, numbers, found)).text
    markdown, _, rest = shown.partition("Save as JSON")
    assert "# Evaluation" in markdown and "read 30 of 30 stored runs" in markdown
    whole = json.loads(rest)
    assert whole["entries"] == json.loads(json.dumps(numbers["entries"]))
    assert whole["rests_on"]["asked"] == whole["rests_on"]["compared"] == 10
    assert whole["patterns"][0]["questions"] == 8
    assert whole["right_together"][1]["first_only"] == 1
    assert [at["position"] for at in whole["by_position"]] == [1, 4]


def test_the_newest_run_counts_and_failures_are_told(context: Context) -> None:
    item = question("q1")
    store(
        context.store,
        run(item, id="old", answer="Rhine", created="2026-01-01T00:00:00+00:00"),
        run(item, id="new", answer="Danube", created="2026-01-02T00:00:00+00:00"),
        run(question("q2"), id="other"),
        run(question("q2"), "cafe", id="c2", status="failed", answer=""),
        run(item, "cafe", id="c1", answer="Danube"),
        run(question("q3"), id="stopped", status="cancelled"),
    )
    found, compared, where = compare(context)
    assert (found.read, found.unfinished, found.found.older) == (6, 1, 1)
    assert compared.questions == 1 and len(compared.asked) == 2
    assert [one.run for one in compared.runs[0].values()] == ["new"]
    words = assert_harmless(summary(found, compared)).text
    assert "1 passed over for a newer run" in words and "1 stopped or not finished" in words
    failing = next(entry for entry in compared.entries if entry.method == "cafe")
    answered = listed(context, compared, where, f"own:{failing.key}:failed")
    assert answered.total == 1 and "failed" in assert_harmless(listing(answered)).text
    context.store.runs.delete("other")
    assert "not asked" in listing(listed(context, compared, where, f"own:{failing.key}:failed"))


def test_runs_are_chosen_by_benchmark_and_model(context: Context) -> None:
    answer(context.store, "direct", river(1), model="one")
    answer(context.store, "direct", river(1), model="two")
    assert [entry.model for entry in gathered(context, Wish(model="two")).found.entries] == ["two"]
    assert gathered(context, Wish(benchmark="no such")).found.entries == ()
    named = place(question("q1", meta={"dataset": "rivers"}), 2)
    made = run(named, id="named")
    context.store.runs.begin(made.model_copy(update={"status": "running"}))
    context.store.runs.finish(made, facets=facets_of(made))
    assert context.store.runs.benchmarks() == ["rivers"]
    (own,) = gathered(context, Wish(benchmark="rivers")).found.runs.values()
    assert [(one.run, one.position) for one in own.values()] == [("named", 2)]
    context.store.runs.delete("named")
    both = gathered(context)
    assert {label.partition(" · ")[0] for label, _ in entry_choices(both.found)} == {
        "Direct answering (No-Filter) (one)",
        "Direct answering (No-Filter) (two)",
    }
    for newest in (0, MOST + 1):
        with pytest.raises(ConfigError):
            list(gather(context, Wish(newest=newest)))


def test_reading_is_told_and_kept_until_a_run_is_added(context: Context) -> None:
    items = [question(f"q{i}") for i in range(STEP + 1)]
    store(context.store, *(run(item, id=f"r{i}") for i, item in enumerate(items)))
    shelf = Shelf()
    *steps, first = shelf.gather(context, Wish())
    assert steps == [Reading(STEP, STEP + 1), Reading(STEP + 1, STEP + 1)]
    assert list(shelf.gather(context, Wish())) == [first]
    store(context.store, run(question("more"), id="more", created="2027-01-01T00:00:00+00:00"))
    assert shelf.get(context, Wish()) is first, "what the page shows is still there"
    *_, second = shelf.gather(context, Wish())
    assert isinstance(second, Gathered) and second.read == STEP + 2
    assert Shelf().get(context, Wish()).read == STEP + 2, "after a restart it is read again"


def test_a_long_list_has_pages_and_rare_patterns_are_counted(context: Context) -> None:
    entries = 6
    runs = [
        run(question(f"q{i:02d}"), id=f"r{i}-{seed}", seed=seed, answer="Danube" if i >> seed & 1 else "Rhine")
        for i in range(2**entries // 2)
        for seed in range(entries)
    ]
    store(context.store, *runs)
    _, compared, found = compare(context)
    shown = assert_harmless(right_where(compared, found) + key_line(compared)).text
    assert f"The {2**entries // 2 - SHOWN} rarer combinations" in shown
    name = f"own:{compared.entries[0].key}:all"
    pages = [listed(context, compared, found, name, page) for page in (0, 1, 9)]
    assert [(one.first, len(one.questions)) for one in pages] == [(0, PAGE), (PAGE, 12), (PAGE, 12)]
    assert "Next" in listing(pages[0]) and "Back" not in listing(pages[0])
    assert ("data-page", "0") in assert_harmless(listing(pages[1])).attributes


def test_one_entry_or_no_answers_are_said(context: Context) -> None:
    bare = question("q1", answers=())
    store(context.store, run(bare, id="a"), run(bare, "cafe", id="b"))
    _, compared, found = compare(context)
    assert "No common question with a known answer" in right_where(compared, found)
    assert "two positions or more" in position_table(compared, found)
    numbers = compared.report()
    assert position_figure(compared, found) is None
    assert cost_figure(compared, numbers, found, "seconds") is None
    assert "1 without answers" in main_table(compared, numbers, found, "seconds")
    alone = choose(gathered(context).found, [compared.entries[0].key])
    assert "two entries or more" in right_where(alone, overlap(alone, "em"))
    assert "minus first" not in main_table(alone, alone.report(), overlap(alone, "em"), "seconds")


def test_hostile_texts_stay_texts(context: Context) -> None:
    item = question("q1").model_copy(update={"question": EVIL})
    other = question("q2", gold=(2,)).model_copy(update={"question": EVIL})
    store(
        context.store,
        *(run(one, id=f"a{i}", answer=EVIL, model=EVIL) for i, one in enumerate((item, other))),
        *(
            run(one, id=f"b{i}", method=EVIL, answer=EVIL, model=EVIL, config={EVIL: EVIL})
            for i, one in enumerate((item, other))
        ),
    )
    found, compared, where = compare(context)
    numbers = compared.report()
    for html in (
        summary(found, compared),
        main_table(compared, numbers, where, COST),
        right_where(compared, where) + key_line(compared),
        position_table(compared, where),
        cost_table(compared, numbers, where, COST),
        saved(found, compared, numbers, where),
        listing(listed(context, compared, where, f"own:{compared.entries[0].key}:all")),
    ):
        assert_harmless(html)
    for figure in (position_figure(compared, where), cost_figure(compared, numbers, where, COST)):
        assert figure is not None
        for trace in figure.data:
            assert "<script" not in f"{trace.name}{trace.hovertemplate}"
