"""The checks behind the verdicts, in their precedence.

The verdict names the last place where the right answer, or the evidence for it, was still there. What rests on a whole
answer (an agent's, a reading's) goes before what rests on a mention in a text, and that before evidence that was lost:
once somebody said the right thing, the evidence was enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mdqa.diagnosis.cases import UNREADABLE, Case, Finding
from mdqa.records import ASIDE, Opinion, RunResult, Stage
from mdqa.scoring.abstention import abstains
from mdqa.scoring.losses import ASIDE_ROLES, Loss, ballots, fate, own_opinions, own_stages, placing
from mdqa.trace import ModelCall


def _accepted(case: Case) -> Iterator[Finding]:
    if case.accepted and case.result.status == "ok":
        yield Finding("metric_mismatch", detail={"accepted_answers": list(case.result.question.answers)})


def _failed(case: Case) -> Iterator[Finding]:
    result = case.result
    if result.status != "ok":
        why = result.error.message if result.error else ""
        yield Finding(
            "unanswered", result.error.stage if result.error else "", detail={"status": result.status, "error": why}
        )


def _overruled(case: Case) -> Iterator[Finding]:
    """An agent of the run's own way was right, and what was chosen is not."""
    voting = ballots(case.result)
    agents = [o for o in own_opinions(case.result) if o not in voting and not o.chosen and case.says(o.answer)]
    if agents:
        yield _views("overruled", case, agents)


def _vote_split(case: Case) -> Iterator[Finding]:
    voting = ballots(case.result)
    right = [opinion for opinion in voting if not opinion.chosen and case.says(opinion.answer)]
    if right:
        found = _views("vote_split", case, right)
        weights = {
            "right_weight": sum(opinion.weight or 0.0 for opinion in right),
            "winning_weight": sum(opinion.weight or 0.0 for opinion in voting if opinion.chosen),
            "ballots": len(voting),
        }
        yield Finding(found.verdict, found.stage, found.documents, {**found.detail, **weights})


def _wrong_extraction(case: Case) -> Iterator[Finding]:
    """A voice wrote an accepted answer and its extracted answer is another; the chosen voice's text comes first."""
    opinions = sorted(own_opinions(case.result), key=lambda opinion: not opinion.chosen)
    for opinion in opinions:
        if case.says(opinion.answer):
            continue
        raw = [call for call in case.replies if call.index == opinion.call]
        for where, text in [("reasoning", opinion.reasoning), *(("reply", call.output) for call in raw)]:
            if found := case.mentions(text):
                detail = {"role": opinion.role, "where": where, "found": list(found), "extracted": opinion.answer}
                yield Finding("wrong_extraction", _stage_of(opinion, case.result), opinion.documents, detail)
                return
    said = {opinion.call for opinion in opinions}
    for call in reversed(_own_calls(case)):
        if call.index not in said and (found := case.mentions(call.output)):
            detail = {"role": call.role, "where": "reply", "found": list(found), "extracted": case.result.answer}
            yield Finding("wrong_extraction", call.stage, call.documents, detail)
            return


def _other_way(case: Case) -> Iterator[Finding]:
    """Another treatment or variant that the same run carried out beside its own was right."""
    others = [o for o in case.result.opinions if o.role in ASIDE_ROLES - {"reading"} and not o.chosen]
    right = [opinion for opinion in others if case.says(opinion.answer)]
    if right:
        yield _views("overruled", case, right)


def _not_in_input(case: Case) -> Iterator[Finding]:
    documents = case.result.question.documents
    if not any(document.gold for document in documents) and (
        not documents or any(document.gold is not None for document in documents)
    ):
        yield Finding("gold_not_in_input", detail={"documents": len(documents)})


def _unreadable_evidence(case: Case) -> Iterator[Finding]:
    yield from _lost(case, "parse_failure", lambda loss, status: status in UNREADABLE)


def _dropped(case: Case) -> Iterator[Finding]:
    yield from _lost(case, "dropped", lambda loss, status: loss.fate == "dropped" and status not in UNREADABLE)


def _not_cited(case: Case) -> Iterator[Finding]:
    yield from _lost(case, "kept_not_cited", lambda loss, status: loss.fate == "not_cited" and status not in UNREADABLE)


def _lost(case: Case, verdict: str, wanted: Callable[[Loss, str], bool]) -> Iterator[Finding]:
    """One finding about all lost documents that were lost in this way, at the stage of the first of them."""
    gold = case.result.question.gold_ids
    details, documents, stages = [], [], []
    for loss in case.losses():
        placed = placing(loss.stage, loss.document, gold) if loss.stage else None
        if wanted(loss, placed.status if placed else ""):
            name = loss.stage.name if loss.stage else ""
            more = placed.to_json() if placed else {"document": loss.document, "reason": _never(case.result)}
            details.append({"stage": name, **more})
            documents.append(loss.document)
            stages.append(loss.stage)
    if documents:
        order = [stage.name for stage in own_stages(case.result.stages)]
        first = min((stage.name for stage in stages if stage), key=order.index, default="")
        yield Finding(verdict, first, tuple(documents), {"lost": details})


def _never(result: RunResult) -> str:
    if result.overflow == "drop_last":
        return "came into no stage: the rule drop_last leaves out what does not fit into the model's window"
    return "came into no stage"


def _unreadable_answer(case: Case) -> Iterator[Finding]:
    """The reply that the answer was taken from could not be read."""
    for opinion in own_opinions(case.result):
        if opinion.chosen and opinion.status in UNREADABLE and case.result.answer.strip():
            detail = {"role": opinion.role, "status": opinion.status}
            yield Finding("parse_failure", _stage_of(opinion, case.result), opinion.documents, detail)
            return


def _no_answer(case: Case) -> Iterator[Finding]:
    result = case.result
    if result.status == "ok" and (not result.answer.strip() or abstains(result.answer)):
        yield Finding(
            "unanswered", _final_stage(result), detail={"status": "ok", "abstained": bool(result.answer.strip())}
        )


def _not_attended(case: Case) -> Iterator[Finding]:
    """Evidence that was read, with less of the question's attention than the mean document of the same prompt."""
    reached = [d for d in case.result.question.gold_ids if fate(case.result, d).fate == "reached"]
    for summary in reversed(case.result.attention_summary):
        mass = summary.document_mass
        seen = [document for document in reached if document in mass]
        if not seen or summary.stage in {stage.name for stage in case.result.stages if stage.branch == ASIDE}:
            continue
        mean = sum(mass.values()) / len(mass)
        low = [document for document in seen if mass[document] < mean]
        if low and (case.need == "all" or len(low) == len(seen)):
            order = sorted(mass, key=lambda document: -mass[document])
            found = [{"document": d, "mass": mass[d], "rank": order.index(d) + 1} for d in low]
            detail = {"mean": mean, "of": len(mass), "documents": found}
            yield Finding("kept_not_attended", summary.stage, tuple(low), detail)
        return


def _nothing_lost(case: Case) -> Iterator[Finding]:
    result, gold = case.result, case.result.question.gold_ids
    if gold:
        yield Finding("read_but_wrong", _final_stage(result), gold)
    else:
        yield Finding("evidence_unknown", _final_stage(result))


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    _accepted,
    _failed,
    _overruled,
    _vote_split,
    _wrong_extraction,
    _other_way,
    _not_in_input,
    _unreadable_evidence,
    _dropped,
    _not_cited,
    _unreadable_answer,
    _no_answer,
    _not_attended,
    _nothing_lost,
)
"""The checks in their precedence; the last always finds something."""

LAST = ("read_but_wrong", "evidence_unknown")
"""Verdicts that say that no check found more; they stand in no ``also``."""


def _views(verdict: str, case: Case, right: Sequence[Opinion]) -> Finding:
    """A finding about opinions that were right and not chosen."""
    said = [{"role": o.role, "title": o.title, "group": o.group, "answer": o.answer} for o in right]
    documents = tuple(dict.fromkeys(document for opinion in right for document in opinion.documents))
    return Finding(verdict, _final_stage(case.result), documents, {"right": said})


def _final_stage(result: RunResult) -> str:
    stages = own_stages(result.stages)
    return stages[-1].name if stages else ""


def _stage_of(opinion: Opinion, result: RunResult) -> str:
    """The stage in which an opinion was given: the one named like its role or with its call; else the last."""

    def given_in(stage: Stage) -> bool:
        return opinion.role == stage.name or any(opinion.call in calls.values() for calls in stage.calls.values())

    return next((stage.name for stage in own_stages(result.stages) if given_in(stage)), _final_stage(result))


def _own_calls(case: Case) -> list[ModelCall]:
    """The generating calls of the final stage: where no opinion says what was made of them."""
    final = _final_stage(case.result)
    return [call for call in case.replies if call.purpose == "generate" and call.stage == final]
