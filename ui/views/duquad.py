"""DuQUAD: what the Local and the Global Agent said, side by side, whether they agree, and what the judge made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mdqa.methods.duquad.parsing import normalised
from mdqa.records import Document, Opinion, RunResult
from mdqa.trace import ModelCall
from ui.views.docscores import docscores
from ui.views.documents import card_link
from ui.views.ledger import STATUS_WORDS, right
from ui.views.markup import badge, element, escape, plural, short, text
from ui.views.treatments import outcome_table

AGENTS: Mapping[str, str] = {"local_agent": "Local Agent", "global_agent": "Global Agent"}
"""Roles of the agents, which are the names of their stages too, and their titles."""

ABLATION = "ablation"
"""Role of an opinion that is the outcome of the method or of one of its ablations."""

READING = (
    "Our reading, not the authors' definition: the public text of the paper gives the structure, the weights of the "
    "fused score and results, but no formula, prompt or default of τ, and no rule for replies that cannot be used. "
    "Those here are ours; alternatives are options."
)

Agreement = Literal["agree", "disagree", "one answer", "no answer", "one agent"]


@dataclass(frozen=True)
class Views:
    """The two views on a question, as far as they are there, and the judge."""

    local: Opinion | None
    everything: Opinion | None
    judge: Opinion | None

    @property
    def agents(self) -> tuple[Opinion, ...]:
        """Those agents that spoke, the Local Agent first."""
        return tuple(opinion for opinion in (self.local, self.everything) if opinion is not None)

    @property
    def agreement(self) -> Agreement:
        """Whether the agents give the same answer but for case, punctuation and articles."""
        if len(self.agents) < 2:
            return "one agent"
        answers = {normalised(opinion.answer) for opinion in self.agents}
        if "" in answers:
            return "no answer" if len(answers) == 1 else "one answer"
        return "agree" if len(answers) == 1 else "disagree"


def views_of(run: RunResult) -> Views | None:
    """The agents and the judge of a run of DuQUAD; None where no such agent spoke."""
    found = {opinion.role: opinion for opinion in run.opinions}
    views = Views(found.get("local_agent"), found.get("global_agent"), found.get("judge"))
    return views if views.agents else None


def disagree(run: RunResult) -> bool:
    """Whether the Local and the Global Agent of a run give different answers."""
    views = views_of(run)
    return views is not None and views.agreement == "disagree"


def duquad_panel(run: RunResult, calls: Mapping[int, ModelCall]) -> str:
    """Agreement, both agents, the judge, the DocScores, the ablations if carried out, and whose reading it is.

    Empty for other methods. What a model call is behind has a button with that call's index.
    """
    views = views_of(run)
    if views is None:
        return ""
    cards = "".join(_agent(run, views, role, opinion, calls) for role, opinion in _slots(views))
    inner = text("h3", "Two views and a judge") + _agreement(views)
    inner += element("div", cards, "mdqa-voices two") + _judge(run, views, calls)
    said = element("section", inner, "mdqa-agents", data_testid="agents")
    return said + docscores(run, calls, _cited_by(views)) + _ablations(run) + text("p", READING, "mdqa-note")


def _slots(views: Views) -> tuple[tuple[str, Opinion | None], ...]:
    return (("local_agent", views.local), ("global_agent", views.everything))


def _cited_by(views: Views) -> dict[str, list[str]]:
    """Titles of the agents that cite each document."""
    found: dict[str, list[str]] = {}
    for role, opinion in _slots(views):
        for document_id in opinion.documents if opinion is not None else ():
            found.setdefault(document_id, []).append(AGENTS[role].partition(" ")[0])
    return found


def _agreement(views: Views) -> str:
    kind = views.agreement
    answers = [_quoted(opinion.answer) for opinion in views.agents if opinion.answer.strip()]
    match kind:
        case "agree":
            head, rest = "✓ Local and Global agree", f"Both answer {answers[0]}."
        case "disagree":
            head, rest = "≠ Local and Global disagree", f"{answers[0]} against {answers[1]}."
        case "one answer":
            [speaker] = [o for o in views.agents if o.answer.strip()]
            head, rest = f"Only the {speaker.title} gives an answer", f"{answers[0]}."
        case "no answer":
            head, rest = "Neither agent gives an answer", ""
        case _:
            head, rest = f"Only the {views.agents[0].title} spoke", ""
    sentence = " ".join(part for part in (rest, _choice(views)) if part)
    inner = text("strong", head) + (" " + text("span", sentence, dir="auto") if sentence else "")
    look = {"agree": "good", "disagree": "differ"}.get(kind, "plain")
    return element("p", inner, f"mdqa-agreement {look}", data_testid="agreement")


def _choice(views: Views) -> str:
    """What the judge does with the agents' answers, in a sentence; empty as long as it has not spoken."""
    judge = views.judge
    if judge is None:
        return ""
    if not judge.answer.strip():
        return "The judge gives no answer."
    own, same = _quoted(judge.answer), _followed(views)
    if len(same) == 2:
        return "The judge keeps it."
    if same:
        only = len(views.agents) == 1
        return f"The judge {'keeps' if only else 'takes'} the {same[0].title}'s answer{f', {own}' if only else ''}."
    if views.agreement == "agree":
        return f"The judge overrules both and answers {own}."
    return f"The judge answers {own}, which no agent said."


def _followed(views: Views) -> list[Opinion]:
    """The agents whose answer the judge gives."""
    if views.judge is None or not views.judge.answer.strip():
        return []
    return [agent for agent in views.agents if normalised(agent.answer) == normalised(views.judge.answer)]


def _quoted(answer: str) -> str:
    return f"“{short(answer.strip().rstrip('.'), 90)}”"


def _agent(run: RunResult, views: Views, role: str, opinion: Opinion | None, calls: Mapping[int, ModelCall]) -> str:
    title = AGENTS[role]
    if opinion is None:
        done = any(stage.name == "judge" for stage in run.stages) or run.status not in ("running", "interrupted")
        why = "Left out in this run (ablation)." if run.config.get(f"without_{role.partition('_')[0]}") else ""
        why = why or ("It said nothing in this run." if done else "It has not spoken yet.")
        return element("article", text("h4", title) + text("p", why, "mdqa-voice-answer none"), "mdqa-voice")
    taken = opinion in _followed(views)
    labels = badge("✓ the judge's answer too", "good") if taken else ""
    parts = [_head(run, title, opinion, labels), _answer(opinion)]
    parts.append(_reasoning(opinion))
    parts.append(_citations(run, opinion))
    parts.append(_seen(run, role))
    parts.append(_raw(title, opinion, calls))
    return element("article", "".join(parts), "mdqa-voice" + (" chosen" if taken else ""), data_voice=role)


def _judge(run: RunResult, views: Views, calls: Mapping[int, ModelCall]) -> str:
    opinion = views.judge
    if opinion is None:
        return ""
    titles = [agent.title for agent in _followed(views)]
    whose = "keeps both agents' answer" if len(titles) > 1 else "an answer of its own"
    whose = f"takes the {titles[0]}'s answer" if len(titles) == 1 else whose
    choice = badge(whose, "info") if opinion.answer.strip() else ""
    parts = [_head(run, "Judge", opinion, choice), _answer(opinion), _reasoning(opinion)]
    read = [_link(run, document_id) for document_id in opinion.documents]
    if read:
        what = "whole documents" if run.config.get("without_pruning") else "key sentences"
        parts.append(text("p", f"Read both agents' statements and the {what} of", "mdqa-label"))
        if len(views.agents) == 1:
            parts[-1] = text("p", f"Read the agent's statement and the {what} of", "mdqa-label")
        parts.append(_list(read))
    parts.append(_raw("Judge", opinion, calls))
    card = element("article", "".join(parts), "mdqa-voice chosen", data_voice="judge")
    return element("div", card, "mdqa-voices judge")


def _head(run: RunResult, title: str, opinion: Opinion, more: str) -> str:
    labels = more
    good = right(opinion.answer, run.question) if opinion.answer.strip() else None
    if good is not None:
        labels += badge("✓ right", "good") if good else badge("× wrong", "bad")
    if opinion.status != "ok":
        labels += badge(STATUS_WORDS[opinion.status] + ": fallback", "warn")
    return element("div", text("h4", title) + labels, "mdqa-voice-head")


def _answer(opinion: Opinion) -> str:
    said = opinion.answer.strip()
    return text("p", said or "no answer", "mdqa-voice-answer" + ("" if said else " none"), dir="auto")


def _reasoning(opinion: Opinion) -> str:
    if opinion.reasoning.strip():
        return text("p", opinion.reasoning, "mdqa-reasoning", dir="auto")
    words = (
        "Its reasoning could not be read; the raw reply is below." if opinion.status != "ok" else "No reasoning given."
    )
    return text("p", words, "mdqa-reasoning none")


def _citations(run: RunResult, opinion: Opinion) -> str:
    if not opinion.documents:
        return text("p", "Cites no document", "mdqa-label")
    return text("p", "Cites", "mdqa-label") + _list([_link(run, document_id) for document_id in opinion.documents])


def _list(links: Sequence[str]) -> str:
    return element("ul", "".join(element("li", link) for link in links), "mdqa-cited")


def _seen(run: RunResult, role: str) -> str:
    """Which documents the agent had before it: all, or their numbers as links."""
    stage = next((stage for stage in run.stages if stage.name == role), None)
    if stage is None:
        return ""
    total = len(run.question.documents)
    if len(stage.documents) == total:
        return text("p", f"Read all {plural(total, 'document')}", "mdqa-label")
    numbers = _numbers(run)
    chips = [_chip(numbers[i], run.question.document(i)) for i in stage.documents if i in numbers]
    head = text("p", f"Read {len(stage.documents)} of {plural(total, 'document')}", "mdqa-label")
    return head + element("p", "".join(chips), "mdqa-docs")


def _chip(number: int, document: Document) -> str:
    title = short(document.title or document.text, 60) + (", gold" if document.gold else "")
    return card_link(
        number, f"{number}{'★' if document.gold else ''}", "mdqa-doc" + (" gold" if document.gold else ""), title
    )


def _link(run: RunResult, document_id: str) -> str:
    """A cited document by number and title, as a link to its card."""
    number = _numbers(run).get(document_id)
    if number is None:
        return escape(document_id)
    document = run.question.document(document_id)
    star = text("span", " ★", "star", title="gold: holds the evidence") if document.gold else ""
    return card_link(number, f"{number}. {short(document.title or document.text, 60)}") + star


def _numbers(run: RunResult) -> dict[str, int]:
    return {document_id: number for number, document_id in enumerate(run.question.document_ids, 1)}


def _raw(title: str, opinion: Opinion, calls: Mapping[int, ModelCall]) -> str:
    """A button for the model's own text; see ``ui.views.assessment.PRESS_CELL``."""
    if opinion.call is None or opinion.call not in calls:
        return ""
    label, press = f"Raw reply of the {title}", {"data_call": opinion.call, "aria_pressed": "false"}
    button = text("button", "Raw reply", "mdqa-copy", type="button", aria_label=label, **press)
    return element("p", button, "mdqa-voice-foot")


def _ablations(run: RunResult) -> str:
    found = [opinion for opinion in run.opinions if opinion.role == ABLATION]
    if not found:
        return ""
    headers = ("Variant, and the judge's reason", "Documents the judge read", "Answer")
    grid = outcome_table(run, found, "variant", headers)
    return element("section", text("h3", "What each ablation answers") + grid, "mdqa-panel", data_testid="ablations")
