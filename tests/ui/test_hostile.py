"""Views of hostile records: nothing of them may come out as markup, and nothing may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mdqa.backends.catalog import ModelCard
from storage.queues import QueueItem
from tests.ui.hostile import (
    EVIL,
    assert_harmless,
    hostile_agents,
    hostile_assessment,
    hostile_call,
    hostile_map,
    hostile_run,
)
from ui.views.assessment import score_table
from ui.views.documents import document_cards, token_heat
from ui.views.duquad import duquad_panel
from ui.views.flow import evidence_flow
from ui.views.heads import head_distribution, heads_by_document, heads_intro
from ui.views.live import Snapshot, StageView, live_panel
from ui.views.models import ModelStatus, model_card, model_status, obstacles
from ui.views.preview import Refusal, preview, problems
from ui.views.prompts import prompt_list
from ui.views.queued import queued_in
from ui.views.reply import reply_view
from ui.views.routing import decisions
from ui.views.summary import result_head
from ui.views.treatments import Offer, treatments_panel
from ui.views.voices import voices


def hostile_html() -> Iterator[tuple[str, str]]:
    run, call = hostile_run(), hostile_call()
    attention = hostile_map(run)
    yield "result", result_head(run, method_title=EVIL, correct=False, vanilla=run, retrieved=(1, 1))
    yield "flow", evidence_flow(run)
    yield "cards", document_cards(run, {0: call}, more=EVIL)
    yield "heat", document_cards(run, {0: call}, token_heat(attention, (0, 1)))
    yield "decisions", decisions(run)
    yield "voices", voices(run)
    yield "duquad", duquad_panel(hostile_agents(run), {0: call})
    item = QueueItem(1, EVIL, EVIL, EVIL, EVIL, EVIL)
    yield "queued", queued_in([item], EVIL, "bad")
    offer = Offer(EVIL, EVIL, EVIL)
    graded = hostile_assessment(run)
    yield "treatments", treatments_panel(graded, [offer])
    yield "scores", score_table(graded, {0: call})
    yield "reply", reply_view(graded, call, {0: call.model_copy(update={"attempt": 1}), 1: call}, EVIL + "0")
    yield "heads", heads_intro(run, (), EVIL)
    yield "prompts", prompt_list([call])
    yield (
        "preview",
        preview(run.question.documents, [Refusal(EVIL, EVIL)], tokens=9000, window=8192, gold=(EVIL + "0",)),
    )
    yield "problems", problems([Refusal(EVIL, EVIL)], used=True)
    for phase in ("none", "loading", "ready", "failed"):
        yield f"status {phase}", model_status(ModelStatus(phase, EVIL, EVIL, 0.5))
    yield "card", model_card(ModelCard(EVIL, EVIL, 5, 5, "cpu", EVIL))
    yield "obstacles", obstacles([EVIL])
    snapshot = Snapshot(
        EVIL, EVIL, "running", 1.0, preparing=EVIL, stages=(StageView(EVIL, EVIL, 3), StageView(EVIL, EVIL, 3, 1, 0.5)),
        scores=((EVIL, run.stages[0].scores[EVIL]),), writing=EVIL, role=EVIL, notices=(EVIL,), error=EVIL,
    )  # fmt: skip
    yield "live", live_panel([snapshot])


@pytest.mark.parametrize(("name", "html"), [pytest.param(n, h, id=n) for n, h in hostile_html()])
def test_hostile_records_stay_text(name: str, html: str) -> None:
    assert_harmless(html)


def test_hostile_text_is_shown_and_not_dropped() -> None:
    run = hostile_run()
    assert EVIL in assert_harmless(result_head(run, method_title="DuQUAD", correct=None)).text
    assert EVIL in assert_harmless(document_cards(run, {0: hostile_call()})).text
    assert EVIL in assert_harmless(prompt_list([hostile_call()])).text


def test_plotly_labels_carry_no_markup() -> None:
    run = hostile_run()
    attention = hostile_map(run)
    figures = [
        heads_by_document(attention, run.question.documents),
        head_distribution(attention, run.question.documents, (0, 1)),
    ]
    for figure in figures:
        for text in strings(json.loads(figure.to_json())):
            rest = text.replace("<br>", "").replace("<extra>", "").replace("</extra>", "")
            assert "<" not in rest, text


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
