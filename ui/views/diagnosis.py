"""Why a run's answer is wrong, under the answer: what happened to the evidence, at which stage, what took its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mdqa.diagnosis.cases import TITLES, VERDICTS
from mdqa.diagnosis.diagnosing import Diagnosis
from mdqa.diagnosis.facets import diagnosis_of
from mdqa.records import RunResult
from mdqa.trace import ModelCall
from ui.views.documents import card_link
from ui.views.ledger import STATUS_WORDS, signal_words
from ui.views.markup import badge, count, element, escape, number, plural, short, text
from ui.views.whatif import says_the_answer

SHOWN = 6
"""Lost documents, and opinions that were right, that are told one by one."""


def diagnosis_line(run: RunResult, calls: Sequence[ModelCall] = ()) -> str:
    """The diagnosis of a wrong answer; empty for any other run."""
    found = diagnosis_of(run, calls)
    if found is None:
        return ""
    verdict, stage = found.finding.verdict, _stage_title(run, found.finding.stage)
    head = text("strong", TITLES.get(verdict, verdict))
    if stage:
        head += " " + escape(f"at the stage “{stage}”")
    inner = text("span", "Why this is wrong", "mdqa-label") + element("p", head) + text("p", _sentence(found))
    lines = _lines(run, found)
    inner += element("ul", "".join(element("li", line) for line in lines)) if lines else ""
    inner += _source(run)
    if found.also:
        others = "".join(badge(TITLES.get(name, name), "", VERDICTS.get(name, "")) for name in found.also)
        inner += element("div", text("span", "It is also true that:", "mdqa-quiet") + others, "mdqa-badges")
    return element("section", inner, "mdqa-diagnosis", data_testid="diagnosis")


def _source(run: RunResult) -> str:
    """The documents without evidence that the wrong answer stands in, and how to see whether they made it."""
    found = [document for document in run.question.documents if not document.gold and says_the_answer(document, run)]
    if not found:
        return ""
    named = ", ".join(_document(run, document.id) for document in found[:SHOWN])
    named += escape(f" and {plural(len(found) - SHOWN, 'more document')}") if len(found) > SHOWN else ""
    ways = f" Switch {'it' if len(found) == 1 else 'them'} off under “What if …” to see whether the answer changes."
    return element("p", escape(f"“{short(run.answer, 60)}” stands in ") + named + escape("." + ways))


def _sentence(found: Diagnosis) -> str:
    """The verdict's own sentence, with a capital and a full stop."""
    words = VERDICTS.get(found.finding.verdict, found.finding.verdict)
    return words[:1].upper() + words[1:] + "."


def _lines(run: RunResult, found: Diagnosis) -> list[str]:
    """The details of a finding, one line each (ready HTML)."""
    detail = found.finding.detail
    make = _DETAILS.get(found.finding.verdict)
    return make(run, detail) if make else []


def _lost(run: RunResult, detail: Mapping[str, Any]) -> list[str]:
    lost = detail.get("lost", ())
    if not lost:  # the deciding reply could not be read
        words = STATUS_WORDS.get(str(detail.get("status", "")), str(detail.get("status", "")))
        return [escape(f"{_role(detail)}: {words}.")]
    lines = [_lost_one(run, entry) for entry in lost[:SHOWN]]
    return lines + ([escape(f"and {plural(len(lost) - SHOWN, 'more document')}")] if len(lost) > SHOWN else [])


def _lost_one(run: RunResult, entry: Mapping[str, Any]) -> str:
    """A document with its rank, score and bar in the signal that decided, and what was kept in its place."""
    parts = []
    if entry.get("signal"):
        signal = signal_words(entry["signal"])
        if entry.get("rank") is not None:
            parts.append(f"rank {count(entry['rank'])} of {count(entry['of'])} by {signal} ({number(entry['score'])})")
        else:
            parts.append(f"{signal}: {STATUS_WORDS.get(entry['status'], entry['status'])}")
        if entry.get("margin") is not None:
            side = "below" if entry["margin"] < 0 else "above"
            parts.append(f"{number(abs(entry['margin']))} {side} the bar of {number(entry['threshold'])}")
    if entry.get("reason"):
        parts.append(short(entry["reason"], 120))
    line = _document(run, entry["document"]) + (escape(": " + ", ".join(parts)) if parts else "")
    instead = entry.get("instead", ())
    if instead:
        line += escape(". In its place: ") + ", ".join(_document(run, other) for other in instead[:3])
        line += escape(f" and {count(len(instead) - 3)} more") if len(instead) > 3 else ""
    return line + "."


def _right(run: RunResult, detail: Mapping[str, Any]) -> list[str]:
    right = detail.get("right", ())
    lines = [
        escape(f"{entry['title'] or entry['role']} said “{short(entry['answer'], 80)}”, which is right.")
        for entry in right[:SHOWN]
    ]
    if len(right) > SHOWN:
        lines.append(escape(f"and {plural(len(right) - SHOWN, 'more reading')}"))
    if "ballots" in detail:
        lines.append(
            escape(
                f"The right answers weighed {number(detail['right_weight'])}, “{short(run.answer, 60)}” "
                f"{number(detail['winning_weight'])}; {plural(detail['ballots'], 'reading')} voted."
            )
        )
    return lines


def _extraction(run: RunResult, detail: Mapping[str, Any]) -> list[str]:
    mentioned = ", ".join(f"“{short(answer, 60)}”" for answer in detail["found"][:3])
    taken = short(detail["extracted"], 80)
    return [escape(f"{_role(detail)} wrote {mentioned} in its {detail['where']}; taken from it was “{taken}”.")]


def _attention(run: RunResult, detail: Mapping[str, Any]) -> list[str]:
    return [
        _document(run, entry["document"])
        + escape(
            f": {number(entry['mass'])} of the question's attention, rank {count(entry['rank'])} of "
            f"{count(detail['of'])}; the mean document got {number(detail['mean'])}."
        )
        for entry in detail["documents"][:SHOWN]
    ]


def _unanswered(run: RunResult, detail: Mapping[str, Any]) -> list[str]:
    if detail.get("status") != "ok":
        return []  # the error stands above
    return [escape("The answer says that there is none." if detail.get("abstained") else "The answer is empty.")]


_DETAILS: Mapping[str, Callable[[RunResult, Mapping[str, Any]], list[str]]] = {
    "dropped": _lost,
    "kept_not_cited": _lost,
    "parse_failure": _lost,
    "overruled": _right,
    "vote_split": _right,
    "wrong_extraction": _extraction,
    "kept_not_attended": _attention,
    "unanswered": _unanswered,
}


def _document(run: RunResult, document_id: str) -> str:
    """A document as a link to its card; its id where it is not among those of the question."""
    for place, document in enumerate(run.question.documents, 1):
        if document.id == document_id:
            return card_link(place, f"{place}. {short(document.title or document.text, 50).rstrip('.')}")
    return escape(short(document_id, 50))


def _role(detail: Mapping[str, Any]) -> str:
    words = str(detail.get("role", "")).replace("_", " ")
    return words[:1].upper() + words[1:]


def _stage_title(run: RunResult, name: str) -> str:
    return next((stage.title or stage.name for stage in run.stages if stage.name == name), name)
