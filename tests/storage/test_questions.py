"""Questions with their runs, and runs in outline: what a comparison reads."""

from __future__ import annotations

import pytest

from mdqa.records import Cost, RunResult
from storage.questions import AT_ONCE
from storage.store import Store
from tests.storage.builders import complete, question


def store_run(store: Store, run_id: str, item: int = 1, **fields: object) -> RunResult:
    values = {"question": question(f"q{item}", f"Who found element {item}?"), "error": None}
    result = complete(run_id, **(values | fields))
    store.runs.begin(result.model_copy(update={"status": "running"}))
    store.runs.finish(result)
    return result


def at(hour: int) -> str:
    return f"2026-11-30T{hour:02d}:00:00.000+00:00"


def test_questions_of_several_methods_come_first_then_the_newest(store: Store) -> None:
    store_run(store, "a", 1, method="direct", created=at(1))
    store_run(store, "b", 1, method="cafe", created=at(2))
    store_run(store, "c", 2, method="cafe", created=at(3))
    store_run(store, "d", 2, method="cafe", created=at(4))
    store_run(store, "e", 3, method="direct", created=at(5))
    store_run(store, "f", 4, method="direct", created=at(6), status="failed")
    found = store.questions.asked()
    assert [(one.name, one.methods, one.runs) for one in found] == [
        ("q1", ("cafe", "direct"), 2),
        ("q3", ("direct",), 1),
        ("q2", ("cafe",), 2),
    ]
    assert found[0].documents == 3 and found[0].newest == at(2)
    assert store.questions.count() == 3
    assert [one.name for one in store.questions.asked(limit=1, offset=1)] == ["q3"]


def test_runs_that_a_study_had_carried_out_are_no_questions_of_their_own(store: Store) -> None:
    store_run(store, "base", 1, method="cafe", created=at(1))
    study = store.studies.begin("position_sweep", "base", "anna", {"document": ""})
    for hour, (run_id, item, method) in enumerate((("m", 2, "cafe"), ("n", 2, "direct"), ("o", 1, "direct")), 2):
        store_run(store, run_id, item, method=method, created=at(hour))
        store.studies.add(study.id, run_id, f"{method}@{item}")
    assert [(one.name, one.methods, one.runs) for one in store.questions.asked()] == [("q1", ("cafe",), 1)]
    assert store.questions.count() == store.questions.count("element 1") == 1
    assert store.questions.count("element 2") == 0


def test_search_takes_words_as_they_are(store: Store) -> None:
    store_run(store, "a", question=question("p", "Is 100% of it_ radium?"))
    store_run(store, "b", question=question("q", "Is 1000 of it, radium?"))
    for words, names in (
        ("RADIUM", {"p", "q"}),
        ("100%", {"p"}),
        ("it_", {"p"}),
        ("\\", set()),
        ("gold", set()),
        ("x" * 60_000, set()),
    ):
        assert {one.name for one in store.questions.asked(words)} == names
        assert store.questions.count(words) == len(names)


def test_runs_of_a_question(store: Store) -> None:
    for hour, (run_id, method, status) in enumerate(
        [("a", "direct", "ok"), ("b", "cafe", "ok"), ("c", "direct", "ok"), ("d", "direct", "failed")]
    ):
        store_run(store, run_id, method=method, status=status, created=at(hour))
    key = store.questions.of_run("a")
    assert key is not None and store.questions.of_run("nobody") is None
    assert store.questions.runs(key, 10) == ["c", "b", "a"]
    assert store.questions.runs(key, 1) == ["c"]
    assert store.questions.newest_run(key, "direct", "scripted") == "c"
    assert store.questions.newest_run(key, "direct", "another") is None
    assert store.questions.runs(key + 1, 10) == []


def test_what_was_said(store: Store) -> None:
    store_run(store, "a", answer="Curie")
    said = store.questions.said(["gone", "a"])
    assert list(said) == ["a"]
    assert (said["a"].question, said["a"].answer) == ("Who found element 1?", "Curie")


def test_outlines_have_what_counting_takes_and_no_text(store: Store) -> None:
    ids = [f"r{number:03d}" for number in range(AT_ONCE + 5)]
    for number, run_id in enumerate(ids):
        store_run(store, run_id, item=number % 3, answer=f"answer {number}", cost=Cost(llm_calls=number))
    store.runs.begin(complete("unfinished", status="running"))
    wanted = [*reversed(ids), "unfinished", "gone"]
    found = list(store.questions.outlines(wanted))
    assert [run.id for _, run in found] == list(reversed(ids))
    for _, outline in found[:7]:
        whole = store.runs.get(outline.id)
        assert (outline.answer, outline.cost, outline.config) == (whole.answer, whole.cost, whole.config)
        assert (outline.status, outline.created) == (whole.status, whole.created)
        assert outline.question.document_ids == whole.question.document_ids
        assert outline.question.gold_ids == whole.question.gold_ids
        assert (outline.question.answers, outline.question.meta) == (whole.question.answers, whole.question.meta)
        assert [stage.kept for stage in outline.stages] == [stage.kept for stage in whole.stages]
        assert {document.text for document in outline.question.documents} == {""}
        assert whole.stages[0].scores and not outline.stages[0].scores and not outline.opinions


def test_what_is_noted_of_a_question_makes_it_no_other(store: Store) -> None:
    item = question("q1")
    store_run(store, "a", question=item)
    store_run(store, "b", question=item.model_copy(update={"meta": {"benchmark": "elements"}}))
    store_run(store, "c", question=item.model_copy(update={"id": "q2"}))
    store_run(store, "d", question=item.with_documents(item.documents[::-1]))
    store_run(store, "e", question=item.model_copy(update={"answers": ("Curie",)}))
    keys = [key for key, _ in store.questions.outlines(["a", "b", "c", "d", "e"])]
    assert keys[0] == keys[1] and len(set(keys)) == 4


@pytest.mark.parametrize("runs", [[], ["gone"]])
def test_nothing_is_found_where_nothing_is(store: Store, runs: list[str]) -> None:
    assert list(store.questions.outlines(runs)) == []
    assert store.questions.said(runs) == {}
    assert (store.questions.asked(), store.questions.count()) == ([], 0)
