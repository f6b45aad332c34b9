"""What changed against the run before: both answers, what was done, and what that did to documents and decisions."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.differences.records import (
    DecisionChange,
    Differences,
    DocumentChange,
    OptionChange,
    RouteChange,
    SignalChange,
    StageChange,
)
from mdqa.records import DocumentScore, Opinion
from mdqa.trace import ModelCall
from ui.forms import spelled
from ui.views.costs import COSTS, amount
from ui.views.ledger import STATUS_WORDS, STEERED, signal_words
from ui.views.markup import DASH, badge, count, details, element, number, plural, seconds, short, table, text
from ui.views.summary import option_words

FEW = 8
"""Changed documents that are shown at once; with more of them the table is folded."""

MOST_SIGNALS = 3
MOST_SCORES = 600
"""Lines of the table of all scores."""


def differences_panel(found: Differences, calls: Sequence[ModelCall] = ()) -> str:
    """The panel. ``calls``: those of the later run, of which some may have been answered from memory."""
    link = text("a", "the run before", href=f"?run={found.before}")
    parts = [
        element("h3", "What changed against " + link),
        _answers(found),
        _done(found),
        _documents(found),
        _decisions(found.decisions, found.route),
        _cost(found, calls),
    ]
    return element("section", "".join(parts), "mdqa-differences", aria_label="What changed", data_testid="change")


def _answers(found: Differences) -> str:
    before = _answer("Before", found.answer_before, found.correct_before)
    after = _answer("Now", found.answer_after, found.correct_after)
    if not found.answer_changed and found.answer_after.strip():
        words, kind = "The same answer", ""
    elif found.flipped:
        words, kind = ("Wrong became right", "good") if found.correct_after else ("Right became wrong", "bad")
    else:
        words, kind = "Another answer", "warn"
    return element("div", before + after, "answers") + element("p", badge(words, kind), "mdqa-badges")


def _answer(title: str, answer: str, correct: bool | None) -> str:
    sign = "" if correct is None else badge("✓ Correct", "good") if correct else badge("× Not correct", "bad")
    said = text("p", short(answer, 400) or DASH, "said", dir="auto")
    return element("div", text("span", title, "mdqa-label") + sign + said)


def _done(found: Differences) -> str:
    """What the person changed."""
    items = "".join(text("li", words, dir="auto") for words in found.interventions)
    items += "".join(element("li", text("span", _option(change), "changed")) for change in found.options)
    if not items:
        return text("p", "No document and no option is different.", "mdqa-quiet")
    return element("ul", items, "done")


def _option(change: OptionChange) -> str:
    name = spelled(change.name)
    return f"{name[:1].upper()}{name[1:]} {option_words(change.before)} → {option_words(change.after)}"


# Documents --------------------------------------------------------------------------------------------------------


def _documents(found: Differences) -> str:
    if not found.documents:
        return ""
    notable = sorted((d for d in found.documents if _notable(d)), key=_weight)
    rest = len(found.documents) - len(notable)
    summary = f"Documents: {_moved(found)}"
    rows = [_row(document) for document in notable]
    inner = table(["Document", "Given", "Reached the answer", "On its way"], rows, "changes") if rows else ""
    if rest:
        inner += text("p", f"{plural(rest, 'document')} took the same way as before.", "mdqa-note")
    return details(text("span", summary), inner + _scores(found), "mdqa-more", opened=0 < len(rows) <= FEW)


def _notable(document: DocumentChange) -> bool:
    """Whether more than numbers changed."""
    own = document.added or document.removed or document.moved or document.edited
    return own or document.reached_before != document.reached_after or any(s.kept_changed for s in document.stages)


def _weight(document: DocumentChange) -> tuple[int, int]:
    """Documents that somebody changed first, then those that newly reach the answer or do not any more."""
    own = document.added or document.removed or document.moved or document.edited
    kind = 0 if own else 1 if document.reached_before != document.reached_after else 2
    return kind, document.number_after or document.number_before or 0


def _moved(found: Differences) -> str:
    """Numbers of the documents that reached the answer, or were steered towards, in one of the two runs only."""
    words = []
    for what, before, after in (
        ("kept", _ids(found, "reached_before"), _ids(found, "reached_after")),
        ("steered towards", _steered(found, "before"), _steered(found, "after")),
    ):
        for word, changed in (("now", after - before), ("no longer", before - after)):
            numbers = sorted(d.number_after or d.number_before or 0 for d in found.documents if d.id in changed)
            if numbers:
                words.append(f"{word} {what} {', '.join(map(str, numbers))}")
    return " · ".join(words) or "the same ones reached the answer"


def _ids(found: Differences, name: str) -> set[str]:
    return {document.id for document in found.documents if getattr(document, name)}


def _steered(found: Differences, when: str) -> set[str]:
    def of(document: DocumentChange) -> bool:
        signals = (signal for stage in document.stages for signal in stage.signals if signal.signal == STEERED)
        scores: list[DocumentScore | None] = [getattr(signal, when) for signal in signals]
        return any(score is not None and bool(score.value) for score in scores)

    return {document.id for document in found.documents if of(document)}


def _row(document: DocumentChange) -> list[str]:
    star = badge("★ gold", "gold") if document.gold else ""
    name = text("span", short(document.title, 60), dir="auto")
    return [f"{name} {star}", _given(document), _reached(document), _way(document)]


def _given(document: DocumentChange) -> str:
    if document.removed:
        return badge(f"off (was {document.number_before})", "warn")
    if document.added:
        return badge(f"new: {document.number_after}", "good")
    numbers = str(document.number_after)
    if document.number_before != document.number_after:
        numbers = f"{document.number_before} → {document.number_after}"
    marks = (badge("moved", "warn") if document.moved else "") + (badge("edited", "warn") if document.edited else "")
    return text("span", numbers) + (" " + marks if marks else "")


def _reached(document: DocumentChange) -> str:
    before, after = ("yes" if reached else "no" for reached in (document.reached_before, document.reached_after))
    if document.added:
        return text("span", after)
    if document.removed or before == after:
        return text("span", f"before: {before}" if document.removed else before)
    return text("strong", f"{before} → {after}")


def _way(document: DocumentChange) -> str:
    """The first stage that now keeps or drops it, then the signals in which its rank changed most.

    A rank that changed by one is left to the table of scores: one document less moves all behind it.
    """
    if document.added or document.removed:
        return ""
    turned = next((stage for stage in document.stages if stage.kept_changed), None)
    lines = [f"{turned.title}: {_kept(turned, 'before')} → {_kept(turned, 'after')}"] if turned else []
    ranked = [
        (abs(signal.rank_after - signal.rank_before), signal)
        for stage in document.stages
        for signal in stage.signals
        if signal.rank_before is not None and signal.rank_after is not None
    ]
    best = sorted(ranked, key=lambda pair: -pair[0])[:MOST_SIGNALS]
    lines += [
        f"{signal_words(signal.signal)}: rank {signal.rank_before} → {signal.rank_after}"
        for by, signal in best
        if by > 1
    ]
    return "".join(text("div", line) for line in lines)


def _kept(stage: StageChange, when: str) -> str:
    place = getattr(stage, when)
    if place is None:
        return "not there"
    return f"number {place.position}" if place.position is not None else "dropped"


def _scores(found: Differences) -> str:
    """Every score that changed, folded."""
    rows = [
        [
            text("span", f"{document.number_after}. {short(document.title, 40)}", dir="auto"),
            text("span", stage.title),
            text("span", signal_words(signal.signal)),
            *_numbers(signal),
        ]
        for document in found.documents
        if not (document.added or document.removed)
        for stage in document.stages
        for signal in stage.signals
        if signal.changed
    ]
    if not rows:
        return ""
    headers = ["Document", "Stage", "Signal", "Before", "Now", "Change", "Rank"]
    note = f" (the first {count(MOST_SCORES)})" if len(rows) > MOST_SCORES else ""
    summary = text("span", f"{plural(len(rows), 'score')} changed{note}")
    return details(summary, table(headers, rows[:MOST_SCORES], "scores"), "mdqa-more")


def _numbers(signal: SignalChange) -> list[str]:
    delta = signal.delta
    change = DASH if delta is None else ("+" if delta > 0 else "") + number(delta)
    ranks = [DASH if rank is None else str(rank) for rank in (signal.rank_before, signal.rank_after)]
    rank = ranks[0] if ranks[0] == ranks[1] else " → ".join(ranks)
    return [text("span", part) for part in (_score(signal.before), _score(signal.after), change, rank)]


def _score(score: DocumentScore | None) -> str:
    if score is None:
        return DASH
    return number(score.value) if score.value is not None else STATUS_WORDS[score.status]


# Decisions and cost -----------------------------------------------------------------------------------------------


def _decisions(changed: Sequence[DecisionChange], route: RouteChange | None) -> str:
    lines = []
    if route is not None:
        before, after = (routing.title if routing else DASH for routing in (route.before, route.after))
        took = f"Treatment: {before} → {after}" if route.treatment_changed else f"Treatment: {after}, as before"
        measures = ", ".join(f"{name} {number(old)} → {number(new)}" for name, old, new in route.measures)
        lines.append(text("li", took + (f" ({measures})" if measures else "")))
    for change in changed:
        words = f"{_voice(change.before)} → {_voice(change.after)}"
        lines.append(element("li", text("strong", change.name) + " " + text("span", words, dir="auto")))
    if not lines:
        return ""
    summary = text("span", f"Decisions: {plural(len(lines), 'change')}")
    return details(summary, element("ul", "".join(lines), "decided"), "mdqa-more", opened=len(lines) <= FEW)


def _voice(opinion: Opinion | None) -> str:
    if opinion is None:
        return "did not speak"
    said = f"“{short(opinion.answer, 120)}”" if opinion.answer.strip() else STATUS_WORDS.get(opinion.status, DASH)
    more = [plural(len(opinion.documents), "document") + " cited"] if len(opinion.documents) > 1 else []
    more += [f"weight {number(opinion.weight)}"] if opinion.weight is not None else []
    more += ["chosen"] if opinion.chosen else []
    return said + (f" ({', '.join(more)})" if more else "")


def _cost(found: Differences, calls: Sequence[ModelCall]) -> str:
    before, after = found.cost_before, found.cost_after
    rows = [[text("span", label), amount(before, name), amount(after, name)] for name, label in COSTS.items()]
    said = [f"{seconds(before.seconds)} → {seconds(after.seconds)}"]
    if found.reused is not None:
        said.append(f"{int(100 * found.reused)}% of the prompt tokens reused")  # 100% only where it is all of them
    known = sum(c.cost.cached_tokens == c.cost.prompt_tokens and c.cost.remembered_calls > 0 for c in calls)
    if known:
        said.append(f"{known} of {plural(len(calls), 'model call')} answered from memory")
    inner = table(["", "Before", "Now"], rows, "costs")
    return details(text("span", "Cost: " + " · ".join(said)), inner, "mdqa-more")
