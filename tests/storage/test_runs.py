"""A run's life: begun, traced, finished, listed, deleted."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from mdqa.errors import StorageError
from mdqa.records import DocumentScore, RunResult
from mdqa.trace import (
    AttentionCaptured,
    PartialScores,
    Progress,
    Routed,
    TextDelta,
)
from storage.runs import RunFilter, UnknownRun
from storage.store import Store
from tests.storage.builders import (
    assert_equal_maps,
    attention_map,
    call,
    complete,
    cost,
    header,
    opinion,
    question,
    routing,
    stage,
    trace,
)


def test_begun_run_reads_back(store: Store) -> None:
    store.runs.begin(header())
    assert store.runs.get("r1") == header()
    assert store.runs.events("r1") == []
    assert store.runs.maps("r1") == []


def test_finished_run_reads_back_whole(store: Store) -> None:
    store.runs.begin(header())
    store.runs.finish(complete(), (attention_map(),))
    assert store.runs.get("r1") == complete()
    assert_equal_maps(store.runs.maps("r1")[0], attention_map())


def test_same_id_twice(store: Store) -> None:
    store.runs.begin(header())
    with pytest.raises(StorageError, match="run 'r1' is stored already"):
        store.runs.begin(header())


def test_trace_reads_back_as_typed_events(store: Store) -> None:
    store.runs.begin(header())
    events = trace()
    for event in events:
        store.runs.record("r1", event)
    expected = [e.model_copy(update={"map": None}) if isinstance(e, AttentionCaptured) else e for e in events]
    assert store.runs.events("r1") == expected
    assert [type(event) for event in store.runs.events("r1")] == [type(event) for event in events]


def test_screen_only_events_are_left_out(store: Store) -> None:
    store.runs.begin(header())
    for event in (
        Progress(stage="s", done=1, total=2),
        TextDelta(role="judge", text="The"),
        PartialScores(stage="s", signal="x", scores={"d0": DocumentScore(value=1.0)}),
    ):
        store.runs.record("r1", event)
    assert store.runs.events("r1") == []


def test_unfinished_run_shows_what_it_had(store: Store) -> None:
    store.runs.begin(header())
    for event in trace(finished=False):
        store.runs.record("r1", event)
    result = store.runs.get("r1")
    assert result == header(
        stages=(stage(),),
        opinions=(opinion(),),
        routing=routing(),
        notices=("BM25 took over",),
        fallbacks=1,
        parse_failures=1,
        attention_summary=(attention_map().summary(),),
        cost=(cost() + cost()).model_copy(update={"seconds": 0.8}),
    )
    row = store.runs.row("r1")
    assert (row.status, row.llm_calls, row.seconds) == ("running", 2, 0.8)


def test_run_that_ended_but_was_not_written_whole(store: Store) -> None:
    store.runs.begin(header())
    for event in trace():
        store.runs.record("r1", event)
    result = store.runs.get("r1")
    assert (result.status, result.answer, result.cost) == ("ok", "Marie Curie", cost(2))
    assert result.stages == (stage(),)


def test_finish_does_not_double_maps(store: Store) -> None:
    first, second = attention_map("coarse"), attention_map("fine", seed=1, heat=False)
    store.runs.begin(header())
    store.runs.record("r1", AttentionCaptured(stage="coarse", map=first))
    store.runs.finish(complete(), (first, second, first))
    names = [m.stage for m in store.runs.maps("r1")]
    assert names == ["coarse", "fine", "coarse"]
    store.runs.finish(complete(), (first, second, first))
    store.runs.finish(complete())
    assert [m.stage for m in store.runs.maps("r1")] == names
    assert_equal_maps(store.runs.maps("r1")[1], second)


def test_event_after_the_end_changes_the_trace_only(store: Store) -> None:
    store.runs.begin(header())
    store.runs.finish(complete())
    store.runs.record("r1", call(9, at=99.0))
    assert len(store.runs.events("r1")) == 1
    assert store.runs.get("r1") == complete()
    assert store.runs.row("r1").llm_calls == 2


def test_finish_needs_an_end(store: Store) -> None:
    store.runs.begin(header())
    with pytest.raises(StorageError, match="cannot be finished with the status 'running'"):
        store.runs.finish(header())


@pytest.mark.parametrize("verb", ["get", "row", "events", "maps", "delete", "finish", "record"])
def test_unknown_run(store: Store, verb: str) -> None:
    arguments = {"finish": (complete("nobody"),), "record": ("nobody", call(0))}.get(verb, ("nobody",))
    with pytest.raises(UnknownRun, match=r"there is no run 'nobody' in .*mdqa\.db"):
        getattr(store.runs, verb)(*arguments)
    with store.read() as db:
        assert [db.execute(f"select count(*) from {name}").fetchone()[0] for name in ("runs", "events")] == [0, 0]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_refused_with_their_place(store: Store, number: float) -> None:
    bad = routing().model_copy(update={"margins": {"rho": number}})
    store.runs.begin(header())
    with pytest.raises(StorageError, match=r"run 'r1', event 'routed', routing, margins, rho .*the number is"):
        store.runs.record("r1", Routed(routing=bad))
    with pytest.raises(StorageError, match="run 'r1', routing, margins, rho"):
        store.runs.finish(complete(routing=bad.model_dump()))
    assert store.runs.get("r1") == header()


def test_long_prompts_are_compressed(store: Store) -> None:
    store.runs.begin(header())
    store.runs.record("r1", call(0, prompt="The same sentence again. " * 4000))
    with store.read() as db:
        kind, size = db.execute("select typeof(data), length(data) from events").fetchone()
    assert (kind, size < 5000) == ("blob", True)
    assert store.runs.events("r1") == [call(0, prompt="The same sentence again. " * 4000)]


# --- lists --------------------------------------------------------------------------------------------------------


def add(store: Store, run_id: str, *, correct: bool | None = None, seconds: float = 1.0, **fields: object) -> RunResult:
    result = complete(run_id, cost=cost(2).model_copy(update={"seconds": seconds}), **fields)
    store.runs.begin(result)
    store.runs.finish(result, correct=correct)
    return result


def ids(store: Store, **filters: object) -> list[str]:
    return [row.id for row in store.runs.list(RunFilter(**filters))]  # type: ignore[arg-type]


def test_rows_hold_what_a_list_shows(store: Store) -> None:
    add(store, "r1", correct=True)
    add(store, "r2", correct=False)
    add(store, "r3")
    rows = {row.id: row for row in store.runs.list()}
    assert {name: row.correct for name, row in rows.items()} == {"r1": True, "r2": False, "r3": None}
    row = rows["r1"]
    assert (row.method, row.model, row.status, row.question) == ("duquad", "scripted", "ok", "Who found radium?")
    assert (row.answer, row.seconds, row.llm_calls, row.documents) == ("Marie Curie", 1.0, 2, 3)
    assert row.created == "2026-11-30T10:00:00.000+00:00"
    assert store.runs.row("r2") == rows["r2"]


def test_filters(store: Store) -> None:
    add(store, "a", method="cafe", created="2026-11-01T00:00:00+00:00")
    add(store, "b", method="cafe", model="other", created="2026-11-02T01:00:00+02:00")  # 23:00 on the first, UTC
    add(store, "c", method="madara", status="failed", answer="", created="2026-11-03T00:00:00+00:00")
    store.runs.begin(header("d", created="2026-11-04T00:00:00+00:00"))
    assert ids(store) == ["d", "c", "b", "a"]
    assert ids(store, method="cafe") == ["b", "a"]
    assert ids(store, model="other") == ["b"]
    assert ids(store, status="failed") == ["c"]
    assert ids(store, status="running") == ["d"]
    assert ids(store, method="cafe", model="scripted", status="ok") == ["a"]
    second = datetime(2026, 11, 2, tzinfo=UTC)
    assert ids(store, since=second) == ["d", "c"]
    assert ids(store, until=second) == ["b", "a"]
    assert ids(store, since=second - timedelta(hours=1), until=second) == ["b"]
    assert ids(store, since=datetime(2026, 11, 4)) == ["d"]
    assert store.runs.count() == 4
    assert store.runs.count(RunFilter(method="cafe")) == 2
    assert store.runs.ids(RunFilter(method="cafe")) == ["a", "b"]


def test_text_filter_takes_text_literally(store: Store) -> None:
    add(store, "percent", question=question(text="Is 100% enough?"), answer="no")
    add(store, "under", question=question(text="What is a_b?"), answer="yes")
    add(store, "slash", question=question(text="What is C:\\temp?"), answer="a folder")
    add(store, "quote", question=question(text="'; drop table runs; --"), answer="Ωmega")
    assert ids(store, text="0%") == ["percent"]
    assert ids(store, text="%") == ["percent"]
    assert ids(store, text="_") == ["under"]
    assert ids(store, text="\\") == ["slash"]
    assert ids(store, text="'; drop table") == ["quote"]
    assert ids(store, text="FOLDER") == ["slash"]
    assert ids(store, text="Ω") == ["quote"]
    assert ids(store, text="a\ud800b") == []
    assert store.runs.count(RunFilter(text="what IS")) == 2


def test_order_and_pages(store: Store) -> None:
    for number in range(5):
        add(store, f"r{number}", created=f"2026-11-0{number + 1}T00:00:00+00:00", seconds=float((number * 3) % 5))
    assert [row.id for row in store.runs.list(None, 2, 1)] == ["r3", "r2"]
    assert [row.id for row in store.runs.list(limit=9, order="oldest")] == ["r0", "r1", "r2", "r3", "r4"]
    assert [row.id for row in store.runs.list(order="slowest")] == ["r3", "r1", "r4", "r2", "r0"]
    assert store.runs.list(offset=99) == []
    with pytest.raises(StorageError, match=r"cannot be sorted by 'answer; drop'; there is: newest"):
        store.runs.list(order="answer; drop")  # type: ignore[arg-type]


def test_equal_times_have_a_stable_order(store: Store) -> None:
    for number in range(6):
        add(store, f"r{number}")
    pages = [row.id for offset in range(6) for row in store.runs.list(limit=1, offset=offset)]
    assert pages == ["r5", "r4", "r3", "r2", "r1", "r0"]


# --- deletion -----------------------------------------------------------------------------------------------------


def test_delete_takes_along_what_only_this_run_used(store: Store) -> None:
    add(store, "r1")
    store.runs.record("r1", call(0))
    store.runs.finish(complete("r1"), [attention_map()])
    add(store, "r2", question=question("q2", documents=2))
    store.runs.delete("r1")
    assert [row.id for row in store.runs.list()] == ["r2"]
    with store.read() as db:
        counts = {
            name: db.execute(f"select count(*) from {name}").fetchone()[0]
            for name in ("runs", "questions", "documents", "question_documents", "events", "attention_maps")
        }
    assert counts == {
        "runs": 1, "questions": 1, "documents": 2, "question_documents": 2, "events": 0, "attention_maps": 0,
    }  # fmt: skip
    assert store.runs.get("r2").question == question("q2", documents=2)


def test_many_runs_are_read_as_one_by_one_and_share_their_documents(store: Store) -> None:
    base = question("q", "Who?")
    for number in range(3):
        documents = tuple(d for place, d in enumerate(base.documents) if place != number)
        marked = documents[0].model_copy(update={"gold": None})
        item = base.with_documents((marked, *documents[1:]) if number == 2 else documents)
        store.runs.begin(complete(f"r{number}", question=item, error=None).model_copy(update={"status": "running"}))
    store.runs.finish(complete("r1", question=store.runs.get("r1").question, error=None))
    found = store.runs.get_all(["r2", "gone", "r0", "r1"])
    assert list(found) == ["r2", "r0", "r1"]
    assert all(found[run_id] == store.runs.get(run_id) for run_id in found)
    assert found["r0"].question.documents[-1] is found["r1"].question.documents[-1]
    assert found["r2"].question.documents[0].gold is None
