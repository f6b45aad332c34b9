"""One run of each kind, built by hand: the verdict, where it happened, and what else applies."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.diagnosis.cases import VERDICTS, Case, mentioned
from mdqa.diagnosis.diagnosing import Diagnosis, diagnose, diagnose_all
from mdqa.records import ASIDE, AttentionSummary, Cost, Document, Question, RunError, RunResult, Stage
from mdqa.trace import ModelCall
from tests.diagnosis.builders import DOCUMENTS, IDS, QUESTION, run, stage, voice, whole

SCORES = {"d1": 0.2, "d2": 0.9, "d3": 0.5, "d4": 0.4, "d5": 0.1}


def verdict(result: RunResult, **more: Any) -> tuple[str, str, tuple[str, ...]]:
    """Verdict, stage and documents of one run."""
    found = diagnose(Case(result, **more)).finding
    return found.verdict, found.stage, found.documents


def diagnosis(result: RunResult, **more: Any) -> Diagnosis:
    return diagnose(Case(result, **more))


def selecting(kept: tuple[str, ...] = ("d2", "d3"), **more: Any) -> Stage:
    """A stage that keeps the best two by a score."""
    return stage(
        "selection",
        IDS,
        kept,
        scores={"raw": dict(zip(IDS, (5.0, 4.0, 3.0, 2.0, 1.0), strict=True)), "s": SCORES},
        **more,
    )


def call(index: int, stage_name: str, output: str) -> ModelCall:
    return ModelCall(
        index=index,
        stage=stage_name,
        role="answer",
        purpose="generate",
        prompt="p",
        prompt_hash="h",
        output=output,
        cost=Cost(),
    )


def test_dropped_with_score_rank_and_what_took_its_place() -> None:
    result = run("Graz", selecting(reasons={"d1": "rank 4"}), whole("answer", ("d2", "d3")))
    found = diagnosis(result)
    assert (found.finding.verdict, found.finding.stage, found.finding.documents) == ("dropped", "selection", ("d1",))
    (lost,) = found.finding.detail["lost"]
    assert lost == {
        "stage": "selection",
        "document": "d1",
        "signal": "s",
        "score": 0.2,
        "status": "ok",
        "rank": 4,
        "of": 5,
        "threshold": None,
        "margin": None,
        "instead": ["d2", "d3"],
        "reason": "rank 4",
    }
    assert found.also == ()


def test_the_signal_with_a_threshold_decides() -> None:
    result = run("Graz", selecting(thresholds={"raw": 5.5}), whole("answer", ("d2", "d3")))
    (lost,) = diagnosis(result).finding.detail["lost"]
    assert (lost["signal"], lost["score"], lost["rank"], lost["threshold"], lost["margin"]) == (
        "raw",
        5.0,
        1,
        5.5,
        -0.5,
    )


def test_dropped_by_the_overflow_rule_before_any_stage() -> None:
    result = run("Graz", whole("answer", ("d2", "d3")), overflow="drop_last")
    found = diagnosis(result).finding
    assert (found.verdict, found.stage, found.documents) == ("dropped", "", ("d1",))
    assert "drop_last" in found.detail["lost"][0]["reason"]


@pytest.mark.parametrize(
    "documents",
    [(), tuple(d.model_copy(update={"gold": False}) for d in DOCUMENTS[1:])],
    ids=["closed book", "no gold"],
)
def test_gold_not_in_input(documents: tuple[Document, ...]) -> None:
    item = QUESTION.with_documents(documents)
    assert verdict(run("Graz", whole("answer", item.document_ids), item=item)) == ("gold_not_in_input", "", ())


def test_without_marks_nothing_is_said_about_evidence() -> None:
    item = QUESTION.with_documents(tuple(d.model_copy(update={"gold": None}) for d in DOCUMENTS))
    assert verdict(run("Graz", whole(), item=item)) == ("evidence_unknown", "answer", ())


def cited(
    documents: tuple[str, ...], *, seen: tuple[str, ...] = IDS, answer: str = "Graz", **more: Any
) -> dict[str, Any]:
    """A run in which one agent reads documents and cites some, and a judge reads those."""
    scores: dict[str, Any] = {"cited": {d: float(d in documents) for d in seen}}
    scores = more.pop("scores", scores)
    return {
        "stages": (
            stage("ranking", IDS, seen, scores={"fused": SCORES}),
            stage("agent", seen, documents, scores=scores, calls={"cited": dict.fromkeys(seen, 0)}),
            stage(
                "candidates", IDS, documents or ("d2",), scores={"citations": {d: float(d in documents) for d in IDS}}
            ),
            whole("judge", documents or ("d2",)),
        ),
        "opinions": (
            voice("agent", answer, documents, call=0, **more),
            voice("judge", "Graz", documents or ("d2",), call=1, chosen=True),
        ),
    }


def test_kept_not_cited() -> None:
    assert verdict(run(**cited(("d2",)))) == ("kept_not_cited", "agent", ("d1",))
    assert verdict(run(**cited(()))) == ("kept_not_cited", "agent", ("d1",))


def test_what_no_agent_read_was_dropped_before_and_not_left_uncited() -> None:
    assert verdict(run(**cited(("d2",), seen=("d2", "d3")))) == ("dropped", "ranking", ("d1",))


def test_cited_by_one_of_two_agents_and_pruned_later() -> None:
    parts = cited(("d1", "d2"))
    pruned = stage(
        "pruning", ("d1", "d2"), ("d2",), scores={"score": {"d1": 0.3, "d2": 0.9}}, thresholds={"score": 0.5}
    )
    stages = (*parts["stages"][:3], pruned, whole("judge", ("d2",)))
    found = diagnosis(run(**{**parts, "stages": stages})).finding
    assert (found.verdict, found.stage) == ("dropped", "pruning")
    assert found.detail["lost"][0]["margin"] == pytest.approx(-0.2)


def test_parse_failure_of_the_reply_that_decided() -> None:
    unread = {"cited": dict.fromkeys(IDS, "parse_error")}
    found = diagnosis(run(**cited((), scores=unread, status="parse_error")))
    assert (found.finding.verdict, found.finding.stage, found.finding.documents) == ("parse_failure", "agent", ("d1",))
    assert (found.finding.detail["lost"][0]["status"], found.also) == ("parse_error", ())
    scored = {"s": {**SCORES, "d1": "out_of_range"}}
    dropped = stage("selection", IDS, ("d2", "d3"), scores=scored)
    assert verdict(run("Graz", dropped, whole("answer", ("d2", "d3")))) == ("parse_failure", "selection", ("d1",))


def test_parse_failure_of_the_answer() -> None:
    judge = voice("judge", "Graz", IDS, chosen=True, status="truncated")
    assert verdict(run("Graz", whole("judge"), opinions=(judge,))) == ("parse_failure", "judge", IDS)


def test_overruled() -> None:
    found = diagnosis(run(**cited(("d2",), answer="In Vienna")))
    assert (found.finding.verdict, found.finding.stage, found.also) == ("overruled", "judge", ("kept_not_cited",))
    assert found.finding.detail["right"] == [{"role": "agent", "title": "agent", "group": "", "answer": "In Vienna"}]


def test_another_treatment_was_right_unless_something_nearer_explains_it() -> None:
    beside = (
        voice("treatment", "Vienna", ("d1",), group="other"),
        voice("treatment", "Graz", ("d2",), group="own", chosen=True),
        voice("reading", "Vienna", ("d1",)),
    )
    side = stage("comparison", IDS, IDS, branch=ASIDE)
    stages = (selecting(), whole("answer", ("d2", "d3")), side)
    found = diagnosis(run("Graz", *stages, opinions=beside))
    assert (found.finding.verdict, found.finding.documents, found.also) == ("overruled", ("d1",), ("dropped",))
    only_read = (beside[1], beside[2])
    assert verdict(run("Graz", *stages, opinions=only_read))[0] == "dropped", (
        "a reading of what was dropped did not vote"
    )


def ballots(*answers: str, winner: str) -> dict[str, Any]:
    """Documents read alone whose readings vote with falling weights."""
    kept = IDS[: len(answers)]
    return {
        "stages": (
            stage("selection", IDS, kept),
            stage(
                "extraction",
                kept,
                [d for d, a in zip(kept, answers, strict=True) if a == winner],
                calls={"w": {d: i for i, d in enumerate(kept)}},
            ),
        ),
        "opinions": tuple(
            voice("reader", answer, (d,), chosen=bool(winner) and answer == winner, weight=3.0 - i, call=i)
            for i, (d, answer) in enumerate(zip(kept, answers, strict=True))
        ),
    }


def test_vote_split() -> None:
    found = diagnosis(run("Graz", **ballots("Vienna", "Graz", "Graz", winner="Graz"))).finding
    assert (found.verdict, found.stage, found.documents) == ("vote_split", "extraction", ("d1",))
    assert (found.detail["right_weight"], found.detail["winning_weight"], found.detail["ballots"]) == (3.0, 3.0, 3)


def test_a_document_whose_reading_lost_the_vote_was_read() -> None:
    assert verdict(run("Graz", **ballots("Linz", "Graz", "Graz", winner="Graz"))) == (
        "read_but_wrong",
        "extraction",
        ("d1",),
    )


def test_no_vote_at_all_is_no_answer() -> None:
    assert verdict(run("", **ballots("", "", winner=""))) == ("unanswered", "extraction", ())


def test_wrong_extraction_from_reasoning_and_from_the_raw_reply() -> None:
    thinking = voice("judge", "Graz", IDS, chosen=True, reasoning="Document 1 says Vienna, so Graz.")
    found = diagnosis(run("Graz", whole("judge"), opinions=(thinking,))).finding
    assert (found.verdict, found.stage, found.detail["where"], found.detail["found"]) == (
        "wrong_extraction",
        "judge",
        "reasoning",
        ["Vienna"],
    )
    plain = run("The city is", whole())
    assert verdict(plain)[0] == "read_but_wrong", "result lines have no raw reply"
    replies = (call(0, "selection", "Vienna"), call(1, "answer", "The city is\nVienna."))
    assert verdict(plain, replies=replies)[:2] == ("wrong_extraction", "answer")
    assert verdict(plain, replies=replies[:1])[0] == "read_but_wrong", "only the final stage's reply became the answer"


def test_a_mention_is_a_whole_word_and_no_yes() -> None:
    assert mentioned("It is in Vienna.", "vienna")
    assert not mentioned("The Viennese", "Vienna")
    assert not mentioned("no document says so", "no")
    assert not mentioned("anything", "the")


def summary(mass: tuple[float, ...], name: str = "answer") -> AttentionSummary:
    return AttentionSummary(
        stage=name, layers=1, heads=1, retrieval_heads=(), head_mass={}, document_mass=dict(zip(IDS, mass, strict=True))
    )


def test_kept_not_attended() -> None:
    result = run("Graz", whole(), attention_summary=(summary((0.1, 0.2, 0.2, 0.2, 0.2)),))
    found = diagnosis(result).finding
    assert (found.verdict, found.stage, found.documents) == ("kept_not_attended", "answer", ("d1",))
    assert found.detail == {
        "mean": pytest.approx(0.18),
        "of": 5,
        "documents": [{"document": "d1", "mass": 0.1, "rank": 5}],
    }
    even = run("Graz", whole(), attention_summary=(summary((0.2,) * 5),))
    assert verdict(even)[0] == "read_but_wrong"


def test_the_last_attention_over_the_evidence_counts_and_none_beside_the_way() -> None:
    low, high = summary((0.1, 0.2, 0.2, 0.2, 0.2), "first"), summary((0.9, 0.1, 0.1, 0.1, 0.1), "second")
    assert verdict(run("Graz", whole(), attention_summary=(low, high)))[0] == "read_but_wrong"
    side = stage("first", IDS, IDS, branch=ASIDE)
    assert verdict(run("Graz", whole(), side, attention_summary=(low,)))[0] == "read_but_wrong"


def test_unanswered() -> None:
    error = RunError(type="PromptTooLong", message="too long", stage="Answer")
    failed = run("", status="failed", error=error)
    found = diagnosis(failed).finding
    assert (found.verdict, found.stage, found.detail["error"]) == ("unanswered", "Answer", "too long")
    assert verdict(run("", whole())) == ("unanswered", "answer", ())
    assert diagnosis(run("Unknown.", whole())).finding.detail == {"status": "ok", "abstained": True}
    lost = run("unknown", selecting(), whole("answer", ("d2", "d3")))
    assert diagnosis(lost).finding.verdict == "dropped", "without the evidence, saying so is no fault of the reader"
    assert diagnosis(lost).also == ("unanswered",)


def test_metric_mismatch_comes_first() -> None:
    found = diagnosis(run(**cited(("d2",), answer="Vienna")), accepted=True)
    assert (found.finding.verdict, found.also) == ("metric_mismatch", ("overruled", "kept_not_cited"))


def test_read_but_wrong_is_said_only_alone() -> None:
    found = diagnosis(run("Graz", whole()))
    assert (found.finding.verdict, found.finding.documents, found.also) == ("read_but_wrong", ("d1",), ())
    assert diagnosis(run("Graz")).finding.verdict == "read_but_wrong", "a run without a ledger read what it was given"


def test_how_much_of_the_evidence_is_needed() -> None:
    both = Question(
        id="q",
        question="Where?",
        answers=("Vienna",),
        documents=tuple(d.model_copy(update={"gold": d.id in ("d1", "d2")}) for d in DOCUMENTS),
    )
    result = run("Graz", selecting(), whole("answer", ("d2", "d3")), item=both)
    assert verdict(result) == ("dropped", "selection", ("d1",))
    assert diagnosis(result).finding.detail["lost"][0]["instead"] == ["d3"], "the other evidence took nobody's place"
    assert verdict(result, need="any") == ("read_but_wrong", "answer", ("d1", "d2"))


def test_all_required_answers() -> None:
    item = QUESTION.model_copy(update={"answers": ("Vienna", "Graz"), "meta": {"wrong_answers": ["Linz"]}})
    parts = [run(answer, whole(), item=item) for answer in ("Vienna and Graz", "Vienna", "Vienna, Graz, Linz")]
    found = diagnose_all(parts, metric="set")
    assert (found.right, [d.answer for d in found.items]) == (1, ["Vienna", "Vienna, Graz, Linz"])
    assert [d.finding.verdict for d in found.items] == ["read_but_wrong"] * 2


def test_every_wrong_answer_has_one_verdict_and_the_counts_add_up() -> None:
    unanswerable = QUESTION.model_copy(update={"answers": ()})
    results = [
        run("Vienna", whole(), id="a"),
        run("Graz", whole(), id="b"),
        run("Graz", selecting(), whole("answer", ("d2", "d3")), id="c"),
        run("Wien", whole(), id="d"),
        run("Graz", whole(), id="e", item=unanswerable),
        run("Graz", whole(), id="f", item=unanswerable),
        run("Graz", whole(), id="g", item=unanswerable),
        run("", status="cancelled", id="h"),
    ]
    found = diagnose_all(results, labels={"d": True, "f": True, "g": False})
    assert (found.right, found.without_answers) == (2, 1)
    assert [(d.run, d.finding.verdict) for d in found.items] == [
        ("b", "read_but_wrong"),
        ("c", "dropped"),
        ("d", "metric_mismatch"),
        ("g", "read_but_wrong"),
        ("h", "unanswered"),
    ]
    assert list(found.counts) == list(VERDICTS)
    assert sum(found.counts.values()) == len(found.items)
    assert found.right + found.without_answers + len(found.items) == len(results)


def test_the_line_is_json_of_plain_values() -> None:
    line = diagnosis(run("Graz", selecting(), whole("answer", ("d2", "d3")))).to_line()
    assert list(line) == ["id", "run", "method", "verdict", "stage", "doc_ids", "answer", "detail", "also"]
    assert (line["id"], line["doc_ids"], line["also"]) == ("q", ["d1"], [])
