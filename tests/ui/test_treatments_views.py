"""What each treatment would have done: documents against the chosen one, answers, the summary, and what is offered."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from mdqa.records import Opinion, RunResult
from tests.methods.madara.helpers import Run, make_profile
from tests.ui.graded import graded_run, river
from tests.ui.hostile import assert_harmless
from ui.comparing import offers
from ui.views.routing import decisions
from ui.views.treatments import Offer, treatments_panel
from ui.views.voices import voices


def outcome(title: str, answer: str, *documents: str, chosen: bool = False, **more: Any) -> Opinion:
    return Opinion(
        role="treatment", title=title, answer=answer, documents=documents, chosen=chosen, group=title.lower(), **more
    )


def a_run(*opinions: Opinion, answers: tuple[str, ...] = ("148 km",), **more: Any) -> RunResult:
    question = river().model_copy(update={"answers": answers})
    return plain_run().model_copy(update={"question": question, "opinions": opinions, **more})


@cache
def plain_run() -> RunResult:
    """Routed to ATF, nothing compared."""
    return graded_run().result


FOUND = (
    outcome("NF", "42 km", *(f"d{i}" for i in range(1, 13)), reasoning="12 documents kept, read together"),
    outcome("ATF", "148 km", "d5", "d1", chosen=True),
    outcome("SDA", "The 148 km.", "d5", "d3"),
    outcome("CoT", "", "d2", status="parse_error"),
)


def rows_of(run: RunResult) -> list[str]:
    html = treatments_panel(run, ())
    assert_harmless(html)
    return re.findall(r"<tr>.*?</tr>", html.partition("<tbody>")[2])


def test_the_chosen_one_comes_first_and_the_others_are_set_against_it() -> None:
    atf, nf, sda, cot = rows_of(a_run(*FOUND))
    assert "✓ chosen" in atf and "✓ chosen" not in nf + sda + cot
    assert "✓ right" in atf and "× wrong" in nf and "✓ right" in sda
    assert "differs" in nf and "same as chosen" not in nf and "chosen</span>" in atf
    assert "all 12, as given (5★ gold)" in nf and "12 documents kept" in nf
    chips = re.findall(r'<(?:span|s) class="mdqa-doc ?([\w ]*)"[^>]*>([^<]+)<', sda)
    assert chips == [("gold", "5★"), ("plus", "+3"), ("minus", "1")]
    chips = re.findall(r'<(?:span|s) class="mdqa-doc ?([\w ]*)"[^>]*>([^<]+)<', cot)
    assert chips == [("plus", "+2"), ("minus", "1"), ("gold minus", "5★")]
    assert "no answer" in cot and "reply could not be read" in cot and "× wrong" not in cot


@pytest.mark.parametrize(
    ("opinions", "answers", "words"),
    [
        (FOUND, ("148 km",), "2 of 4 treatments give the expected answer; the chosen one is among them."),
        (FOUND, ("42 km",), "1 of 4 treatments give the expected answer; the chosen one is not among them."),
        (FOUND, ("7 km",), "0 of 4 treatments give the expected answer."),
        (FOUND, (), "4 treatments, 3 answers; 1 other treatment agrees with the chosen one."),
        (FOUND[:1], (), "1 treatment, 1 answer."),
    ],
)
def test_the_summary_says_how_many_are_right(
    opinions: tuple[Opinion, ...], answers: tuple[str, ...], words: str
) -> None:
    run = a_run(*opinions, answers=answers)
    assert words in treatments_panel(run, ())
    assert ("✓ right" in treatments_panel(run, ())) is (answers in (("148 km",), ("42 km",)))


def test_long_lists_are_cut() -> None:
    ids = river(50).document_ids
    run = a_run().model_copy(update={"question": river(50), "opinions": (outcome("NF", "a", *ids[::-1], chosen=True),)})
    assert "and 26 more" in rows_of(run)[0]


def test_outcomes_are_no_voices() -> None:
    run = graded_run(compare="all").result
    assert {o.role for o in run.opinions} >= {"treatment", "reading", "generator", "conflict"}
    html = voices(run)
    assert html.count("<article") == 2 and "Generator" in html and html.count("Conflict Agent") == 1
    assert "Read alone" not in html and "No-Filter" not in html
    pde = graded_run(profile=make_profile(), compare="shared").result
    assert "Votes of the single readings" in voices(pde) and voices(pde).count("<article") == 1


def test_ballots_without_a_weight_are_votes_and_no_voices() -> None:
    ballot = Opinion(role="extractor", title="Reading of one document", answer="1", documents=("d1",), group="1")
    html = voices(a_run(ballot))
    assert "Votes of the single readings" in html and "<article" not in html


def test_nothing_is_shown_where_nothing_was_decided() -> None:
    run = a_run(routing=None)
    assert "does not route" in decisions(run) and treatments_panel(run, ()) == "" and voices(run) == ""
    assert decisions(run.model_copy(update={"opinions": FOUND[:1]})) == ""


def added(run: RunResult) -> dict[str, int]:
    return {o.compare: int(re.search(r"Up to (\d+) more calls", o.words)[1]) for o in offers(run)}  # type: ignore[index]


@pytest.mark.parametrize(
    ("profile", "options"),
    [
        (make_profile((0.65, 0.49, 0.10), 0.887), {}),
        (make_profile((0.28, 0.09, 0.01), 0.907), {}),
        (make_profile(), {"pde_votes": "random", "conflict_per_doc": True}),
    ],
)
def test_the_calls_said_beforehand_are_enough_and_not_many_too_many(profile: Any, options: dict[str, Any]) -> None:
    """What is announced is an upper limit without retries, and only lists that are alike are saved."""

    def first_attempts(run: Run) -> int:
        return sum(call.attempt == 1 for call in run.calls())

    before = graded_run(profile=profile, **options)
    for compare, more in added(before.result).items():
        after = graded_run(profile=profile, compare=compare, **options)
        asked = first_attempts(after) - first_attempts(before)
        assert more - 6 <= asked <= more, (compare, more, asked)


def test_what_was_done_is_not_offered_again() -> None:
    run = plain_run()
    assert list(added(run)) == ["shared", "all"]
    shared = run.model_copy(update={"config": {**run.config, "compare": "shared"}})
    assert list(added(shared)) == ["all"] and added(shared)["all"] == 27  # 12 + 12 + 1 agents, two lists together
    assert offers(run.model_copy(update={"config": {**run.config, "compare": "all"}})) == ()


def test_nothing_is_offered_where_it_cannot_be_had() -> None:
    run = plain_run()
    assert len(offers(run)) == 2
    for changes in ({"method": "cafe"}, {"status": "failed"}, {"status": "running"}, {"config": {"k": 0}}):
        assert offers(run.model_copy(update=changes)) == ()
    single = run.question.with_documents(run.question.documents[:1])
    assert offers(run.model_copy(update={"question": single})) == ()


def test_offers_are_told_with_what_they_cost() -> None:
    run = plain_run()
    html = treatments_panel(run, offers(run))
    text = assert_harmless(html).text
    assert "Only the chosen treatment was carried out" in text
    assert "No-Filter, 3-Agent, SDA, PDE, PDE uniform, PDE random. Up to 16 more calls" in text
    assert f"beside the {run.cost.llm_calls} of this run" in text
    assert "CoT, SDA, SDA CoT" in text
    assert treatments_panel(run, (Offer("a", "b", "c"),)).count("offer") == 1
