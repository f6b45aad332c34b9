"""What each of MADARA's treatments would have done with the question: documents kept, answer, right or wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.records import Opinion, Question, RunResult
from mdqa.scoring.answers import normalize
from ui.views.ledger import STATUS_WORDS, right
from ui.views.markup import DASH, badge, element, escape, plural, short, table, text

ROLE = "treatment"
"""Role of an opinion that is a treatment's outcome."""

MAX_CHIPS = 24


@dataclass(frozen=True)
class Offer:
    """A way to carry out the other treatments: what the button says, what it costs, the option it sets."""

    label: str
    words: str
    compare: str


def outcomes(run: RunResult) -> list[Opinion]:
    """The treatments' outcomes, the run's own first."""
    return sorted((o for o in run.opinions if o.role == ROLE), key=lambda o: not o.chosen)


def treatments_panel(run: RunResult, offers: Sequence[Offer]) -> str:
    """The table, or what can be done to get one; empty where the method has no treatments."""
    found = outcomes(run)
    if not found and not offers:
        return ""
    parts = [text("h3", "What each treatment would have done")]
    parts.append(outcome_table(run, found) if found else text("p", _INVITATION, "mdqa-note"))
    parts.extend(
        element("p", text("strong", offer.label) + ": " + escape(offer.words), "mdqa-note offer") for offer in offers
    )
    return element("section", "".join(parts), "mdqa-panel", data_testid="treatments")


_INVITATION = (
    "Only the chosen treatment was carried out. The others can be tried on the same question with the same options and "
    "seed, in a new run that is set against this one."
)


def outcome_table(
    run: RunResult,
    found: Sequence[Opinion],
    noun: str = "treatment",
    headers: Sequence[str] = ("Treatment", "Documents, best first", "Answer"),
) -> str:
    """Outcomes with their documents and answers, set against the chosen one. ``noun``: what each of them is."""
    question = run.question
    chosen = next((outcome for outcome in found if outcome.chosen), None)
    rows = [
        [_name(outcome), _documents(outcome, chosen, question), _answer(outcome, chosen, question)] for outcome in found
    ]
    note = text("p", _summary(found, chosen, question, noun), "mdqa-note")
    legend = element("p", "".join(_LEGEND), "mdqa-legend") if chosen is not None else ""
    return note + table(headers, rows, "treatments") + legend


def _key(words: str, classes: str, meaning: str, name: str = "span") -> str:
    return element("span", text(name, words, f"mdqa-doc {classes}".strip()) + escape(meaning))


_LEGEND = (
    _key("3", "", "kept"),
    _key("3★", "gold", "gold"),
    _key("+3", "plus", "the chosen one leaves it out"),
    _key("3", "minus", "only the chosen one keeps it", "s"),
)


def _summary(found: Sequence[Opinion], chosen: Opinion | None, question: Question, noun: str) -> str:
    """How many are right, whether the chosen one is among them; without known answers, how many agree with it."""
    if question.answers:
        good = [outcome for outcome in found if right(outcome.answer, question)]
        words = f"{len(good)} of {plural(len(found), noun)} give the expected answer"
        if chosen is None or not good:
            return words + "."
        return words + ("; the chosen one is among them." if chosen in good else "; the chosen one is not among them.")
    different = Counter(normalize(outcome.answer) for outcome in found)
    words = f"{plural(len(found), noun)}, {plural(len(different), 'answer')}"
    same = different[normalize(chosen.answer)] - 1 if chosen is not None else 0
    if chosen is None:
        return words + "."
    return f"{words}; {plural(same, f'other {noun} agrees', f'other {noun}s agree')} with the chosen one."


def _name(outcome: Opinion) -> str:
    mark = badge("✓ chosen", "good") if outcome.chosen else ""
    title = element("span", text("strong", outcome.title) + " " + mark, "name")
    return title + (text("span", short(outcome.reasoning, 240), "mdqa-quiet how") if outcome.reasoning else "")


def _documents(outcome: Opinion, chosen: Opinion | None, question: Question) -> str:
    """Numbers of the documents kept; the gold ones starred; added and missing ones against the chosen treatment."""
    numbers = {document.id: number for number, document in enumerate(question.documents, 1)}
    gold = set(question.gold_ids)
    if outcome.documents == question.document_ids and len(numbers) > 1:
        starred = ", ".join(f"{numbers[d]}★" for d in question.gold_ids)
        words = f"all {len(numbers)}, as given" + (f" ({starred} gold)" if starred else "")
        return text("span", words, "mdqa-docs")
    against = set(chosen.documents) if chosen is not None else set(outcome.documents)
    kept = [d for d in outcome.documents if d in numbers]
    chips = [_chip(numbers[d], d in gold, "" if d in against else "plus") for d in kept[:MAX_CHIPS]]
    if len(kept) > MAX_CHIPS:
        chips.append(text("span", f"and {len(kept) - MAX_CHIPS} more", "mdqa-quiet"))
    missing = [d for d in question.document_ids if d in against and d not in outcome.documents]
    chips += [_chip(numbers[d], d in gold, "minus") for d in missing[:MAX_CHIPS]]
    return element("span", "".join(chips) or DASH, "mdqa-docs")


_CHIP_TITLES: Mapping[str, str] = {
    "": "kept",
    "plus": "kept here, left out by the chosen one",
    "minus": "left out here, kept by the chosen one",
}


def _chip(number: int, gold: bool, kind: str) -> str:
    words = ("+" if kind == "plus" else "") + str(number) + ("★" if gold else "")
    classes = " ".join(part for part in ("mdqa-doc", "gold" if gold else "", kind) if part)
    title = f"document {number}{', gold' if gold else ''}: {_CHIP_TITLES[kind]}"
    return text("s" if kind == "minus" else "span", words, classes, title=title)


def _answer(outcome: Opinion, chosen: Opinion | None, question: Question) -> str:
    said = outcome.answer.strip()
    parts = [text("span", short(said, 200) if said else "no answer", "said" if said else "said none", dir="auto")]
    if outcome.status != "ok":
        parts.append(badge(STATUS_WORDS[outcome.status], "warn"))
    if question.answers and outcome.status == "ok":
        parts.append(badge("✓ right", "good") if right(said, question) else badge("× wrong", "bad"))
    if chosen is not None and not outcome.chosen:
        same = normalize(said) == normalize(chosen.answer)
        parts.append(text("span", "same as chosen" if same else "differs", "mdqa-quiet"))
    return element("span", " ".join(parts), "mdqa-said")
