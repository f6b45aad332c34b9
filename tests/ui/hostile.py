"""Records whose every text is markup, and what must hold of a page that shows them."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

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

EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>\'"><b onclick=alert(3)> ${alert(4)} {{7*7}} `'

OURS = {
    *("article", "details", "div", "header", "section", "summary"),
    *("h2", "h3", "h4", "h5", "p", "pre", "dd", "dl", "dt", "li", "ol", "ul"),
    *("a", "b", "button", "em", "i", "mark", "s", "small", "span", "strong"),
    *("caption", "table", "tbody", "td", "th", "thead", "tr"),
    *("circle", "g", "path", "rect", "svg", "text", "title"),
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
