"""What a run is found by: its benchmark, its diagnosis, who disagreed, how near another outcome was."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.benchmarks.names import benchmark_of, file_stem, named
from mdqa.commands.results import input_digest
from mdqa.diagnosis.cases import TITLES, VERDICTS
from mdqa.diagnosis.facets import DISAGREEMENTS, VERSION, Facets, diagnosis_of, facets_of
from mdqa.interventions import SwitchOff, apply
from mdqa.methods.madara.router import MULTI_HOP, Thresholds, chosen_by_hand, decide
from mdqa.records import Opinion, Question
from storage.documents import question_key
from tests.diagnosis.builders import IDS, QUESTION, run, stage, voice, whole

DROPPED = stage("selection", IDS, ("d2", "d3"))


def test_every_verdict_has_words() -> None:
    assert list(TITLES) == list(VERDICTS)


def test_a_wrong_run_is_diagnosed_and_a_right_one_is_not() -> None:
    assert facets_of(run("Graz", DROPPED, whole("answer", ("d2", "d3")))) == Facets("", "dropped", "selection")
    assert facets_of(run("Vienna", whole())) == Facets()
    assert Facets().version == VERSION


@pytest.mark.parametrize(
    ("status", "verdict"), [("failed", "unanswered"), ("cancelled", ""), ("interrupted", ""), ("running", "")]
)
def test_a_run_that_was_stopped_is_no_wrong_answer(status: str, verdict: str) -> None:
    assert facets_of(run("", status=status)).diagnosis == verdict


def test_without_accepted_answers_people_say_what_is_wrong() -> None:
    unknown = run("Graz", whole(), item=QUESTION.model_copy(update={"answers": ()}))
    assert facets_of(unknown).diagnosis == ""
    assert facets_of(unknown, accepted=False).diagnosis == "read_but_wrong"
    assert facets_of(unknown, accepted=True).diagnosis == ""
    assert facets_of(run("Wien", whole()), accepted=True).diagnosis == "metric_mismatch"
    found = diagnosis_of(run("Wien", whole()))
    assert found is not None and found.finding.verdict == "read_but_wrong"


def kinds(*opinions: Opinion, **more: Any) -> tuple[str, ...]:
    return facets_of(run("Graz", opinions=opinions, **more)).disagreements


def test_who_disagreed() -> None:
    local, everything = voice("local_agent", "The Graz."), voice("global_agent", "graz")
    assert kinds(local, everything, voice("judge", "Graz", chosen=True)) == ()
    assert kinds(local, voice("global_agent", "Vienna"), voice("judge", "Linz", chosen=True)) == ("agents",)
    assert kinds(local, voice("global_agent", "")) == ()
    assert kinds(local, everything, voice("judge", "Linz", chosen=True)) == ("judge",)
    assert kinds(local, voice("judge", "Linz", chosen=True)) == ()
    treatments = [voice("treatment", "Graz", chosen=True, group="sda"), voice("treatment", "Linz", group="cot")]
    assert kinds(*treatments) == ("treatments",)
    assert kinds(*treatments[:1]) == ()
    ballots = [
        voice("extractor", "Graz", ["d1"], weight=2.0, chosen=True),
        voice("extractor", "Linz", ["d2"], weight=1),
    ]
    assert kinds(*ballots) == ("votes",)
    assert kinds(ballots[0], voice("extractor", "", ["d2"], weight=1.0)) == ()
    assert tuple(DISAGREEMENTS) == ("agents", "judge", "treatments", "votes")


def margin(**more: Any) -> float | None:
    return facets_of(run("Graz", **more)).margin


def test_the_margin_of_a_route_is_that_of_the_nearest_bar_that_decides() -> None:
    bars = Thresholds()
    falling = decide((bars.rho1_threshold + 0.02, 0.05, 0.0), bars.tau_nf + 0.3)
    assert margin(routing=falling) == pytest.approx(0.02)
    flat = decide((0.0, 0.1, 0.2), bars.tau_nf + 0.3)  # what rho1 is held to is not asked
    assert flat.treatment == "sda" and margin(routing=flat) == pytest.approx(0.1)
    low = decide((0.7, 0.69, 0.68), bars.tau_nf - 0.1)
    assert low.treatment == "pde" and margin(routing=low) == pytest.approx(0.1)
    multi = low.model_copy(update={"note": MULTI_HOP})
    assert margin(routing=multi) == pytest.approx(0.01)
    assert margin(routing=chosen_by_hand("pde", low)) is None
    assert margin() is None


def test_the_margin_of_a_vote_is_the_share_between_the_first_two() -> None:
    first = voice("extractor", "Graz", ["d1"], weight=3.0, chosen=True, group="graz")
    second = voice("extractor", "Linz", ["d2"], weight=1.0, group="linz")
    assert margin(opinions=(first, second)) == pytest.approx(0.5)
    assert margin(opinions=(first, voice("extractor", "Graz", ["d3"], weight=1.0, group="graz"))) == 1.0
    assert margin(opinions=(first,)) is None
    none = [opinion.model_copy(update={"weight": 0.0}) for opinion in (first, second)]
    assert margin(opinions=tuple(none)) == 0.0
    near = decide((0.8, 0.1, 0.05), 0.9)  # the second step is 0.05
    assert margin(opinions=(first, second), routing=near) == pytest.approx(0.05)


def test_the_benchmark_is_what_the_reader_or_the_file_says() -> None:
    plain = Question(id="q", question="Who?", documents=QUESTION.documents)
    read = plain.model_copy(update={"meta": {"dataset": "hotpotqa"}})
    assert (benchmark_of(plain), benchmark_of(read), benchmark_of(named(plain, "mine"))) == ("", "hotpotqa", "mine")
    assert named(read, "mine") is read and named(plain, "") is plain
    assert input_digest(named(plain, "mine")) == input_digest(plain)
    assert question_key(named(plain, "mine")) == question_key(plain)
    assert facets_of(run(item=named(plain, "mine"))).benchmark == "mine"
    changed = apply(named(plain, "mine"), [SwitchOff(document="d2")])
    assert facets_of(run(item=changed)).benchmark == "mine@what-if"
    paths = ("/data/nq20.jsonl.gz", "C:\\x\\my.questions.json", ".gz", "plain")
    assert [file_stem(path) for path in paths] == ["nq20", "my.questions", ".gz", "plain"]
