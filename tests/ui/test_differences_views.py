"""The panel that sets a run against the one before: answers, what was done, documents, decisions, cost."""

from __future__ import annotations

import re
from typing import Any

from mdqa.differences.comparing import differences
from mdqa.interventions import Edit, Move, SwitchOff, apply
from mdqa.records import Cost, Opinion, Question, Routing, RunResult
from mdqa.trace import ModelCall
from tests.test_differences import run, stage
from tests.ui.helpers import question
from ui.views.differences import differences_panel

Q = question(4)
EVIL = '<img src=x onerror="alert(1)">'


def panel(before: RunResult, after: RunResult, calls: tuple[ModelCall, ...] = ()) -> str:
    return differences_panel(differences(before, after), calls)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def call(index: int, **cost: Any) -> ModelCall:
    given = {"stage": "s", "role": "r", "purpose": "generate", "prompt": "p", "prompt_hash": "h"}
    return ModelCall(index=index, cost=Cost(llm_calls=1, **cost), **given)


def test_both_answers_with_right_and_wrong() -> None:
    html = panel(run(answer="9 km"), run(answer="2 km", id="b"))
    assert 'href="?run=a"' in html and 'data-testid="change"' in html
    assert "Before × Not correct 9 km" in words(html) and "Now ✓ Correct 2 km" in words(html)
    assert "Wrong became right" in html
    assert "Right became wrong" in panel(run(answer="2 km"), run(answer="9 km"))
    assert "Another answer" in panel(run(answer="9 km"), run(answer="8 km"))
    assert "The same answer" in panel(run(), run())
    stopped = panel(run(), run(answer="", status="cancelled"))
    assert "Now –" in words(stopped) and "Another answer" in stopped


def test_what_was_done_is_listed() -> None:
    before = run(Q, config={"delta": 2.5649493574615367, "m1": 4, "k1": 4})
    after = run(apply(Q, [SwitchOff(document="d3")]), config={"delta": 9.0, "m1": 2, "k1": 4})
    said = words(panel(before, after))
    assert "Switched off document 3 “Title 3”" in said
    assert "Delta 2.56495 → 9" in said and "M1 4 → 2" in said and "K1" not in said
    assert "No document and no option is different" in panel(before, before)


def test_documents_that_somebody_changed_come_first_and_the_rest_is_counted() -> None:
    before = run(Q, stage(("d1", "d2"), {"d1": 0.75, "d2": 0.5, "d3": 0.25, "d4": 0.125}))
    steps = (SwitchOff(document="d4"), Move(document="d3", position=1), Edit(document="d1", title="New", text="x"))
    after = run(apply(Q, steps), stage(("d3", "d2"), {"d1": 0.125, "d2": 0.5, "d3": 1.0}))
    html = panel(before, after)
    said = words(html)
    assert "Documents: now kept 1 · no longer kept 2" in said
    rows = [words(row) for row in re.findall(r"<tr>(.*?)</tr>", html.split("changes")[1].split("</table>")[0])[1:]]
    assert rows == [
        "Title 3 3 → 1 moved no → yes Ranking: dropped → number 1 semantic relevance (sim): rank 3 → 1",
        "New 1 → 2 edited yes → no Ranking: number 1 → dropped semantic relevance (sim): rank 1 → 3",
        "Title 4 off (was 4) before: no",
    ]
    assert "1 document took the same way as before" in said
    assert "2 scores changed" in said and "1.000 +0.750 3 → 1" in said and "0.125 −0.625 1 → 3" in said


def test_many_changed_documents_are_folded() -> None:
    many = question(20)
    reverse = [Move(document=f"d{i}", position=1) for i in range(2, 21)]
    assert "<details" in panel(run(many), run(apply(many, reverse)))
    assert " open>" not in panel(run(many), run(apply(many, reverse)))
    assert " open>" in panel(run(many), run(apply(many, reverse[:1])))


def test_decisions_and_the_route_are_listed() -> None:
    route = Routing(treatment="sda", title="Score-guided", reason="r", measures={"rho": 0.25})
    judge = Opinion(role="judge", title="Judge", answer="2 km", chosen=True)
    other = judge.model_copy(update={"answer": "", "status": "parse_error", "chosen": False, "weight": 0.5})
    moved = route.model_copy(update={"treatment": "pde", "title": "Vote", "measures": {"rho": 0.5}})
    said = words(panel(run(routing=route, opinions=(judge,)), run(routing=moved, opinions=(other,))))
    assert "Decisions: 2 changes" in said
    assert "Treatment: Score-guided → Vote (rho 0.250 → 0.500)" in said
    assert "Judge “2 km” (chosen) → reply could not be read (weight 0.500)" in said
    assert "did not speak → “2 km” (chosen)" in words(panel(run(), run(opinions=(judge,))))
    assert "Decisions" not in panel(run(opinions=(judge,)), run(opinions=(judge,)))


def test_the_cost_says_what_was_reused() -> None:
    after = run(cost=Cost(llm_calls=2, prompt_tokens=200, cached_tokens=199, seconds=0.5))
    calls = (
        call(0, prompt_tokens=100, cached_tokens=100, remembered_calls=1),
        call(1, prompt_tokens=100, cached_tokens=99, remembered_calls=1),
        call(2, prompt_tokens=100, cached_tokens=100),  # what another prompt of the same run had computed
    )
    said = words(panel(run(), after, calls))
    assert "Cost: 0.00 s → 0.50 s · 99% of the prompt tokens reused · 1 of 3 model calls answered from memory" in said
    assert "reused" not in panel(run(), run()) and "from memory" not in panel(run(), after)


def test_markup_stays_text() -> None:
    item = Question(id=EVIL, question=EVIL, documents=tuple(d.model_copy(update={"title": EVIL}) for d in Q.documents))
    voice = Opinion(role=EVIL, title=EVIL, answer=EVIL)
    ranked = stage(("d1",), dict.fromkeys(("d1", "d2"), 0.5)).model_copy(update={"title": EVIL})
    before = run(item, ranked, answer=EVIL, config={EVIL: EVIL}, id=EVIL)
    after = run(apply(item, [SwitchOff(document="d1")]), opinions=(voice,), answer=EVIL * 2)
    html = panel(before, after)
    assert "<img" not in html and "&lt;img" in html
