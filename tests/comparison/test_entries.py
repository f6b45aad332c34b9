"""Stored runs as entries: which count, how they are told apart, and that the numbers are those of evaluate."""

from __future__ import annotations

import json

import pytest

from mdqa.comparison.entries import MOST_ENTRIES, Compared, Counting, choose, first_choice
from mdqa.comparison.numbers import report
from mdqa.comparison.observations import series_of
from mdqa.errors import InputError
from mdqa.interventions import SwitchOff, apply
from mdqa.records import RunError, RunResult
from mdqa.result_lines import Group
from tests.reports.builders import duquad, placed, question, run

ITEMS = placed(question("a", documents=5), 1, 3) + placed(question("b", documents=5), 1, 3) + [question("c")]
RIGHT = (True, True, False, True, False)


def answers(right: tuple[bool, ...] = RIGHT, **fields: object) -> list[RunResult]:
    """Runs of direct answering over all questions."""
    return [run(item, answer="Danube" if one else "Rhine", **fields) for item, one in zip(ITEMS, right, strict=True)]


def counted(*results: RunResult) -> Counting:
    """The runs as they are read: those that are named last are the newest and come first."""
    counting = Counting()
    for result in reversed(results):
        counting.add(result.question.id, result)
    return counting


def test_entries_are_methods_with_options_profile_seed_and_model() -> None:
    found = counted(
        *answers(),
        *answers(config={"context": "none"}),
        *answers(seed=1)[:2],
        *answers(model="other")[:3],
        *(duquad(item) for item in ITEMS[:4]),
    ).made()
    assert [(entry.label, entry.model, len(found.runs[entry.key])) for entry in found.entries] == [
        ("Direct answering (No-Filter), seed 0", "m", 5),
        ("Direct answering (No-Filter) context=none", "m", 5),
        ("DuQUAD", "m", 4),
        ("Direct answering (No-Filter)", "other", 3),
        ("Direct answering (No-Filter), seed 1", "m", 2),
    ]
    assert len({entry.key for entry in found.entries}) == 5
    labels = [found.entry(key).label for key in first_choice(found)]
    assert labels[0] == "Direct answering (No-Filter), seed 0", "the others are set against answering directly"
    assert "Direct answering (No-Filter), seed 1" not in labels, "it has less than half of the questions"
    with pytest.raises(InputError, match="not there any more"):
        found.entry("nonsense")


def test_the_first_run_of_a_question_counts_and_changed_documents_do_not() -> None:
    item = question("a")
    changed = apply(item, [SwitchOff(document="d2")])
    newer, older = run(item, answer="Danube", id="new"), run(item, answer="Rhine", id="old")
    found = counted(older, newer, run(changed, id="what if")).made()
    assert (found.older, found.changed) == (1, 1)
    assert [one.run for own in found.runs.values() for one in own.values()] == ["new"]


def test_numbers_are_those_of_evaluate() -> None:
    direct, other = answers(), [duquad(item, answer="Danube") for item in ITEMS]
    found = counted(*direct, *other).made()
    compared = choose(found, first_choice(found))
    mine = compared.report()
    theirs = report(
        series_of((Group(name, "m"), result) for name, results in (("x", direct), ("y", other)) for result in results)
    )
    for row, expected in zip(mine["entries"], theirs["entries"], strict=True):
        for name in set(expected) - {"label", "entry", "first"}:
            assert row[name] == expected[name], name
    assert (mine["questions"], mine["runs"]) == (3, 10)
    assert [part["placement"] for part in mine["placements"]] == ["as given", "gold at 1", "gold at 3"]
    json.dumps(mine, allow_nan=False)


def test_a_run_that_failed_gives_way_to_one_that_did_not() -> None:
    item = question("a")
    ok = {name: run(item, answer="Rhine", id=name) for name in ("old", "new")}
    failed = run(item, id="failed").model_copy(
        update={"status": "failed", "answer": "", "error": RunError(type="PromptTooLong", message="too long")}
    )
    for runs, expected in (([ok["old"], failed], "old"), ([failed, ok["new"]], "new"), ([failed], "failed")):
        found = counted(*runs).made()
        assert [one.run for own in found.runs.values() for one in own.values()] == [expected]
        assert found.older == len(runs) - 1


def one_failed() -> Compared:
    error = RunError(type="PromptTooLong", message="too long")
    first, second = answers(), answers(config={"context": "none"})[:4]
    second[1] = second[1].model_copy(update={"status": "failed", "answer": "", "error": error})
    found = counted(*first, *second).made()
    return choose(found, first_choice(found))


def test_common_questions_leave_out_what_failed_or_was_not_asked() -> None:
    compared = one_failed()
    assert compared.questions == 3 and len(compared.asked) == 5
    assert [compared.failed(place) for place in (0, 1)] == [[], [ITEMS[1].id]]
    assert [compared.missing(place) for place in (0, 1)] == [[], [ITEMS[4].id]]
    assert [row["n"] for row in compared.report()["entries"]] == [3, 3]


def test_each_entry_over_its_own_questions() -> None:
    found = counted(*answers(), *answers(config={"context": "none"})[:2]).made()
    compared = choose(found, [entry.key for entry in found.entries], common=False)
    assert [row["n"] for row in compared.report()["entries"]] == [5, 2]
    assert compared.positions == {ITEMS[0].id: 1, ITEMS[1].id: 3, ITEMS[2].id: 1, ITEMS[3].id: 3, ITEMS[4].id: 1}


def test_what_cannot_be_compared() -> None:
    found = counted(*(r for seed in range(MOST_ENTRIES + 1) for r in answers(seed=seed)[:1])).made()
    keys = [entry.key for entry in found.entries]
    assert len(first_choice(found)) == MOST_ENTRIES
    for wrong in ([], keys, ["nonsense"]):
        with pytest.raises(InputError):
            choose(found, wrong)
    with pytest.raises(InputError, match="compare anew"):
        choose(found, keys[:2]).place(keys[2])
    assert first_choice(counted().made()) == []


def test_equal_ids_of_other_questions_are_no_clusters() -> None:
    one, two = question("q1"), question("q1", question="What else?")
    counting = Counting()
    for key, item in (("1", one), ("2", two)):
        counting.add(key, run(item, answer="Danube"))
    found = counting.made()
    compared = choose(found, first_choice(found))
    assert compared.report()["questions"] == 2
