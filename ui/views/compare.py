"""One question, several runs side by side: answer, reply, evidence, decision and cost, in columns that stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mdqa.records import Cost, Question, RunResult, Stage
from mdqa.scoring.answers import normalize
from mdqa.scoring.losses import own_opinions, own_stages
from storage.questions import Asked
from ui.views.costs import COSTS, amount, from_memory, times
from ui.views.flow import evidence_flow
from ui.views.ledger import final_stage
from ui.views.markup import (
    DASH,
    badge,
    count,
    details,
    element,
    empty,
    message,
    plural,
    short,
    text,
)
from ui.views.summary import STATUS

EXCERPT = 320
"""Characters of a reply that are shown at first."""

MAX_REPLY = 8_000

CHIPS = 14
"""Documents that a step names by number; the others are counted."""

PICTURED = 40
"""Documents up to which a column holds the picture of its evidence flow too; the run's own page always has it."""

NO_QUESTIONS = empty(
    "No finished runs yet",
    "Ask a question on the Ask page with two methods or more; their runs can then be set side by side here.",
)
NO_MATCH = empty("No question with these words", "Search for other words, or clear the box to see all questions.")
NOTHING_CHOSEN = empty("Nothing to compare yet", "Choose a question above; its newest run of every method is taken.")


@dataclass(frozen=True)
class Offered:
    """One page of stored questions."""

    questions: tuple[Asked, ...]
    total: int
    first: int


@dataclass(frozen=True)
class Side:
    """One of the runs that stand side by side.

    ``label`` tells it apart from the others. ``reply`` is the text of the call that the answer was read from, empty
    where the run kept none; ``against`` the cost of answering directly with its run's id, None where there is none.
    """

    run: RunResult
    title: str
    label: str
    correct: bool | None
    reply: str
    against: tuple[str, Cost] | None


def question_list(found: Offered, chosen: int | None, searched: bool) -> str:
    """One page of questions as buttons; an empty state that says what to do."""
    if not found.questions:
        return NO_MATCH if searched else NO_QUESTIONS
    last = found.first + len(found.questions)
    where = f"{count(found.first + 1)} to {count(last)} of {count(found.total)}"
    note = f"Questions {where}; those with two methods or more first, the newest runs on top."
    items = "".join(element("li", _question(asked, asked.id == chosen)) for asked in found.questions)
    return text("p", note, "mdqa-note") + element("ul", items, "mdqa-questions")


def _question(asked: Asked, chosen: bool) -> str:
    about = (
        f"{plural(len(asked.methods), 'method')} · {plural(asked.runs, 'run')} · {plural(asked.documents, 'document')}"
    )
    words = text("span", short(asked.question, 150) or "(no question)", "words", dir="auto")
    inner = words + text("span", about, "mdqa-quiet")
    return element(
        "button",
        inner,
        type="button",
        data_question=asked.id,
        aria_pressed=str(chosen).lower(),
        title=asked.name or None,
    )


def side_by_side(sides: Sequence[Side]) -> str:
    """The question, what the answers have in common, and a column per run."""
    if not sides:
        return NOTHING_CHOSEN
    first = sides[0].run.question
    several = any(side.run.question.question != first.question for side in sides)
    parts = [] if several else [_asked(first)]
    if several:
        parts.append(
            message(
                "These runs answer different questions; answers, ranks and costs do not compare. “One benchmark” "
                "compares methods over many questions.",
                "warn",
            )
        )
    elif any(side.run.question.documents != first.documents for side in sides):
        parts.append(message("The runs did not read the same documents; the table below says which.", "warn"))
    if len(sides) > 1 and not several:
        parts.append(text("p", agreement(sides), "mdqa-note"))
    columns = "".join(_column(side, asked=several) for side in sides)
    parts.append(element("div", columns, "mdqa-sides"))
    return element("section", "".join(parts), "mdqa-comparison", aria_label="Runs side by side", data_testid="sides")


def agreement(sides: Sequence[Side]) -> str:
    """How many different answers there are, as SQuAD's normal form tells them apart, and how many are right."""
    given = [normalize(side.run.answer) for side in sides if side.run.answer.strip()]
    kinds = len(set(given))
    words = "No run has an answer." if not given else f"All {count(len(given))} answers are the same."
    if kinds > 1:
        words = f"{count(kinds)} different answers from {plural(len(given), 'run')}."
    elif len(given) == 1:
        words = "One run has an answer."
    known = [side.correct for side in sides if side.correct is not None]
    return f"{words} {count(sum(known))} of {count(len(known))} are right." if known else words


def _asked(question: Question) -> str:
    """The question and the answers that were expected."""
    asked = text("p", question.question, "mdqa-question", dir="auto")
    if not question.answers:
        return asked
    return asked + text("p", "Expected: " + " · ".join(question.answers), "mdqa-expected", dir="auto")


def _column(side: Side, *, asked: bool = False) -> str:
    """A run; ``asked``: with its question, where the columns have different ones."""
    run = side.run
    labels = badge(side.label, "method")
    if run.status != "ok":
        labels += badge(*STATUS[run.status])
    if side.correct is not None:
        labels += badge("✓ Correct", "good") if side.correct else badge("× Not correct", "bad")
    none = "" if run.answer.strip() else " none"
    parts = [
        element("div", labels, "mdqa-badges"),
        _asked(run.question) if asked else "",
        text("p", run.answer.strip() or "No answer", "mdqa-answer" + none, dir="auto"),
    ]
    if run.error is not None:
        parts.append(message(run.error.message, "bad"))
    parts += [_reply(side), _decision(run), _steps(run), _cost(side)]
    link = text("a", "Open this run", href=f"?run={run.id}")
    parts.append(element("p", link + text("span", run.model, "mdqa-quiet"), "mdqa-address"))
    return element("article", "".join(parts), "mdqa-side", aria_label=side.label, data_run=run.id)


def _reply(side: Side) -> str:
    """The beginning of what the model wrote, the whole of it on demand; nothing where none was kept.

    Runs from a file of results bring their answer and no calls.
    """
    if not side.reply.strip():
        return ""
    label = text("span", "The model wrote", "mdqa-label")
    if len(side.reply) <= EXCERPT:
        return label + text("pre", side.reply.strip(), "mdqa-excerpt", dir="auto")
    beginning = side.reply[:EXCERPT].rstrip() + " …"
    cut = " …" if len(side.reply) > MAX_REPLY else ""
    whole = details(
        "The whole reply", text("pre", side.reply[:MAX_REPLY] + cut, "mdqa-excerpt", dir="auto"), "mdqa-more"
    )
    return label + text("pre", beginning, "mdqa-excerpt", dir="auto") + whole


def _decision(run: RunResult) -> str:
    """The route that was taken, or who chose between which answers."""
    lines = []
    if run.routing is not None:
        lines.append(text("strong", run.routing.title) + text("span", run.routing.reason, "mdqa-reasoning", dir="auto"))
    said = [o for o in own_opinions(run) if o.role in ("local_agent", "global_agent", "judge")]
    for opinion in said:
        chosen = badge("✓ chosen", "good") if opinion.chosen else ""
        answer = text("span", short(opinion.answer, 90) or "no answer", dir="auto")
        lines.append(text("strong", f"{opinion.title}: ") + answer + " " + chosen)
    if not lines:
        return ""
    items = "".join(element("li", line) for line in lines)
    return text("span", "Decision", "mdqa-label") + element("ul", items, "mdqa-decided")


def _steps(run: RunResult) -> str:
    """The evidence flow in short: per stage how many documents went on, which ones, and the gold among them."""
    stages = [stage for stage in own_stages(run.stages) if stage.documents]
    label = text("span", "Evidence", "mdqa-label")
    if not stages:
        return label + text("p", "No stage of this run worked on documents.", "mdqa-quiet")
    last = final_stage(run.stages)
    items = "".join(_step(run, stage, reached=stage is last) for stage in stages)
    picture = ""
    if len(run.question.documents) <= PICTURED:
        picture = details("The flow as a picture", evidence_flow(run), "mdqa-more")
    return label + element("ol", items, "mdqa-steps") + picture


def _step(run: RunResult, stage: Stage, *, reached: bool) -> str:
    gold = set(run.question.gold_ids)
    numbers = {document.id: place for place, document in enumerate(run.question.documents, 1)}
    title = text("strong", stage.title)
    kept = text("span", f"{count(len(stage.kept))} of {count(len(stage.documents))} kept", "mdqa-quiet")
    labels = badge("reached the answer", "info") if reached else ""
    if gold:
        labels += badge(f"★ {len(gold & set(stage.kept))} of {len(gold)} gold", "gold")
    chips = "".join(
        text("span", numbers.get(d, "?"), "mdqa-doc" + (" gold" if d in gold else "")) for d in stage.kept[:CHIPS]
    )
    more = len(stage.kept) - CHIPS
    chips += text("span", f"and {count(more)} more", "mdqa-quiet") if more > 0 else ""
    head = element("div", f"{title} {kept} {labels}", "head")
    return element("li", head + element("div", chips or text("span", "none", "mdqa-quiet"), "mdqa-docs"))


def _cost(side: Side) -> str:
    """Cost with the ratio to answering directly, where such a run is stored."""
    against = side.against[1] if side.against is not None else None
    rows = "".join(
        element("div", text("dt", label) + element("dd", _amount(side.run.cost, against, name)))
        for name, label in COSTS.items()
    )
    note = text("p", from_memory(side.run.cost), "mdqa-note") if not side.run.cost.own_work else ""
    if side.against is not None:
        link = text("a", "answering directly", href=f"?run={side.against[0]}")
        note += element("p", f"× beside {link} from all documents, same model.", "mdqa-note")
    return text("span", "Cost", "mdqa-label") + element("dl", rows, "mdqa-costs") + note


def _amount(cost: Cost, against: Cost | None, name: str) -> str:
    shown = text("span", amount(cost, name))
    return shown if against is None else shown + text("span", times(cost, against, name) or DASH, "mdqa-quiet")
