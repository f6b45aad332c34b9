"""Views with records whose every text is hostile: nothing may come out as markup; and what the pictures must show."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest

import ui.views.documents as documents_view
from mdqa.backends.catalog import ModelCard
from mdqa.records import (
    Alternative,
    AttentionMap,
    Cost,
    Document,
    DocumentScore,
    Opinion,
    Question,
    Routing,
    RunError,
    RunResult,
    Stage,
    TokenHeat,
)
from mdqa.trace import ModelCall
from storage.queues import QueueItem
from ui.views.assessment import score_table
from ui.views.documents import (
    CARDS,
    MAX_TEXT,
    card_page,
    document_cards,
    marked_text,
    place_change,
    score_bar,
    token_heat,
)
from ui.views.duquad import duquad_panel
from ui.views.flow import evidence_flow
from ui.views.heads import head_distribution, heads_by_document, heads_intro
from ui.views.ledger import duplicates, fates, rank_of
from ui.views.live import Snapshot, StageView, live_panel
from ui.views.markup import number, plain, seconds
from ui.views.models import ModelStatus, model_card, model_status, obstacles
from ui.views.preview import Refusal, preview, problems
from ui.views.prompts import prompt_list
from ui.views.queued import queued_in
from ui.views.reply import reply_view
from ui.views.routing import decisions
from ui.views.summary import result_head
from ui.views.treatments import Offer, treatments_panel
from ui.views.voices import voices

EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>\'"><b onclick=alert(3)> ${alert(4)} {{7*7}} `'

OURS = {
    *("a", "article", "b", "button", "caption", "circle", "dd", "details", "div", "dl", "dt", "em", "g", "h2", "h3"),
    *(
        "h4",
        "h5",
        "header",
        "i",
        "li",
        "mark",
        "ol",
        "p",
        "path",
        "pre",
        "rect",
        "s",
        "section",
        "small",
        "span",
        "strong",
    ),
    *("summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul"),
}
"""The only elements that views make; an img or a script can only come from a record."""


class Markup(HTMLParser):
    """Collects what a browser would see as elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Markup:
    markup = Markup()
    markup.feed(html)
    markup.close()
    return markup


def assert_harmless(html: str) -> Markup:
    """Only our elements, no handlers, no addresses but our own; the hostile text is there as text."""
    markup = parsed(html)
    assert set(markup.tags) <= OURS, set(markup.tags) - OURS
    for name, value in markup.attributes:
        assert not name.startswith("on"), (name, value)
        assert name not in ("src", "srcdoc", "formaction"), (name, value)
        assert name != "href" or value.startswith(("?run=", "#mdqa-document-")), value
        assert name != "style" or "url" not in value, value
    return markup


def hostile_run() -> RunResult:
    """A run whose question, documents, ids, titles, reasons, answers, notices and names are all markup."""
    docs = tuple(
        Document(id=f"{EVIL}{i}", title=f"{EVIL} title {i}", text=f"First. {EVIL} Second {i}.", gold=i == 0)
        for i in range(3)
    )
    ids = tuple(document.id for document in docs)
    scores = {ids[0]: DocumentScore(value=0.5), ids[1]: DocumentScore(status="parse_error", detail=EVIL)}
    scores[ids[2]] = DocumentScore(value=-0.25)
    stage = Stage(
        name=EVIL,
        title=EVIL,
        documents=ids,
        kept=ids[:2],
        scores={EVIL: scores},
        reasons=dict.fromkeys(ids, EVIL),
        calls={EVIL: {ids[0]: 0}},
        key_sentences={ids[0]: (EVIL,)},
        thresholds={EVIL: 0.1},
        note=EVIL,
    )
    opinions = (
        Opinion(role="local", title=EVIL, answer=EVIL, reasoning=EVIL, documents=ids[:2]),
        Opinion(role="judge", title=EVIL, answer=EVIL, reasoning=EVIL, chosen=True, status="truncated"),
        Opinion(role="vote", title=EVIL, answer=EVIL, documents=ids[:1], weight=1.5, group=EVIL, chosen=True),
    )
    routing = Routing(
        treatment=EVIL,
        title=EVIL,
        reason=EVIL,
        model_class=EVIL,
        coupling=EVIL,
        measures={EVIL: 0.4, "other": None},
        thresholds={EVIL: 0.3},
        margins={EVIL: 0.1},
        alternatives=(Alternative(threshold=EVIL, value=0.2, treatment=EVIL),),
        note=EVIL,
    )
    return RunResult(
        id=EVIL,
        question=Question(id=EVIL, question=EVIL, answers=(EVIL,), documents=docs),
        method=EVIL,
        model=EVIL,
        backend=EVIL,
        status="failed",
        created="2026-01-01T00:00:00+00:00",
        seed=0,
        answer=EVIL,
        stages=(stage,),
        opinions=opinions,
        routing=routing,
        notices=(EVIL,),
        config={EVIL: EVIL},
        profile=EVIL,
        error=RunError(type=EVIL, message=EVIL, stage=EVIL),
    )


def hostile_call() -> ModelCall:
    return ModelCall(
        index=0, stage=EVIL, role=EVIL, purpose="generate", documents=(EVIL,), prompt=EVIL, prompt_hash=EVIL,
        output=EVIL, finish_reason="length", cost=Cost(), parse="parse_error", attempt=2,
    )  # fmt: skip


def hostile_map(run: RunResult) -> AttentionMap:
    ids = run.question.document_ids
    heat = TokenHeat(
        heads=((0, 1),),
        texts=tuple(EVIL for _ in ids),
        document=np.array([0, 0, 1, 2]),
        spans=np.array([[0, 5], [5, 30], [0, len(EVIL)], [3, 9]]),
        weights=np.array([[0.5, 0.25, 1.0, 0.1]]),
    )
    mass = np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 12
    return AttentionMap(EVIL, EVIL, ids, mass, retrieval_heads=((0, 1),), model_layers=2, heat=heat)


def hostile_assessment(run: RunResult) -> RunResult:
    """The hostile run as MADARA would leave it: an assessment, a selection, readings and treatments."""
    stage = run.stages[0]
    scores = dict.fromkeys(("relevance", "aggregate", EVIL), stage.scores[EVIL])
    graded = stage.model_copy(
        update={"name": "assessment", "scores": scores, "calls": {"relevance": stage.calls[EVIL]}}
    )
    selected = stage.model_copy(update={"name": "selection"})
    ids = run.question.document_ids
    opinions = [
        Opinion(role="treatment", title=EVIL, answer=EVIL, reasoning=EVIL, documents=ids[:2], chosen=True, group=EVIL),
        Opinion(role="treatment", title=EVIL, answer="", documents=ids[1:], group=EVIL, status="parse_error"),
        Opinion(role="reading", title=EVIL, answer=EVIL, documents=ids[:1], call=0),
    ]
    return run.model_copy(update={"stages": (graded, selected), "opinions": (*run.opinions, *opinions)})


def hostile_agents(run: RunResult) -> RunResult:
    """The hostile run as DuQUAD would leave it: agents, judge, DocScores, ablations."""
    stage, ids = run.stages[0], run.question.document_ids
    scored = stage.model_copy(
        update={
            "name": "doc_score",
            "scores": {"DocScore": stage.scores[EVIL], "DocScore_written": stage.scores[EVIL]},
            "calls": {"DocScore": {ids[0]: 0}},
            "thresholds": {"DocScore": 0.7},
        }
    )
    local = Opinion(role="local_agent", title=EVIL, answer=EVIL, reasoning=EVIL, documents=(*ids[:2], EVIL), call=0)
    said = [
        local,
        local.model_copy(update={"role": "global_agent", "answer": EVIL + "!", "status": "parse_error"}),
        local.model_copy(update={"role": "judge", "chosen": True}),
        local.model_copy(update={"role": "ablation", "chosen": True, "group": EVIL}),
    ]
    reading = stage.model_copy(update={"name": "local_agent", "documents": ids[:2], "kept": ids[:1], "scores": {}})
    return run.model_copy(update={"stages": (reading, scored), "opinions": said})


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


def test_prompts_that_were_not_kept_are_told_from_none() -> None:
    assert "No model calls" in prompt_list(())
    assert "30 calls came with a result file" in prompt_list((), made=30)


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


def test_views_know_no_gradio() -> None:
    source = inspect.getsource(documents_view)
    assert "gradio" not in source


def test_maps_of_large_models_stay_below_a_megabyte() -> None:
    ids = tuple(f"d{i}" for i in range(50))
    documents = tuple(Document(id=i, title=f"Title {i}", text="text") for i in ids)
    generator = np.random.default_rng(0)
    attention = AttentionMap("s", "s", ids, generator.random((32, 32, 50), dtype=np.float32), ((3, 4), (31, 31)))
    for figure in (head_distribution(attention, documents, (3, 4)), heads_by_document(attention, documents)):
        assert isinstance(figure, go.Figure)
        assert len(figure.to_json()) < 1_000_000


def test_cells_of_many_documents_do_not_vanish_between_gaps() -> None:
    for n, gap in ((20, 1), (200, 0)):
        ids = tuple(f"d{i}" for i in range(1, n + 1))
        documents = tuple(Document(id=i, text="text", gold=i == "d7") for i in ids)
        attention = AttentionMap("s", "s", ids, np.ones((2, 2, n), dtype=np.float32), ((1, 1),))
        figure = heads_by_document(attention, documents)
        assert figure.data[0].xgap == gap
        assert list(figure.data[0].x[5:8]) == ["6", "7★", "8"]


def small_run() -> RunResult:
    docs = tuple(Document(id=f"d{i}", text=f"text {i}", gold=i == 3) for i in range(1, 5))
    scored = {"d1": 0.1, "d2": 0.9, "d3": 0.9, "d4": 0.2}
    first = Stage(
        name="rank",
        title="Ranking",
        documents=("d1", "d2", "d3", "d4"),
        kept=("d3", "d2"),
        scores={"s": {k: DocumentScore(value=v) for k, v in scored.items()}},
        reasons={"d1": "below the bar"},
    )
    second = Stage(name="read", title="Reading", documents=("d3", "d2"), kept=("d2",))
    return RunResult(
        id="r", question=Question(id="q", question="?", documents=docs), method="m", model="m", backend="b",
        status="ok", created="2026-01-01T00:00:00+00:00", seed=0, answer="a", stages=(first, second),
    )  # fmt: skip


def test_fates_follow_the_ledger() -> None:
    found = fates(small_run())
    assert [fate.document.id for fate in found] == ["d2", "d3", "d1", "d4"]
    assert [fate.reached for fate in found] == [True, False, False, False]
    assert [fate.dropped for fate in found] == [None, 1, 0, 0]
    assert found[2].reason == "below the bar"


def test_flow_has_a_mark_per_stage_and_says_why() -> None:
    markup = assert_harmless(evidence_flow(small_run()))
    classes = [value for name, value in markup.attributes if name == "class" and value.startswith("mark ")]
    assert sum("start" in c for c in classes) == 4
    assert sum("dropped" in c for c in classes) == 3
    assert sum("answer" in c for c in classes) == 1
    assert "below the bar" in markup.text


def many(n: int) -> RunResult:
    """A run over n documents of which the stage keeps the last five in reverse; the first and the tenth are gold."""
    docs = tuple(Document(id=f"d{i}", title=f"Title {i}", text=f"text {i}", gold=i in (1, 10)) for i in range(1, n + 1))
    ids = tuple(document.id for document in docs)
    scores = {key: DocumentScore(value=float(i)) for i, key in enumerate(ids)}
    stage = Stage(
        name="rank", title="Ranking", documents=ids, kept=ids[: -6 : -1], scores={"s": scores},
        reasons=dict.fromkeys(ids[:-5], "ranked below the bar"),
    )  # fmt: skip
    return small_run().model_copy(
        update={"question": Question(id="q", question="?", documents=docs), "stages": (stage,)}
    )


def test_of_many_documents_the_ones_that_matter_are_drawn_and_the_others_counted() -> None:
    html = evidence_flow(many(200))
    starts = re.findall(r'class="mark start[^>]*data-number="(\d+)"', html)
    assert len(starts) == 30 and {"1", "10", "196", "200"} <= set(starts)
    assert "170 more documents dropped in Ranking: " in html
    assert_inside(html)
    small = evidence_flow(many(60))
    assert len(re.findall(r'class="mark start', small)) == 60 and "more documents" not in small


def assert_inside(html: str) -> None:
    """No mark stands outside the picture."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', html)
    assert size is not None
    for x, y in re.findall(r"translate\(([\d.]+),([\d.]+)\)", html):
        assert 0 < float(x) < int(size[1]) and 0 < float(y) < int(size[2])


def test_the_picture_is_one_stop_for_the_keyboard_and_every_mark_has_a_name() -> None:
    html = evidence_flow(small_run())
    marks = re.findall(r'<g class="mark[^>]*>(?:<title>)?', html)
    assert sum('tabindex="0"' in mark for mark in marks) == 1
    assert all(mark.endswith("<title>") and 'role="img"' in mark for mark in marks)


def test_cards_come_page_by_page() -> None:
    run = many(200)
    first, last = document_cards(run, {}), document_cards(run, {}, first=180)
    assert first.count('<details class="mdqa-card') == CARDS == 30
    assert last.count('<details class="mdqa-card') == 20
    assert 'id="mdqa-document-200"' in first and 'title="place 200 in the final order">200<' in last
    assert document_cards(run, {}, first=999).count('<details class="mdqa-card') == 1
    assert [card_page(run, number) for number in (200, 196, 1, 195, 0, None, "1")] == [0, 0, 0, 180, 0, 0, 0]


def test_a_card_says_the_place_at_every_stage_and_how_it_moved() -> None:
    html = document_cards(many(20), {})
    words = parsed(html).text
    assert "given as 20Ranking 20 → 1 ▲4" in words  # the last one of five becomes the first of them
    assert "given as 18Ranking 18 → 3" in words and "18 → 3 ▲" not in words
    assert "given as 16Ranking 16 → 5 ▼4" in words
    assert "given as 3Ranking 3 → ×" in words
    assert "passed on as number 1 of 5; among those passed on it moved up by 4" in html
    moves = [place_change(many(20).stages[0], f"d{i}") for i in (16, 17, 18, 19, 20)]
    assert moves == [-4, -2, 0, 2, 4]


def test_ties_share_the_better_rank() -> None:
    scores = small_run().stages[0].scores["s"]
    assert [rank_of(scores, key) for key in ("d1", "d2", "d3", "d4")] == [4, 1, 1, 3]


def test_duplicates_point_to_the_first() -> None:
    docs = [Document(id="a", text="Same  text"), Document(id="b", text="other"), Document(id="c", text="same text\n")]
    assert duplicates(docs) == {"c": 1}


def test_key_sentences_are_marked_once_and_overlaps_do_not_break_the_text() -> None:
    document = Document(id="d", text="One two three. Four five.")
    html = marked_text(document, ("One two three.", "two three.", "absent"))
    assert html.count("<mark") == 1
    assert parsed(html).text == document.text


def test_key_sentences_behind_the_cut_are_shown() -> None:
    document = Document(id="d", text="Begin. " + "x" * MAX_TEXT + " The end holds it. More.")
    html = marked_text(document, ("Begin.", "The end holds it.", "absent"))
    assert html.count("<mark") == 2 and parsed(html).text.endswith("The end holds it. … 14 more characters")


def test_token_heat_keeps_the_text() -> None:
    run = hostile_run()
    for html in token_heat(hostile_map(run), (0, 1)).values():
        assert assert_harmless(html).text == EVIL


def test_a_longer_bar_is_a_better_score() -> None:
    def width(values: list[float], value: float) -> float:
        found = re.search(
            r"left:([\d.]+)%;width:([\d.]+)%", score_bar(value, {str(v): DocumentScore(value=v) for v in values})
        )
        assert found is not None
        return float(found[2])

    assert width([0.2, 0.8], 0.8) == 100 and width([0.2, 0.8], 0.2) == 25
    assert width([-3.0, -2.0, -1.0], -1.0) == 100 and width([-3.0, -2.0, -1.0], -2.0) == 50  # log-likelihoods
    assert width([-1.0, 1.0], -1.0) == 50  # from zero to the left


def test_bars_stand_under_their_stage_and_counts_have_no_decimals() -> None:
    run = small_run()
    cited = Stage(
        name="agent", title="Agent reads", documents=("d1", "d2"), kept=("d2",),
        scores={"cited": {"d1": DocumentScore(value=0.0), "d2": DocumentScore(value=1.0)}},
    )  # fmt: skip
    text = assert_harmless(document_cards(run.model_copy(update={"stages": (*run.stages, cited)}), {})).text
    assert "Ranking" in text and "Agent readscited11 of 2" in text and "0.9001 of 4" in text


def test_refusals_say_whether_anything_is_left() -> None:
    assert "the others are kept" in problems([Refusal("line 1", "is broken")])
    assert "the others" not in problems([Refusal("line 1", "is broken")], others=False)
    assert "the others" not in preview((), [Refusal("line 1", "is broken")])


def test_numbers_have_one_look() -> None:
    assert number(0.5) == "0.500"
    assert number(-0.25) == "−0.250"
    assert number(1e-7) == "1.0e−07"
    assert number(float("nan")) == number(None) == "–"
    assert seconds(0.123) == "0.12 s"
    assert seconds(185) == "3 min 05 s"
    assert plain("<b>a & b</b>") == "‹b›a ＆ b‹/b›"


def test_documents_that_attention_was_steered_towards_are_ringed() -> None:
    plain = small_run()
    last = plain.stages[-1]
    scores = {d: DocumentScore(value=float(d == "d2")) for d in last.documents}
    steered = plain.model_copy(
        update={"stages": (*plain.stages[:-1], last.model_copy(update={"scores": {"steered": scores}}))}
    )
    assert evidence_flow(steered).count('class="towards"') == 1
    assert "steered towards" in evidence_flow(steered) and "steered towards" not in evidence_flow(plain)
