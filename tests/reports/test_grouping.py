"""Which runs may be compared with each other."""

from __future__ import annotations

from mdqa.reports.grouping import data_set, finished, groups, left_out, older, same_question, sources
from tests.reports.builders import placed, question, run


def test_runs_are_apart_by_method_model_data_and_options_that_count() -> None:
    items = [question("a", meta={"dataset": "nq"}), question("b", meta={"dataset": "hotpot"})]
    runs = [run(item, model=model, config={"k": k}) for item in items for model in ("m1", "m2") for k in (3, 6)]
    assert len(groups(runs)) == 8
    assert [group.label for group in groups(runs, ignore=("k",))] == ["m1, nq", "m2, nq", "m1, hotpot", "m2, hotpot"]
    assert [group.label for group in groups(runs[:2])] == ["m1, nq, k=3", "m1, nq, k=6"]
    assert len(groups(runs, only=())) == 4
    assert len(groups([*runs, run(items[0], "duquad", model="m1")], only=())) == 5


def test_the_newest_run_of_a_question_stands_for_it() -> None:
    item = question()
    old, new = run(item, created="2026-01-01"), run(item, created="2026-01-02", answer="Mur")
    [group] = groups([new, old])
    assert list(group.runs.values()) == [new]
    assert (group.older, len(group.members)) == (1, 2)
    assert older([group]) == "1 older runs of the same questions were passed over."
    [preferred] = groups([new, old], prefer=lambda one: float(one.answer == "Danube"))
    assert list(preferred.runs.values()) == [old]


def test_the_same_question_has_the_same_documents_in_the_same_order() -> None:
    item = question()
    turned = item.with_documents(item.documents[::-1])
    assert same_question(item) == same_question(question())
    assert same_question(item) != same_question(turned)
    assert len(groups([run(item), run(turned)])[0].runs) == 2


def test_positions_are_apart_or_pooled() -> None:
    items = placed(question("a", meta={"dataset": "nq"}), 1, 3)
    assert [data_set(item) for item in items] == ["nq@p1", "nq@p3"]
    assert [data_set(item, pool=True) for item in items] == ["nq", "nq"]
    runs = [run(item) for item in items]
    assert len(groups(runs)) == 2
    [pooled] = groups(runs, pool=True)
    assert len(pooled.runs) == 2
    assert sources(runs) == ["a", "a"]


def test_an_id_with_a_suffix_alone_is_no_placed_question() -> None:
    assert data_set(question("a@p3", meta={"dataset": "nq"})) == "nq"


def test_what_is_left_out_is_said() -> None:
    runs = [run(question()), run(question("b"), status="failed"), run(question("c"), "duquad")]
    assert len(finished(runs)) == 2
    assert len(finished(runs, "duquad")) == 1
    assert left_out(3, 2, "they failed") == "1 of 3 runs are left out: they failed."
    assert left_out(2, 2, "they failed") == ""
