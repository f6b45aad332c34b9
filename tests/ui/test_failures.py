"""The Failures tab: what an address means, what the page shows of it, what is done with ticked runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
import pytest

from mdqa.diagnosis.facets import Facets, facets_of
from mdqa.errors import InputError
from mdqa.records import Question, RunResult
from storage.listing import ORDERS, RunFilter
from tests.diagnosis.builders import IDS, QUESTION, run, stage, voice, whole
from tests.ui.disagreeing import disagreeing
from tests.ui.helpers import SCRIPTED, open_scripted, question
from tests.ui.hostile import EVIL, OURS, parsed
from ui.actions import follow, read_config, start_runs
from ui.comparing_runs import MOST_RUNS
from ui.context import Context
from ui.faceting import fill_in, refresh
from ui.failures import MOST_AGAIN, again, export_lines, look, rename_filter, save_filter, send_all, taken
from ui.filtering import Wanted, read_address, read_values
from ui.judging import judge
from ui.people import visitor
from ui.tabs import failures
from ui.views.diagnosis import diagnosis_line
from ui.views.failures import failures_page
from ui.views.failures_list import MOST_COMPARED
from ui.views.failures_said import exported, sent, started

FORM = {"form", "label", "input", "select", "option", "datalist", "nav"}
"""Elements of this page beside those of :data:`OURS`."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_scripted(tmp_path, start=False)  # no run is carried out here
    with closing(opened.store):
        yield opened


def keep(context: Context, run_id: str, answer: str, *stages: Any, number: int = 1, **more: Any) -> RunResult:
    """Store a run as the engine does."""
    created = f"2026-11-{number:02}T10:00:00.000+00:00"
    result = run(answer, *stages, id=run_id, created=created, **more)
    context.store.runs.begin(result.model_copy(update={"status": "running", "answer": ""}))
    right = answer == "Vienna"
    context.store.runs.finish(result, correct=right, facets=facets_of(result))
    return result


@pytest.fixture
def filled(context: Context) -> Context:
    """Three runs: the evidence was dropped, the agents disagreed and the right one lost, and one is right."""
    lost = stage("selection", IDS, ("d2", "d3"), scores={"s": dict(zip(IDS, (0.2, 0.9, 0.5, 0.4, 0.1), strict=True))})
    keep(context, "lost", "Graz", lost, whole("answer", ("d2", "d3")), number=1, method="cafe")
    agents = (voice("local_agent", "Graz", chosen=True), voice("global_agent", "Vienna"))
    keep(context, "overruled", "Graz", whole(), number=2, method="duquad", opinions=agents)
    keep(context, "right", "Vienna", whole(), number=3, method="duquad")
    return context


def page_of(context: Context, address: str = "") -> str:
    return failures_page(look(context, read_address(address)))


def rows_of(html: str) -> list[str]:
    return re.findall(r'<tr data-run="([^"]+)"', html)


# --- addresses ------------------------------------------------------------------------------------------------------


def test_an_address_says_all_of_it_and_is_read_back() -> None:
    address = (
        "?tab=failures&method=cafe&model=a%26b&benchmark=nq20&correct=wrong&state=ok&diagnosis=dropped&stage=s"
        "&disagreement=votes&text=50%25&margin=0.25&since=2026-11-30&studies=1&sort=nearest"
    )
    wanted = read_address(address)
    assert wanted.filters.model == "a&b" and wanted.filters.text == "50%" and wanted.filters.margin_below == 0.25
    assert parse_qs(wanted.address()[1:]) == parse_qs(address[1:])
    assert read_address(wanted.at(3)) == wanted.turned(3)
    assert "stage" not in parse_qs(wanted.address(diagnosis="overruled")[1:])
    assert Wanted().address() == "?tab=failures"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"correct": "maybe", "state": "<b>", "disagreement": "f.run"}, id="no such value"),
        pytest.param(
            {"margin": "nan", "since": "yesterday", "sort": "answer; drop", "page": "-1"}, id="no such number"
        ),
        pytest.param({"margin": "-1", "page": "²", "studies": "yes"}, id="odd digits"),
        pytest.param({}, id="nothing"),
    ],
)
def test_what_an_address_cannot_mean_is_left_out(values: dict[str, str]) -> None:
    assert read_values(values) == Wanted()


# --- the page -------------------------------------------------------------------------------------------------------


def test_an_empty_database_says_how_to_make_runs(context: Context) -> None:
    html = page_of(context)
    assert "No runs yet" in html and "python -m mdqa store" in html and not rows_of(html)


def test_the_page_shows_runs_with_why_they_are_wrong(filled: Context) -> None:
    html = page_of(filled)
    assert rows_of(html) == ["right", "overruled", "lost"]
    assert "Evidence dropped (selection)" in html and "Right answer overruled" in html
    assert "Local and Global disagree" in html and html.count("× not correct") == 2
    assert "expected: Vienna" in html and "3 runs" in html
    assert 'href="?run=lost"' in html and 'data-pick="lost"' in html


def test_a_facet_is_a_link_that_filters_and_the_chosen_one_takes_itself_away(filled: Context) -> None:
    html = page_of(filled)
    assert 'href="?tab=failures&amp;method=duquad"' in html and 'href="?tab=failures&amp;diagnosis=dropped"' in html
    chosen = page_of(filled, "?method=duquad&correct=wrong")
    assert rows_of(chosen) == ["overruled"]
    assert 'href="?tab=failures&amp;correct=wrong" data-go="" data-at="method:duquad" aria-current="true"' in chosen
    assert 'href="?tab=failures&amp;method=cafe&amp;correct=wrong"' in chosen  # what another method would give
    for address in ("?diagnosis=dropped", "?diagnosis=dropped&stage=selection", "?method=cafe"):
        assert rows_of(page_of(filled, address)) == ["lost"]
    assert rows_of(page_of(filled, "?disagreement=agents")) == ["overruled"]


def test_no_order_opens_the_wrong_row(filled: Context) -> None:
    """Whatever the order, a row's link, its tick and its texts are those of one run."""
    for order in ORDERS:
        html = page_of(filled, f"?sort={order}")
        for body in re.findall(r"<tr data-run=.*?</tr>", html):
            ids = {*re.findall(r'data-run="([^"]+)"|data-pick="([^"]+)"|href="\?run=([^"]+)"', body)}
            named = {name for found in ids for name in found if name}
            assert len(named) == 1
            row = filled.store.runs.row(named.pop())
            assert row.answer in body and row.created[:10] in body and row.method in {"cafe", "duquad"}


def test_where_nothing_matches_the_page_says_what_to_take_away(filled: Context) -> None:
    html = page_of(filled, "?method=cafe&diagnosis=overruled")
    assert "No run matches" in html and not rows_of(html)
    assert "without Method: CAFE (1 run)" in html and "without Diagnosis: Right answer overruled (1 run)" in html
    assert "without any filter" in html
    assert "without Search: zzz" in page_of(filled, "?text=zzz")


def test_a_page_beyond_the_last_is_the_last(context: Context) -> None:
    for number in range(1, 29):
        keep(context, f"r{number:02}", "Graz", whole(), number=number)
    view = look(context, read_address("?page=9"))
    assert [row.id for row in view.rows] == ["r03", "r02", "r01"] and view.first == 25
    html = failures_page(view)
    assert "Runs 26 to 28 of 28" in html and 'href="?tab=failures" data-go="" data-at="← Back"' in html
    first = page_of(context)
    assert "Runs 1 to 25 of 28" in first and 'href="?tab=failures&amp;page=1"' in first


def assert_harmless(html: str) -> None:
    """Only our elements, no handlers, no addresses but our own."""
    markup = parsed(html)
    assert set(markup.tags) <= OURS | FORM, set(markup.tags) - OURS - FORM
    for name, value in markup.attributes:
        assert not name.startswith("on") and name not in ("src", "srcdoc", "formaction"), (name, value)
        assert name != "href" or value.startswith(("?run=", "?tab=failures", "#mdqa-document-")), value
        assert name != "style" or "url" not in value, value


def test_hostile_texts_stay_texts(context: Context) -> None:
    documents = tuple(document.model_copy(update={"title": EVIL}) for document in QUESTION.documents)
    evil = Question(id="q", question=EVIL, answers=(EVIL,), documents=documents, meta={"dataset": EVIL})
    opinions = (voice("local_agent", EVIL, chosen=True), voice("global_agent", "b"))
    stages = (stage(EVIL, IDS, ("d2",), scores={EVIL: dict.fromkeys(IDS, 1.0)}), whole("answer", ("d2",)))
    result = keep(context, "evil", "Graz" + EVIL, *stages, item=evil, opinions=opinions, model=EVIL, method=EVIL)
    send_all(context, ["evil"], EVIL, EVIL, EVIL)
    save_filter(context, EVIL, Wanted(RunFilter(text=EVIL)), EVIL)
    html = page_of(context)
    assert_harmless(html)
    assert EVIL in parsed(html).text
    assert_harmless(page_of(context, "?method=%3Cimg%3E&text=%22%3E%3Cb%3E&diagnosis=%3Cb%3E&stage=%3Cb%3E"))
    assert_harmless(diagnosis_line(result))
    assert_harmless(started([EVIL], [EVIL]) + sent(1, 1, 1, EVIL) + exported(1, 1))


# --- verbs ----------------------------------------------------------------------------------------------------------


def test_runs_are_taken_by_id_whatever_is_in_front(filled: Context) -> None:
    wrong = Wanted(RunFilter(correct="wrong"))
    assert taken(filled, wrong, ["right", "gone", "lost", "right"], False, 9, "sent") == ["right", "lost"]
    assert taken(filled, wrong, ["right"], True, 9, "sent") == ["overruled", "lost"]
    with pytest.raises(InputError, match="tick the runs first"):
        taken(filled, wrong, [], False, 9, "sent")
    with pytest.raises(InputError, match="3 runs are chosen, and 2 can be exported at once"):
        taken(filled, Wanted(), [], True, 2, "exported")


def test_many_are_sent_in_one_step(filled: Context) -> None:
    send_all(filled, ["right"], "Mine", "ann")
    found = send_all(filled, ["lost", "gone", "right"], "mine", "bob", "look")
    assert (found.new, found.there, found.gone) == (1, 1, 1)
    assert [(item.run, item.added_by) for item in filled.store.queues.items("Mine")] == [
        ("right", "ann"),
        ("lost", "bob"),
    ]
    assert "queued: Mine" in page_of(filled, "?method=cafe")
    with pytest.raises(InputError, match="Queue"):
        send_all(filled, ["lost", "overruled"], " ", "bob")
    assert sent(1, 2, 1, "Mine").count("“Mine”") == 1


def test_ticked_runs_are_exported_and_no_others(filled: Context, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert export_lines(filled, ["lost", "right"], path) == 2
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {line["run"] for line in lines} == {"lost", "right"} and lines[0]["documents"]


def test_filters_are_saved_and_offered(filled: Context) -> None:
    assert save_filter(filled, "Early", read_address("?diagnosis=dropped&sort=oldest"), "ann")
    html = page_of(filled)
    assert "Saved filters (1)" in html and 'href="?tab=failures&amp;diagnosis=dropped&amp;sort=oldest"' in html
    with pytest.raises(InputError, match="Saved filter: the filter's name has 0"):
        save_filter(filled, " ", Wanted(), "ann")
    with pytest.raises(InputError, match="no saved filter 'Late'"):
        rename_filter(filled, "Late", "x")


def test_runs_run_again_as_they_were_and_the_rest_is_said(tmp_path: Path) -> None:
    context = open_scripted(tmp_path, start=False, queue=2)
    with closing(context.store) as store:
        config = read_config("direct", {})
        first = run(
            "", id="first", method="direct", model=SCRIPTED, item=question(), seed=5, config=config.model_dump()
        )
        store.runs.begin(first)
        store.runs.finish(first)
        done = again(context, ["first", "first", "first", "gone"])
        assert len(set(done.new)) == 2
        assert "2 runs are waiting already" in done.refused[0] and "no run under this address" in done.refused[1]
        assert all(words.startswith("1 not: ") for words in done.refused)


# --- facets come when they are known ----------------------------------------------------------------------------------


def test_older_runs_are_filled_in_and_judging_works_them_out_again(filled: Context) -> None:
    old = run("Wien", whole(), id="old", created="2026-11-09T00:00:00.000+00:00")
    filled.store.runs.begin(old.model_copy(update={"status": "running"}))
    filled.store.runs.finish(old, correct=False)
    assert "1 older run of these are still being looked at" in page_of(filled)
    assert fill_in(filled.store) == 1 and fill_in(filled.store) == 0
    assert filled.store.runs.row("old").diagnosis == "read_but_wrong"
    judge(filled, "old", True, "ann", "t1")
    assert filled.store.runs.row("old").diagnosis == "metric_mismatch"
    judge(filled, "old", None, "ann", "t2")
    assert filled.store.runs.row("old").diagnosis == "read_but_wrong"
    filled.store.runs.set_facets("old", Facets())
    refresh(filled.store, "old")
    assert filled.store.runs.row("old").diagnosis == "read_but_wrong"


def test_the_engine_keeps_the_facets_of_its_runs(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        choice = {"direct": read_config("direct", {})}
        (run_id,) = start_runs(context, question(), choice, model=SCRIPTED)
        assert list(follow(context, [run_id], every=0.02))[-1][0].status == "ok"
        assert context.store.runs.unfaceted(1) == []
        row = context.store.runs.row(run_id)
        assert (row.diagnosis != "") == (row.correct is False)


# --- why an answer is wrong -------------------------------------------------------------------------------------------


def test_the_line_under_a_wrong_answer_names_document_rank_and_what_took_its_place(filled: Context) -> None:
    html = diagnosis_line(filled.store.runs.get("lost"))
    assert "Evidence dropped" in html and "at the stage “selection”" in html
    assert "rank 4 of 5 by s (0.200)" in html and "In its place: " in html and 'data-card="mdqa-document-2"' in html
    other = diagnosis_line(filled.store.runs.get("overruled"))
    assert "global_agent said “Vienna”, which is right." in other
    assert diagnosis_line(filled.store.runs.get("right")) == ""


def test_the_line_under_a_wrong_answer_names_the_documents_that_say_it() -> None:
    said = disagreeing().result.model_copy(update={"answer": "1912"})
    html = diagnosis_line(said)
    assert "“1912” stands in " in html and "2. The Ostra bridge" in html and "Switch it off under" in html
    both = said.model_copy(update={"answer": "opened"})
    assert "Switch them off under" in diagnosis_line(both) and "4. Public works" not in diagnosis_line(both)
    assert "stands in" not in diagnosis_line(said.model_copy(update={"answer": "nothing of the kind"}))


# --- the tab --------------------------------------------------------------------------------------------------------


@dataclass
class Event:
    """What the browser sends."""

    go: Any = ""
    act: Any = ""
    picked: Any = None
    every: Any = False
    address: Any = "?tab=failures"
    queue: Any = ""
    note: Any = ""
    name: Any = ""
    title: Any = ""


@pytest.fixture
def choose(filled: Context) -> Any:
    """The handler of links and buttons: from an event to (page, address, message, path of a file)."""
    with gr.Blocks() as page, gr.Tab("Failures") as tab:
        failures.build(filled, page, tab)
    handlers = [fn.fn for fn in page.fns.values() if any(event == "select" for _, event in fn.targets)]
    handler = next(fn for fn in handlers if "event" in str(getattr(fn, "__wrapped__", fn).__annotations__))

    def send(event: Event) -> tuple[Any, ...]:
        (found,) = list(handler(event, gr.Request(username="ann")))
        return tuple(found)

    return send


def test_links_and_buttons_of_the_tab(filled: Context, choose: Any) -> None:
    html, address, said, _ = choose(Event(go="?tab=failures&correct=right"))
    assert rows_of(html) == ["right"] and address == "?tab=failures&correct=right" and said == ""
    html, _, said, _ = choose(Event(act="send", picked=["lost", "right"], queue="Mine", note="why"))
    assert "2 runs sent to “Mine”." in said and html.count("queued: Mine") == 2
    (first, _) = filled.store.queues.items("Mine")
    assert (first.added_by, first.note) == (visitor(filled, gr.Request(username="ann")).name, "why")
    _, _, said, _ = choose(Event(act="send", every=True, address="?correct=wrong", queue="Wrong"))
    assert {item.run for item in filled.store.queues.items("Wrong")} == {"lost", "overruled"}
    _, _, said, _ = choose(Event(act="save", address="?correct=wrong", title=" Wrong ones "))
    assert "saved as “Wrong ones”" in said and filled.store.saved_filters.get("wrong ones").filters.correct == "wrong"
    _, _, said, _ = choose(Event(act="rename", name="Wrong ones", title="Wrong"))
    assert "now called “Wrong”" in said
    _, _, said, _ = choose(Event(act="delete", name="Wrong"))
    assert "deleted" in said and filled.store.saved_filters.list() == []


def test_words_on_saved_filters_stand_above_the_list_and_all_others_beside_the_bar(choose: Any) -> None:
    for event, above in (
        (Event(act="save", title="Wrong"), True),
        (Event(act="delete", name="nothing"), True),
        (Event(act="send", picked=["lost"], queue="Mine"), False),
        (Event(act="again", picked=[]), False),
    ):
        said = choose(event)[2]
        assert "mdqa-message" in said and ("mdqa-said-above" in said) is above


def test_nothing_can_be_done_before_a_run_is_ticked(filled: Context) -> None:
    acts = re.findall(r'<button[^>]*data-act="(again|export|send)"[^>]*disabled=""', page_of(filled))
    assert acts == ["again", "export", "send"] and MOST_COMPARED == MOST_RUNS


def test_what_cannot_be_done_is_said_and_changes_nothing(filled: Context, choose: Any) -> None:
    for event in (
        Event(act="send", picked="lost", queue="Mine"),
        Event(act="send", picked=[1, None], queue="Mine"),
        Event(act="send", picked=["lost"], queue=["x"]),
        Event(act="again", picked=[]),
        Event(act="launch", picked=["lost"]),
        Event(act="delete", name="nothing"),
    ):
        assert "mdqa-message bad" in choose(event)[2]
    assert filled.store.queues.queues() == [] and MOST_AGAIN < 100


def test_export_gives_a_file_that_is_taken_away_afterwards(filled: Context) -> None:
    with gr.Blocks() as page, gr.Tab("Failures") as tab:
        failures.build(filled, page, tab)
    handlers = [fn.fn for fn in page.fns.values() if any(event == "select" for _, event in fn.targets)]
    handler = next(fn for fn in handlers if "event" in str(getattr(fn, "__wrapped__", fn).__annotations__))
    steps = handler(Event(act="export", picked=["lost"]), gr.Request())
    found = next(steps)
    path = Path(found[3].value["path"] if isinstance(found[3].value, dict) else found[3].value)
    assert found[3].visible and "1 run as JSON lines" in found[2]
    assert list(steps) == [] and not (path.exists() and "mdqa-export" in str(path))


def test_the_old_address_of_the_tab_still_leads_there(filled: Context) -> None:
    with gr.Blocks() as page, gr.Tab("Failures") as tab:
        failures.build(filled, page, tab)
    load = next(fn.fn for fn in page.fns.values() if any(event == "load" for _, event in fn.targets))

    @dataclass
    class Asked:
        query_params: dict[str, str]

    for name in ("failures", "history"):
        assert rows_of(load(Asked({"tab": name, "method": "cafe"}))[0]) == ["lost"]
    assert not isinstance(load(Asked({"tab": "ask"}))[0], str)
    assert not isinstance(load(Asked({}))[0], str)


def test_runs_of_a_study_come_in_on_demand(filled: Context) -> None:
    study = filled.store.studies.begin("leave_one_out", "right", by="ann")
    filled.store.studies.add(study.id, "lost", "d1")
    assert rows_of(page_of(filled)) == ["right", "overruled"]
    assert rows_of(page_of(filled, "?studies=1")) == ["right", "overruled", "lost"]
    assert replace(Wanted(), filters=RunFilter(studies=True)).address() == "?tab=failures&studies=1"
