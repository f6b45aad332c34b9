"""Leave one out on runs built by hand: what is compared, what is correlated, and what is said where nothing can be."""

from __future__ import annotations

import json

import pytest

from mdqa.errors import InputError
from mdqa.interventions import done_to
from mdqa.records import AttentionSummary, Cost, Routing, RunError, RunResult
from mdqa.studies.base import Tally, attention_mass, spent
from mdqa.studies.leave_one_out import LeaveOneOut, leave_one_out, rank_correlation, variants
from mdqa.studies.lines import leave_one_out_line
from tests.diagnosis.builders import IDS, QUESTION, run, stage, voice

MASS = {"d1": 0.1, "d2": 0.5, "d3": 0.2, "d4": 0.05, "d5": 0.15}


def summary(mass: dict[str, float], heads: dict[str, dict[str, float]] | None = None) -> AttentionSummary:
    return AttentionSummary(
        stage="rank", layers=2, heads=2, retrieval_heads=(), document_mass=mass, head_mass=heads or {}
    )


def ranked(scores: dict[str, float], kept: tuple[str, ...]) -> object:
    return stage("rank", tuple(scores), kept, scores={"sim": scores, "other": dict.fromkeys(scores, 1.0)})


def base(answer: str = "Graz", **more: object) -> RunResult:
    scores = {"d1": 0.9, "d2": 0.8, "d3": 0.3, "d4": 0.2, "d5": 0.1}
    values = {"attention_summary": (summary(MASS),), "id": "base", **more}
    return run(answer, ranked(scores, ("d1", "d2")), **values)  # type: ignore[arg-type]


def member(left_out: str, answer: str, scores: dict[str, float] | None = None, **more: object) -> RunResult:
    known = scores or {name: 0.5 for name in IDS if name != left_out}
    item = next(v.question for v in variants(base()) if v.key == left_out)
    top = sorted(known, key=lambda name: -known[name])[:2]
    return run(answer, ranked(known, tuple(top)), item=item, id=f"without-{left_out}", **more)  # type: ignore[arg-type]


def study(**answers: str) -> LeaveOneOut:
    return leave_one_out(base(), {name: member(name, answer) for name, answer in answers.items()})


def test_every_document_is_left_out_once_and_nothing_else_changes() -> None:
    found = variants(base())
    assert [variant.key for variant in found] == list(IDS)
    for variant in found:
        assert variant.method == "some"
        assert variant.question.document_ids == tuple(name for name in IDS if name != variant.key)
        assert variant.question.question == QUESTION.question and variant.question.answers == QUESTION.answers
        for document in variant.question.documents:
            assert document == QUESTION.document(document.id)
        assert variant.question.id == QUESTION.id  # seeds are made of it
        assert done_to(variant.question)  # no table counts it as the original


def test_runs_that_cannot_be_studied_say_why() -> None:
    with pytest.raises(InputError, match="ended as 'failed'"):
        variants(base(status="failed"))
    one = QUESTION.with_documents(QUESTION.documents[:1])
    with pytest.raises(InputError, match="fewer than two documents"):
        variants(run("Graz", item=one))


def test_answers_are_compared_in_their_normal_form() -> None:
    found = study(d1="the Graz.", d2="Vienna, of course", d3="Linz")
    rows = {row.document.id: row for row in found.rows}
    assert [rows[name].same for name in IDS] == [True, False, False, None, None]
    assert (found.base.correct, rows["d2"].without.correct, rows["d3"].without.correct) == (False, True, False)
    assert (rows["d2"].sub_em_change, rows["d2"].f1_change) == (1.0, 0.5)
    assert rows["d1"].effects == {"answer": 0.0, "f1": 0.0}
    assert rows["d2"].effects == {"answer": 1.0, "f1": -0.5}  # it misled: without it F1 rises
    assert rows["d4"].effects == {} and rows["d4"].without.state == "missing"
    assert found.tally == Tally(total=5, ok=3, failed=0, stopped=0, running=0, missing=2)


def test_without_accepted_answers_only_the_answers_are_compared() -> None:
    item = QUESTION.model_copy(update={"answers": ()})
    one = base(question=item)
    other = member("d1", "Linz").model_copy(update={"question": item.with_documents(item.documents[1:])})
    found = leave_one_out(one, {"d1": other})
    assert found.rows[0].effects == {"answer": 1.0} and found.rows[0].without.correct is None
    assert {correlation.effect for correlation in found.correlations} == {"answer"}


def test_failed_and_stopped_members_are_counted_and_not_compared() -> None:
    results = {
        "d1": member("d1", "Linz"),
        "d2": member("d2", "", status="failed", error=RunError(type="ModelError", message="out of memory")),
        "d3": member("d3", "", status="cancelled"),
        "d4": member("d4", "", status="interrupted"),
        "d5": member("d5", "", status="running"),
    }
    found = leave_one_out(base(), results)
    assert found.tally == Tally(total=5, ok=1, failed=1, stopped=2, running=1, missing=0)
    assert found.rows[1].without.error == "out of memory" and found.rows[1].same is None
    assert all(row.effects == {} for row in found.rows[1:])


def test_scores_of_the_others_are_compared_by_signal() -> None:
    scores = {"d2": 0.8, "d3": 0.7, "d4": 0.2, "d5": 0.1}
    row = leave_one_out(base(), {"d1": member("d1", "Graz", scores)}).rows[0]
    first, second = row.shifts
    assert (first.stage, first.signal, first.document, first.n, first.lost) == ("rank", "sim", "d3", 4, 0)
    assert first.largest == pytest.approx(0.4) and first.mean == pytest.approx(0.1)
    assert (second.signal, second.largest, second.mean) == ("other", 0.0, 0.0)
    assert (row.gained, row.dropped) == (("d3",), ())


def test_a_score_that_came_or_went_is_counted() -> None:
    after = run(
        "Graz",
        stage("rank", ("d2", "d3"), ("d2",), scores={"sim": {"d2": "parse_error", "d3": 0.3}}),
        item=member("d1", "Graz").question,
    )
    shift = leave_one_out(base(), {"d1": after}).rows[0].shifts[0]
    assert (shift.n, shift.lost, shift.largest) == (1, 1, 0.0)


def test_route_and_judge_are_compared_where_there_are_some() -> None:
    one = base(
        routing=Routing(treatment="pde", title="PDE", reason=""), opinions=(voice("judge", "Graz", group="local"),)
    )
    other = member(
        "d1",
        "Graz",
        routing=Routing(treatment="sda", title="SDA", reason=""),
        opinions=(voice("judge", "Graz"),),
    )
    row = leave_one_out(one, {"d1": other}).rows[0]
    assert (row.route_changed, row.without.route) == (True, "SDA")
    assert (row.judge_changed, row.without.judge) == (True, "neither")
    plain = leave_one_out(base(), {"d1": member("d1", "Graz")}).rows[0]
    assert (plain.route_changed, plain.judge_changed) == (None, None)


def test_attention_is_set_against_the_effect() -> None:
    found = study(d1="Graz", d2="Linz", d3="Graz Linz", d4="Graz", d5="Graz")
    correlation = found.correlation("attention", "answer")
    # ranks of the mass 2 5 4 1 3, of the effect 0 1 1/3 0 0 with mid-ranks 2 5 4 2 2: rho by hand
    assert correlation.n == 5 and correlation.rho == pytest.approx(0.8944, abs=1e-4)
    assert [predictor.name for predictor in found.predictors] == ["attention", "rank/sim", "rank/other"]
    assert found.correlation("rank/other", "answer").rho is None
    assert "the same for every document" in found.correlation("rank/other", "answer").why
    with pytest.raises(KeyError):
        found.correlation("attention", "nothing")


def test_where_there_is_no_correlation_the_reason_is_said() -> None:
    same = study(**dict.fromkeys(IDS, "Graz")).correlation("attention", "answer")
    assert same.rho is None and "the effect is the same for every document" in same.why and same.n == 5
    few = study(d1="Graz", d2="Linz").correlation("attention", "answer")
    assert few.rho is None and few.n == 2 and "only 2" in few.why
    blind = leave_one_out(base(attention_summary=()), {})
    assert blind.mass is None and all(row.attention is None for row in blind.rows)
    assert "attention" not in {predictor.name for predictor in blind.predictors}


@pytest.mark.parametrize(
    ("first", "second", "rho"),
    [
        pytest.param([1.0, 2.0, 3.0], [1.0, 4.0, 9.0], 1.0, id="in line"),
        pytest.param([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0, id="the other way"),
        pytest.param([1.0, 1.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0], 1 / 18**0.5, id="ties"),
    ],
)
def test_rank_correlation(first: list[float], second: list[float], rho: float) -> None:
    found, why = rank_correlation(first, second)
    assert found == pytest.approx(rho) and why == ""


def test_retrieval_heads_count_before_all_heads_and_the_widest_pass_before_others() -> None:
    narrow = summary({"d1": 1.0})
    wide = summary(MASS, {"0-1": dict.fromkeys(IDS, 0.2), "1-0": {**dict.fromkeys(IDS, 0.0), "d3": 0.6}})
    found = attention_mass(base(attention_summary=(narrow, wide)))
    assert found is not None and found.heads == 2 and found.title == "rank"
    assert found.documents["d3"] == pytest.approx(0.4) and found.documents["d1"] == pytest.approx(0.1)
    every = attention_mass(base())
    assert every is not None and every.heads == 0 and dict(every.documents) == MASS
    assert attention_mass(base(attention_summary=())) is None


def test_the_study_is_json_ready() -> None:
    found = study(d1="Graz", d2="Linz", d3="Wels")
    data = json.loads(json.dumps(leave_one_out_line(found), allow_nan=False))
    assert data["tally"]["ok"] == 3 and data["rows"][0]["document"] == "d1" and data["rows"][0]["gold"] is True
    assert data["rows"][1]["without"]["cost"]["llm_calls"] == 0


def test_costs_are_summed() -> None:
    one = Cost(llm_calls=1, prompt_tokens=10, prefill_tokens_computed=4, cached_tokens=6, seconds=0.5)
    assert spent([one, one]) == Cost(
        llm_calls=2, prompt_tokens=20, prefill_tokens_computed=8, cached_tokens=12, seconds=1.0
    )
    assert spent([]) == Cost()
