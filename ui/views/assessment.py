"""MADARA's scores by agent and document, before and after reasoning side by side, and the reply behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.records import Document, DocumentScore, Opinion, RunResult, Stage
from mdqa.scoring.losses import own_stages
from mdqa.trace import ModelCall
from ui.views.ledger import STATUS_WORDS, rank_of, right, signal_words
from ui.views.markup import DASH, badge, element, escape, number, plural, short, text

STAGE = "assessment"
"""The stage that scores documents for the chosen treatment; others begin with this name and an underscore."""

AGENTS = ("relevance", "consistency", "conflict")
"""Signals of the agents, from 0 to 5; the others are worked out from them, or rank without an agent."""

TOP = 5.0
LEVELS = 5

HEADS: Mapping[str, str] = {
    "relevance": "Relevance",
    "consistency": "Consistency",
    "conflict": "Conflict",
    "aggregate": "Weighted",
    "rank_aligned": "Rank-aligned",
    "similarity": "Similarity",
    "likelihood": "Likelihood",
}

BRIEF: Mapping[str, str] = {"relevance": "Rel.", "consistency": "Cons.", "conflict": "Confl.", "rank_aligned": "Ranks"}
"""Heads of columns where two assessments stand side by side."""

SHORT_STATUS: Mapping[str, str] = {
    "parse_error": "unread",
    "out_of_range": "off scale",
    "truncated": "cut off",
    "timeout": "too slow",
    "unavailable": "none",
}

PRESS_CELL = """
element.addEventListener("click", (event) => {
  const cell = event.target.closest("[data-call]");
  if (!cell) return;
  for (const other of element.querySelectorAll("[data-call]")) other.ariaPressed = String(other === cell);
  trigger("select", { call: Number(cell.dataset.call), document: cell.dataset.document });
});
"""
"""A click on a score asks the server for the reply behind it: the page holds only the one that is looked at."""


def assessments(run: RunResult) -> list[Stage]:
    """The stages that gave scores to documents for MADARA's treatments, the ones without reasoning first."""
    found = [stage for stage in run.stages if stage.name == STAGE or stage.name.startswith(f"{STAGE}_")]
    return sorted((stage for stage in found if stage.scores), key=reasoned)


def reasoned(stage: Stage) -> bool:
    """Whether the agents reasoned before they graded (CoT)."""
    return stage.name.endswith("_cot") or stage.title.endswith("after reasoning")


def score_table(run: RunResult, calls: Mapping[int, ModelCall]) -> str:
    """Documents by signals, the kept ones first in their order; empty where no document was assessed.

    A score that a model call is behind is a button with that call's index; what has none shows its status.
    """
    stages = assessments(run)
    if not stages:
        return ""
    selection = next((stage for stage in own_stages(run.stages) if stage.name == "selection"), None)
    used = _used(run, selection)
    intro = text("h3", "Scores by agent and document") + _failures(run, stages, calls) + _legend(run, stages)
    alone = read_alone(run)
    rows = [
        _row(run, document, place, stages, selection, calls, alone)
        for place, document in enumerate(_order(run.question.documents, selection), 1)
    ]
    head = _head(stages, used, selected=selection is not None, alone=bool(alone))
    wide = " two" if len(stages) > 1 else ""
    grid = f'<table class="mdqa-table grid{wide}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    inner = intro + element("div", grid, "mdqa-scroll tall", tabindex="0")
    return element("section", inner, "mdqa-panel", data_testid="scores")


def _used(run: RunResult, selection: Stage | None) -> tuple[str, str]:
    """Stage and signal that the selection went by; empty where nothing was selected by score."""
    if selection is None:
        return ("", "")
    scored = [name for name, scores in selection.scores.items() if any(s.value is not None for s in scores.values())]
    source = next((s.name for s in own_stages(run.stages) if s.name == STAGE), "")
    return (source, scored[0]) if scored else ("", "")


def _order(documents: Sequence[Document], selection: Stage | None) -> list[Document]:
    """Kept documents in their order, then the others by falling score; as given where nothing was selected."""
    if selection is None:
        return list(documents)
    places = {document: place for place, document in enumerate(selection.kept)}
    scores = next(iter(selection.scores.values()), {})

    def key(document: Document) -> tuple[int, float]:
        score = scores.get(document.id)
        value = score.value if score is not None else None
        behind = len(places) + (value is None)
        return (places.get(document.id, behind), 0.0 if value is None else -value)

    return sorted(documents, key=key)


def _head(stages: Sequence[Stage], used: tuple[str, str], *, selected: bool, alone: bool) -> str:
    first = '<th scope="col" class="what" rowspan="2">Document</th>'
    first += '<th scope="col" rowspan="2">Kept</th>' if selected else ""
    groups, names = "", ""
    brief = len(stages) > 1
    for stage in stages:
        title = _group(stage)
        groups += text("th", title, "group", scope="colgroup", colspan=len(stage.scores))
        for position, signal in enumerate(stage.scores):
            decides = (stage.name, signal) == used
            words = BRIEF.get(signal) if brief else None
            label = ("● " if decides else "") + (words or HEADS.get(signal, signal_words(signal)))
            classes = " ".join(["edge"] * (position == 0) + ["used"] * decides)
            title = signal_words(signal) + (": decides what is kept" if decides else "")
            names += text("th", label, classes, scope="col", title=title)
    last = text("th", "Read alone", "edge", scope="col", rowspan="2", title="what the generator answers from it alone")
    return f"<tr>{first}{groups}{last if alone else ''}</tr><tr>{names}</tr>"


def _group(stage: Stage) -> str:
    if not any(agent in stage.scores for agent in AGENTS):
        return stage.title
    return "After reasoning (CoT)" if reasoned(stage) else "Without reasoning"


def _row(
    run: RunResult,
    document: Document,
    place: int,
    stages: Sequence[Stage],
    selection: Stage | None,
    calls: Mapping[int, ModelCall],
    alone: Mapping[str, Opinion],
) -> str:
    given = run.question.document_ids.index(document.id) + 1
    star = text("span", "★", "star", title="gold: holds the evidence") if document.gold else ""
    title = text("span", short(document.title or document.text, 60), "title", dir="auto")
    cells = element("th", element("span", f"{given}{star} {title}", "line"), "what", scope="row")
    classes = ""
    if selection is not None:
        kept = document.id in selection.kept
        reason = selection.reasons.get(document.id, "")
        words = f"✓ {selection.kept.index(document.id) + 1}" if kept else "×"
        cells += text("td", words, "kept" if kept else "gone", title=reason or None)
        classes = "cut" if place == len(selection.kept) < len(run.question.documents) else ""
    before: Mapping[str, DocumentScore] | None = None
    for stage in stages:
        for position, (signal, scores) in enumerate(stage.scores.items()):
            index = stage.calls.get(signal, {}).get(document.id)
            call = calls.get(index) if index is not None else None
            against = before if signal == "aggregate" or len(stages) == 1 else None
            shift = _shift(against, scores, document.id) if signal not in AGENTS else ""
            cell = _cell(signal, scores, document.id, call, shift, given)
            cells += element("td", cell, "edge" if position == 0 else "")
            if signal == "aggregate" or (signal not in AGENTS and before is None):
                before = scores
    if alone:
        cells += element("td", _reading(run, alone.get(document.id), calls, given), "edge")
    return element("tr", cells, classes)


def _cell(
    signal: str,
    scores: Mapping[str, DocumentScore],
    document_id: str,
    call: ModelCall | None,
    shift: str,
    given: int,
) -> str:
    score = scores[document_id]
    if score.value is None:
        words, level = SHORT_STATUS[score.status], "status"
        about = f"{signal_words(signal)}: {STATUS_WORDS[score.status]}"
        inner = escape(words)
        title = f"{STATUS_WORDS[score.status]}: {score.detail}" if score.detail else STATUS_WORDS[score.status]
    else:
        level, inner = f"s{_level(signal, score.value, scores)}", escape(figure(signal, score.value)) + shift
        about, title = f"{signal_words(signal)} {figure(signal, score.value)}", ""
    if call is None:
        return element("span", inner, f"cell {level}", title=title or None)
    label = f"{about}, document {given}: show the reply"
    return element(
        "button",
        inner,
        f"cell {level}",
        type="button",
        data_call=call.index,
        data_document=document_id,
        aria_pressed="false",
        aria_label=label,
        title=title or None,
    )


def read_alone(run: RunResult) -> dict[str, Opinion]:
    """What was read from each document by itself, by PDE's vote or to compare treatments."""
    found = [o for o in run.opinions if o.role in ("extractor", "reading") and len(o.documents) == 1]
    return {opinion.documents[0]: opinion for opinion in found}


def _reading(run: RunResult, found: Opinion | None, calls: Mapping[int, ModelCall], given: int) -> str:
    """The answer from one document alone, coloured by whether it is right where that is known."""
    if found is None:
        return DASH
    good = right(found.answer, run.question)
    kind = "" if good is None or found.status != "ok" else " good" if good else " bad"
    mark = "" if not kind else "✓ " if good else "× "
    words = text("span", mark + short(found.answer or "no answer", 36), dir="auto")
    call = calls.get(found.call) if found.call is not None else None
    if call is None:
        return element("span", words, f"cell said{kind}")
    label = f"document {given} alone: {found.answer or 'no answer'}: show the reply"
    about = {"data_call": call.index, "data_document": found.documents[0]}
    return element("button", words, f"cell said{kind}", type="button", aria_pressed="false", aria_label=label, **about)


def figure(signal: str, value: float) -> str:
    """A score for people: an agent's grade without needless decimals, others with two."""
    return f"{value:g}" if signal in AGENTS else number(value, 2)


def _level(signal: str, value: float, scores: Mapping[str, DocumentScore]) -> int:
    """0 to LEVELS: on the scale of 0 to 5, or between the lowest and the highest where a signal has another scale."""
    if signal in (*AGENTS, "aggregate", "rank_aligned"):
        return round(min(max(value / TOP, 0.0), 1.0) * LEVELS)
    known = [score.value for score in scores.values() if score.value is not None]
    low, high = min(known), max(known)
    return round((value - low) / (high - low) * LEVELS) if high > low else 0


def _shift(before: Mapping[str, DocumentScore] | None, scores: Mapping[str, DocumentScore], document_id: str) -> str:
    """The rank by this signal, and how many places that is up or down against the one before."""
    now = rank_of(scores, document_id)
    then = rank_of(before, document_id) if before is not None and document_id in before else None
    moved = then - now if then is not None and now is not None else 0
    arrow = f" ▲{moved}" if moved > 0 else f" ▼{-moved}" if moved < 0 else ""
    title = f"rank {then} before, {now} now" if moved else f"rank {now}"
    return text("small", f"#{now}{arrow}", "up" if moved > 0 else "down" if moved < 0 else "", title=title)


def _failures(run: RunResult, stages: Sequence[Stage], calls: Mapping[int, ModelCall]) -> str:
    """How many replies had to be asked for again, and how many could not be read at all, by agent."""
    lost = []
    for stage in stages:
        for signal in AGENTS:
            scores, behind = stage.scores.get(signal, {}), stage.calls.get(signal, {})
            bad = [d for d, s in scores.items() if s.value is None and s.status != "unavailable"]
            if bad:
                replies, of = (len({behind.get(d, d) for d in some}) for some in (bad, scores))
                after = " after reasoning" if reasoned(stage) and len(stages) > 1 else ""
                lost.append(f"{HEADS[signal]}{after}: {replies} of {plural(of, 'reply', 'replies')} could not be read")
    labels = [badge(words, "warn") for words in lost]
    again = sum(call.attempt > 1 and call.stage.startswith(STAGE) for call in calls.values())
    if again:
        labels.append(badge(f"{plural(again, 'reply', 'replies')} asked for a second time", "warn"))
    elif run.parse_failures and not lost and not calls:
        labels.append(badge(f"{plural(run.parse_failures, 'reply', 'replies')} could not be read at first", "warn"))
    if not labels and any(signal in stage.scores for stage in stages for signal in AGENTS):
        labels.append(badge("✓ every reply could be read", "good"))
    return element("div", "".join(labels), "mdqa-badges", data_testid="failures")


def _legend(run: RunResult, stages: Sequence[Stage]) -> str:
    words = []
    if any(agent in stage.scores for stage in stages for agent in AGENTS):
        agents = "Relevance, Consistency and Conflict Agents" if len(stages) > 1 else "Agents"
        words.append(f"{agents} grade from 0 to 5; press a grade to read the reply behind it.")
    weights = [run.config.get(f"{agent}_weight") for agent in AGENTS]
    if any("aggregate" in stage.scores for stage in stages) and all(isinstance(w, int | float) for w in weights):
        words.append("Weighted: " + " + ".join(f"{w:g} {a}" for w, a in zip(weights, AGENTS, strict=True)) + ".")
    words.append(
        "● decides what is kept. #1 is the best rank; ▲ and ▼: places up and down against the weighted score before."
    )
    return text("p", " ".join(words), "mdqa-note")
