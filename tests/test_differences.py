"""Two runs set against each other: what is the same, what moved, and by exactly how much."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.differences.comparing import comparable, differences
from mdqa.differences.records import Differences, DocumentChange, SignalChange
from mdqa.interventions import Duplicate, Edit, Intervention, Move, SwitchOff, apply
from mdqa.records import ASIDE, Cost, DocumentScore, Opinion, Question, Routing, RunResult, Stage
from tests.ui.helpers import question

Q = question(4)
NONE = DocumentScore(status="parse_error", detail="no JSON")


def stage(kept: tuple[str, ...], scores: dict[str, float | DocumentScore], **more: Any) -> Stage:
    table = {
        name: score if isinstance(score, DocumentScore) else DocumentScore(value=score)
        for name, score in scores.items()
    }
    return Stage(name="rank", title="Ranking", documents=tuple(scores), kept=kept, scores={"sim": table}, **more)


def run(item: Question = Q, *stages: Stage, **more: Any) -> RunResult:
    given = {
        "id": "a", "question": item, "method": "cafe", "model": "m", "backend": "b", "status": "ok",
        "created": "2026-01-01T00:00:00+00:00", "seed": 0, "answer": "1 km", "stages": stages,
    }  # fmt: skip
    return RunResult.model_validate({**given, **more})


def after(*steps: Intervention) -> RunResult:
    return run(apply(Q, steps))


def changed(found: Differences) -> list[str]:
    return [document.id for document in found.changed_documents]


def the(found: Differences, name: str) -> DocumentChange:
    return next(document for document in found.documents if document.id == name)


def test_the_same_run_has_no_difference() -> None:
    one = run(Q, stage(("d1",), {"d1": 0.5, "d2": 0.25}), opinions=(Opinion(role="judge", title="J", answer="x"),))
    found = differences(one, one)
    assert changed(found) == [] and [document.id for document in found.documents] == list(Q.document_ids)
    assert (found.options, found.interventions, found.decisions, found.route) == ((), (), (), None)
    assert not found.answer_changed and not found.flipped


def test_answers_flip_only_where_both_are_known() -> None:
    wrong, right = run(answer="9 km"), run(answer="It is 2 km.")
    found = differences(wrong, right)
    assert (found.correct_before, found.correct_after, found.flipped, found.answer_changed) == (False, True, True, True)
    assert not differences(right, right).flipped
    failed = run(answer="", status="failed")
    assert differences(wrong, failed).correct_after is None and not differences(wrong, failed).flipped
    unknown = Q.model_copy(update={"answers": ()})
    assert differences(run(unknown), run(unknown, answer="x")).flipped is False


def test_a_document_that_is_off_shifts_the_others_without_moving_them() -> None:
    found = differences(run(), after(SwitchOff(document="d2")))
    assert changed(found) == ["d2"] and the(found, "d2").removed
    assert [(d.id, d.number_before, d.number_after) for d in found.documents] == [
        ("d1", 1, 1), ("d3", 3, 2), ("d4", 4, 3), ("d2", 2, None)
    ]  # fmt: skip
    assert (the(found, "d3").shifted, the(found, "d3").moved) == (True, False)
    assert found.interventions == ("Switched off document 2 “Title 2”",)
    back = differences(after(SwitchOff(document="d2")), run())
    assert the(back, "d2").added and changed(back) == ["d2"]
    assert back.interventions == ("Put back “Title 2” as document 2",)


@pytest.mark.parametrize(
    ("step", "moved"),
    [
        pytest.param(Move(document="d1", position=4), "d1", id="first-to-last"),
        pytest.param(Move(document="d4", position=1), "d4", id="last-to-first"),
        pytest.param(Move(document="d2", position=4), "d2", id="over-two"),
    ],
)
def test_only_what_was_moved_counts_as_moved(step: Move, moved: str) -> None:
    found = differences(run(), after(step))
    assert [document.id for document in found.documents if document.moved] == [moved] == changed(found)


def test_copies_and_edits_are_seen() -> None:
    found = differences(run(), after(Duplicate(document="d2", position=1), Edit(document="d4", title="T", text="x")))
    assert changed(found) == ["d2~2", "d4"]
    assert the(found, "d2~2").added and the(found, "d2~2").gold and the(found, "d4").edited
    assert the(found, "d4").shifted and not the(found, "d4").moved


def test_scores_and_ranks_are_later_minus_earlier() -> None:
    one = run(Q, stage(("d1", "d2"), {"d1": 0.75, "d2": 0.5, "d3": 0.5, "d4": NONE}))
    two = run(Q, stage(("d3", "d1"), {"d1": 0.75, "d2": NONE, "d3": 1.0, "d4": NONE}, reasons={"d2": "no score"}))
    found = differences(one, two)
    signals = {d.id: d.stages[0].signals[0] for d in found.documents}
    assert (signals["d3"].delta, signals["d3"].rank_before, signals["d3"].rank_after) == (0.5, 2, 1)
    assert (signals["d1"].delta, signals["d1"].rank_before, signals["d1"].rank_after) == (0.0, 1, 2)
    assert signals["d2"] == SignalChange(
        signal="sim", before=DocumentScore(value=0.5), after=NONE, rank_before=2, rank_after=None
    )
    assert signals["d2"].delta is None and signals["d2"].changed and not signals["d4"].changed
    places = {d.id: (d.stages[0].before.position, d.stages[0].after.position) for d in found.documents}
    assert places == {"d1": (1, 2), "d2": (2, None), "d3": (None, 1), "d4": (None, None)}
    assert [d.id for d in found.documents if d.stages[0].kept_changed] == ["d2", "d3"]
    assert the(found, "d2").stages[0].after.reason == "no score"
    assert [(d.reached_before, d.reached_after) for d in found.documents] == [
        (True, True), (True, False), (False, True), (False, False)
    ]  # fmt: skip
    assert changed(found) == ["d1", "d2", "d3"]


def test_stages_are_paired_by_name_branch_and_number() -> None:
    own = stage(("d1",), {"d1": 1.0})
    aside = stage((), {"d1": 0.25}, branch=ASIDE)
    found = differences(run(Q, own), run(Q, aside, own, own))
    stages = the(found, "d1").stages
    assert [(s.branch, s.before is None, s.after is None) for s in stages] == [
        (ASIDE, True, False), ("", False, False), ("", True, False)
    ]  # fmt: skip
    gone = the(differences(run(Q, own, own), run(Q, own)), "d1").stages
    assert [(s.before is None, s.after is None) for s in gone] == [(False, False), (False, True)]
    assert gone[1].signals[0].after is None and gone[1].changed


def reading(document: str, answer: str, **more: Any) -> Opinion:
    return Opinion(role="extractor", title="Reading", answer=answer, documents=(document,), group=answer, **more)


def test_voices_are_told_apart_by_role_and_by_the_document_they_read() -> None:
    judge, other = (Opinion(role="judge", title="Judge", answer=answer) for answer in ("2 km", "3 km"))
    one = run(opinions=(reading("d1", "x"), reading("d2", "y"), judge))
    two = run(opinions=(reading("d2", "y"), reading("d1", "z", chosen=True), reading("d3", "x"), other))
    found = differences(one, two).decisions
    said = [(c.role, c.before and c.before.answer, c.after and c.after.answer) for c in found]
    assert said == [("extractor", "x", "z"), ("extractor", None, "x"), ("judge", "2 km", "3 km")]
    agent = Opinion(role="local_agent", title="Local", answer="x", documents=("d1",))
    cites = agent.model_copy(update={"documents": ("d2",)})
    [change] = differences(run(opinions=(agent,)), run(opinions=(cites,))).decisions
    assert change.before == agent and change.after == cites
    louder = agent.model_copy(update={"reasoning": "other words", "call": 4})
    assert differences(run(opinions=(agent,)), run(opinions=(louder,))).decisions == ()


def test_routes_options_and_costs() -> None:
    route = Routing(treatment="sda", title="SDA", reason="r", measures={"rho": 0.25, "nf": 0.5})
    cost = Cost(llm_calls=3, prompt_tokens=200, cached_tokens=150, seconds=0.5)
    one = run(routing=route, config={"k": 6, "tau": 0.4})
    two = run(
        routing=route.model_copy(update={"treatment": "pde", "measures": {"rho": 0.5, "nf": 0.5}}),
        config={"tau": 0.4, "k": 3, "new": True},
        cost=cost,
    )
    found = differences(one, two)
    assert found.route is not None and found.route.treatment_changed
    assert found.route.measures == (("rho", 0.25, 0.5),)
    assert [(o.name, o.before, o.after) for o in found.options] == [("k", 6, 3), ("new", None, True)]
    assert (found.cost_after, found.reused) == (cost, 0.75)
    assert differences(two, one).reused is None
    assert differences(one, run()).route is not None and differences(run(), run()).route is None
    assert Differences.model_validate_json(found.model_dump_json()) == found


def test_only_runs_of_one_question_and_method_are_comparable() -> None:
    assert comparable(run(), after(SwitchOff(document="d1"), Edit(document="d2", title="", text="x")))
    assert not comparable(run(), run(method="direct"))
    for other in ({"question": "Other?"}, {"answers": ("x",)}, {"id": "p"}, {"documents": question(9).documents[5:]}):
        assert not comparable(run(), run(Q.model_copy(update=other)))
