"""Runs found by their facets: every filter and order, their counts, ten thousand runs, filters with a name."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlite_utils import Database

from mdqa.diagnosis.facets import Facets
from mdqa.errors import StorageError
from storage import migrations
from storage.facets import KINDS
from storage.listing import ORDERS, RunFilter, count_query, group_query, page_query
from storage.saved_filters import MAX_FILTER_NAME, UnknownFilter
from storage.store import Store
from tests.storage.builders import complete, header, question

DAY = "2026-11-{:02}T00:00:00.000+00:00"


def add(store: Store, run_id: str, facets: Facets | None, *, correct: bool | None = None, **fields: object) -> None:
    store.runs.begin(header(run_id, **{k: v for k, v in fields.items() if k in ("created", "method", "question")}))
    store.runs.finish(complete(run_id, **fields), correct=correct, facets=facets)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mdqa.db") as opened:
        add(opened, "a", Facets("nq20", "dropped", "prune", ("agents",), 0.2), correct=False, created=DAY.format(1))
        add(opened, "b", Facets("nq20", "dropped", "assess", (), 0.05), correct=False, created=DAY.format(2))
        add(opened, "c", Facets("musique", "", "", ("agents", "judge"), None), correct=True, created=DAY.format(3))
        add(opened, "d", None, created=DAY.format(4), method="madara")
        opened.runs.begin(header("e", created=DAY.format(5), method="cafe"))
        yield opened


def ids(store: Store, **filters: object) -> str:
    return "".join(row.id for row in store.runs.list(RunFilter(**filters)))  # type: ignore[arg-type]


def test_every_facet_filters(store: Store) -> None:
    assert ids(store) == "edcba"
    assert ids(store, benchmark="nq20") == "ba"
    assert ids(store, diagnosis="dropped") == "ba"
    assert ids(store, diagnosis="dropped", stage="prune") == "a"
    assert ids(store, disagreement="agents") == "ca"
    assert ids(store, disagreement="judge") == "c"
    assert [ids(store, correct=word) for word in ("right", "wrong", "unknown")] == ["c", "ba", "ed"]
    assert ids(store, margin_below=0.2) == "b"
    assert ids(store, margin_below=0.21) == "ba"
    assert ids(store, ids=("c", "nobody", "a")) == "ca"
    assert ids(store, ids=()) == ""
    assert ids(store, text="x" * 60_000) == ""  # more than a pattern may have
    assert ids(store, benchmark="nq20", text="marie", since=datetime(2026, 11, 2, tzinfo=UTC)) == "b"
    with pytest.raises(StorageError, match="there is no disagreement 'f; drop'; there is: agents, judge"):
        ids(store, disagreement="f; drop")


def test_a_row_says_its_facets(store: Store) -> None:
    rows = {row.id: row for row in store.runs.list()}
    one = rows["a"]
    assert (one.benchmark, one.diagnosis, one.stage, one.disagreements, one.margin) == (
        "nq20", "dropped", "prune", ("agents",), 0.2,
    )  # fmt: skip
    assert rows["c"].disagreements == ("agents", "judge") and rows["d"].margin is None
    assert store.runs.row("a") == one


def test_orders(store: Store) -> None:
    found = {order: "".join(row.id for row in store.runs.list(order=order)) for order in ORDERS}
    assert (found["newest"], found["oldest"], found["nearest"]) == ("edcba", "abcde", "baedc")
    assert found["slowest"][-1] == found["costliest"][-1] == "e"


def test_counts_are_those_of_choosing_something_else(store: Store) -> None:
    counts = store.runs.facets(RunFilter())
    assert (counts.total, counts.unknown) == (5, 1)
    assert counts.values["diagnosis"] == {"dropped": 2} and counts.values["stage"] == {"prune": 1, "assess": 1}
    assert counts.values["disagreement"] == {"agents": 2, "judge": 1}
    assert counts.values["correct"] == {"unknown": 2, "wrong": 2, "right": 1}
    chosen = store.runs.facets(RunFilter(benchmark="nq20", correct="wrong"))
    assert (chosen.total, chosen.unknown) == (2, 0)
    assert chosen.values["benchmark"] == {"nq20": 2}
    assert chosen.values["correct"] == {"wrong": 2}
    assert store.runs.facets(RunFilter(benchmark="nq20")).values["benchmark"] == {"nq20": 2, "musique": 1}
    for filters in (RunFilter(), RunFilter(method="duquad"), RunFilter(disagreement="agents", text="curie")):
        assert store.runs.facets(filters).total == store.runs.count(filters) == len(store.runs.list(filters))


def test_what_there_is(store: Store) -> None:
    assert store.runs.models() == ["scripted"]
    assert store.runs.benchmarks() == ["musique", "nq20"]


def test_facets_come_later_and_again(store: Store) -> None:
    assert store.runs.unfaceted(1) == ["d"]
    store.runs.set_facets("d", Facets("nq20", disagreements=("votes",)))
    assert store.runs.unfaceted(1) == [] and ids(store, disagreement="votes") == "d"
    assert store.runs.unfaceted(2, limit=2) == ["a", "b"]
    add_again = complete("d", created=DAY.format(4), method="madara", answer="Bohr")
    store.runs.finish(add_again, correct=False, facets=Facets("nq20", "read_but_wrong"))
    assert ids(store, diagnosis="read_but_wrong", correct="wrong") == "d" and ids(store, disagreement="votes") == ""


def test_runs_of_a_study_are_left_out_unless_asked_for(store: Store) -> None:
    study = store.studies.begin("leave_one_out", "a", by="ann")
    store.studies.add(study.id, "b", "d1")
    assert ids(store) == "edca" and ids(store, studies=True) == "edcba"
    assert ids(store, ids=("b",)) == "b"
    assert store.runs.facets(RunFilter(diagnosis="dropped")).total == 1
    assert store.runs.ids() == list("abcde") and store.runs.count() == 5


def test_deletion_takes_the_row_along(store: Store) -> None:
    store.runs.delete("a")
    assert ids(store, benchmark="nq20") == "b" and store.runs.facets().total == 4


def test_a_run_that_was_cut_off_is_listed_as_such(store: Store) -> None:
    with store.write() as db:
        db.execute("update runs set owner_pid = 0, owner_started = 'long ago' where id = 'e'")
    assert store.runs.recover() == 1
    assert ids(store, status="interrupted") == "e" and store.runs.unfaceted(1) == ["d", "e"]


# --- the schema before ----------------------------------------------------------------------------------------------


def test_older_runs_come_into_the_list_and_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = Database(sqlite3.connect(path, isolation_level=None))
    migrations.migrate(db, upto="m006_studies")
    db.execute("insert into questions values (1, 'h', 'q1', 'Who?', 0, '[\"Curie\"]', '{}')")
    for number in range(3):
        db.execute(
            "insert into runs (id, created, updated, finished, method, model, status, question, answer, correct, "
            "seconds, llm_calls, owner_host, owner_pid, owner_started, record) "
            "values (?, ?, '', '', 'direct', 'm', 'ok', 1, 'Bohr', 0, ?, 1, 'h', 1, '', '{}')",
            [f"old{number}", DAY.format(number + 1), float(number)],
        )
    db.close()
    with Store.open(path) as store:
        assert [row.id for row in store.runs.list(order="slowest")] == ["old2", "old1", "old0"]
        counts = store.runs.facets(RunFilter(correct="wrong"))
        assert (counts.total, counts.unknown, counts.values["method"]) == (3, 3, {"direct": 3})
        assert store.runs.unfaceted(1, limit=2) == ["old0", "old1"]
        store.runs.set_facets("old0", Facets("nq20", "read_but_wrong", "answer"))
        assert store.runs.unfaceted(1) == ["old1", "old2"]
    with Store.open(path) as store:
        assert [row.id for row in store.runs.list(RunFilter(diagnosis="read_but_wrong"))] == ["old0"]


# --- ten thousand runs ----------------------------------------------------------------------------------------------

MANY = 10_000
LONG = "x" * 3_000
"""What stands for a record; with it, a walk over the runs themselves reads more than 30 MB."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("many") / "mdqa.db") as store:
        for number in range(20):
            store.runs.begin(header(f"seed{number}", question=question(f"q{number}", f"Who found number {number}?")))
        with store.write() as db:
            db.execute(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "
                "insert into runs (id, created, updated, method, model, status, question, answer, correct, seconds, "
                "llm_calls, owner_host, owner_pid, owner_started, record) select 'r' || i, "
                "strftime('%Y-%m-%dT%H:%M:%S.000+00:00', 1767225600 + i * 300, 'unixepoch'), '', "
                "iif(i % 2, 'cafe', 'duquad'), 'm' || (i % 7), iif(i % 3, 'ok', 'failed'), 1 + i % 20, 'answer ' || i, "
                "case i % 3 when 0 then null when 1 then 1 else 0 end, i % 97, i % 13, '', 0, '', ? from n",
                [MANY - 20, LONG],
            )
            db.execute(
                "update run_facets set benchmark = 'b' || (llm_calls % 5), version = 1, agents = llm_calls = 3, "
                "margin = iif(llm_calls % 2, seconds / 97.0, null), diagnosis = iif(correct = 0, 'd' || "
                "(llm_calls % 11), ''), stage = iif(correct = 0, 's' || (llm_calls % 3), '')"
            )
        yield store


@dataclass(frozen=True)
class Wanted:
    """A filter, and the indexes of which one has to find its runs in the order of the newest."""

    filters: RunFilter
    index: str


FILTERS = {
    "none": Wanted(RunFilter(), "run_facets_created"),
    "method": Wanted(RunFilter(method="cafe"), "run_facets_method"),
    "model": Wanted(RunFilter(model="m1"), "run_facets_model"),
    "benchmark": Wanted(RunFilter(benchmark="b2"), "run_facets_benchmark"),
    "state": Wanted(RunFilter(status="ok"), "run_facets_status"),
    "wrong": Wanted(RunFilter(correct="wrong"), "run_facets_correct"),
    "unknown": Wanted(RunFilter(correct="unknown"), "run_facets_correct"),
    "diagnosis": Wanted(RunFilter(diagnosis="d3"), "run_facets_diagnosis"),
    "stage": Wanted(RunFilter(diagnosis="d3", stage="s0"), "run_facets_diagnosis"),
    **{kind: Wanted(RunFilter(disagreement=kind), f"run_facets_{kind}") for kind in KINDS},
    "margin": Wanted(RunFilter(margin_below=0.01), "run_facets_"),
    "since": Wanted(RunFilter(since=datetime(2026, 1, 9), until=datetime(2026, 2, 1)), "run_facets_created"),
    "text": Wanted(RunFilter(text="ANSWER 99"), "run_facets_created"),
    "ids": Wanted(RunFilter(ids=("r5", "r6")), ""),
    "several": Wanted(RunFilter(method="cafe", model="m1", correct="wrong", text="number 3"), "run_facets_"),
}


def plan(store: Store, sql: str, values: list[object]) -> list[str]:
    with store.read() as db:
        return [row["detail"] for row in db.query(f"explain query plan {sql}", values)]


@pytest.mark.parametrize("name", list(FILTERS))
def test_every_filter_in_every_order_goes_by_an_index(many: Store, name: str) -> None:
    wanted = FILTERS[name]
    for order in ORDERS:
        sql, values = page_query(wanted.filters, order)
        steps = plan(many, f"{sql} limit 25 offset 50", values)
        first = next(step for step in steps if step.split()[1] == "f")
        assert "USING" in first and ("INDEX" in first or "PRIMARY KEY" in first)
        if order == "newest":
            assert wanted.index in first
            assert name in ("margin", "ids") or not [step for step in steps if "TEMP B-TREE" in step]
        walked = {step.split()[1] for step in steps if step.startswith("SCAN")}
        assert walked <= {"f", "json_each"}, "neither runs nor questions are walked over"


@pytest.mark.parametrize("name", list(FILTERS))
def test_counting_does_not_walk_over_the_runs(many: Store, name: str) -> None:
    for sql, values in (count_query(FILTERS[name].filters), group_query(FILTERS[name].filters)):
        for step in plan(many, sql, values):
            if step.startswith("SCAN"):
                assert step.split()[1] in ("f", "json_each"), step


@pytest.mark.parametrize("name", ["none", "diagnosis", "text", "several"])
def test_a_page_of_ten_thousand_takes_less_than_half_a_second(many: Store, name: str) -> None:
    filters = FILTERS[name].filters
    for order in ("newest", "nearest"):
        began = time.thread_time()  # what others do on this machine does not count
        counts = many.runs.facets(filters)
        last = max(counts.total - 25, 0)
        rows = [*many.runs.list(filters, 25, 0, order), *many.runs.list(filters, 25, last, order)]
        assert time.thread_time() - began < 0.5
        assert rows and counts.total == many.runs.count(filters)


def test_pages_hold_every_run_once(many: Store) -> None:
    filters = RunFilter(correct="wrong", disagreement="agents")
    total = many.runs.count(filters)
    found = [row.id for offset in range(0, total, 25) for row in many.runs.list(filters, 25, offset, "nearest")]
    assert total > 100 and len(found) == len(set(found)) == total and sorted(found) == sorted(many.runs.ids(filters))


# --- filters with a name --------------------------------------------------------------------------------------------


def test_a_filter_is_kept_under_its_name(store: Store) -> None:
    wanted = RunFilter(
        method="duquad", diagnosis="dropped", margin_below=0.25, studies=True, since=datetime(2026, 11, 1, tzinfo=UTC)
    )
    assert store.saved_filters.save(" Lost  early ", wanted, "ann", "nearest")
    (found,) = store.saved_filters.list()
    assert (found.name, found.filters, found.order, found.made_by) == ("Lost early", wanted, "nearest", "ann")
    assert store.saved_filters.save("lost EARLY", replace(wanted, method=""), "bob") is False
    assert store.saved_filters.get("LOST early").filters.method == "" and len(store.saved_filters.list()) == 1
    store.saved_filters.save("Other", RunFilter(), "ann")
    with pytest.raises(StorageError, match="there is a filter 'Other' already"):
        store.saved_filters.rename("lost early", "other")
    store.saved_filters.rename("lost early", "Lost")
    assert [one.name for one in store.saved_filters.list()] == ["Lost", "Other"]
    store.saved_filters.delete("lost")
    for verb in (store.saved_filters.get, store.saved_filters.delete):
        with pytest.raises(UnknownFilter, match="no saved filter 'lost'"):
            verb("lost")
    for bad in (" ", "n" * (MAX_FILTER_NAME + 1)):
        with pytest.raises(StorageError, match="the filter's name has"):
            store.saved_filters.save(bad, RunFilter(), "ann")
    with pytest.raises(StorageError, match="names single runs"):
        store.saved_filters.save("ids", RunFilter(ids=("a",)), "ann")


def test_what_a_newer_version_saved_is_read_as_far_as_it_is_known(store: Store) -> None:
    store.saved_filters.save("x", RunFilter(method="cafe"), "ann")
    with store.write() as db:
        db.execute("update saved_filters set filter = ?", ['{"method":"cafe","moon":"full","order":"tides"}'])
    found = store.saved_filters.get("x")
    assert (found.filters, found.order) == (RunFilter(method="cafe"), "newest")
