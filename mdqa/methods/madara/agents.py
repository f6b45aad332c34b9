"""The three assessing agents and the generator: their prompts, requests and scores (Appendix N).

Every prompt puts what calls share first (instructions, question, how each document begins) and the graded document
last, so that a backend which reuses common beginnings computes them once. Three points are our reading:

- the claims that stand for the *other* documents are the first characters of *all* documents, numbered, the same text
  for every call (the released code leaves out the graded document itself, so no two calls share it);
- the Conflict Agent is asked once per query, as its prompt is written, and its adjustments become scores as in
  ``Findings.score``; ``conflict_per_doc`` asks it once per document, as the released code does;
- where the backend cannot be held to a JSON schema, the reply is begun for the model up to its first value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from mdqa.backends.base import GenerationRequest
from mdqa.methods.asking import Inquiry, Reply, ask_together
from mdqa.methods.madara.parsing import (
    ConflictScale,
    Findings,
    Grade,
    parse_conflict,
    parse_conflict_document,
    parse_grade,
    schema,
)
from mdqa.methods.recorder import Recorder
from mdqa.methods.tasks import Task, generator_prompt
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Opinion, Question

PACKAGE = "mdqa.methods.madara"
AGENTS = ("relevance", "consistency", "conflict")

_BEGUN: Mapping[str, str] = {
    "relevance": '{"score":',
    "consistency": '{"score":',
    "conflict": '{"has_conflict":',
    "conflict_document": '{"has_conflict":',
    "forced": '{"score":',
}
_BEGUN_COT = '{"reasoning_steps": ["'

T = TypeVar("T")


@dataclass(frozen=True)
class Decoding:
    """How replies are written: sampling, and the most tokens of a reply of each kind."""

    temperature: float
    top_p: float
    agent_tokens: int
    generator_tokens: int


@dataclass(frozen=True)
class Signal:
    """One agent's scores and the calls behind them; with what it quoted, its opinion and what was odd, if anything."""

    scores: dict[str, DocumentScore]
    calls: dict[str, int]
    quotes: dict[str, str] = field(default_factory=dict)
    opinion: Opinion | None = None
    note: str = ""
    has_conflict: bool = False


def derived_seed(seed: int, *parts: str) -> int:
    """A seed from 0 to 2^31 - 1 for one request: the same for the same run seed, role and ids, whatever the order."""
    digest = hashlib.sha256("\x00".join((str(seed), *parts)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def claims(documents: Sequence[Document], characters: int) -> Segment:
    """How each document begins: one numbered line each, ``characters`` long at most, line breaks as spaces."""
    lines = []
    for number, document in enumerate(documents, 1):
        text = " ".join(f"{document.title}: {document.text}".split() if document.title else document.text.split())
        lines.append(f"[{number}] {text[:characters]}")
    return Segment("\n".join(lines))


def agent_request(
    run: Recorder, role: str, prompt: Prompt, decoding: Decoding, seed: int, *, cot: bool = False, documents: int = 0
) -> GenerationRequest:
    """A request for a JSON reply: held to the role's schema where the backend can, else with the reply begun."""
    structured = "structured" in run.tools.backend.capabilities
    return GenerationRequest(
        prompt=prompt if structured else prompt.with_reply(_BEGUN_COT if cot else _BEGUN[role]),
        max_new_tokens=decoding.agent_tokens,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        seed=seed,
        schema=schema(role, cot=cot, documents=documents) if structured else None,
    )


def relevance_prompt(question: str, document: Document, *, cot: bool) -> Prompt:
    """The Relevance Agent's prompt: it sees the question and one document, without its place in the list."""
    template = load_template(PACKAGE, "relevance_cot" if cot else "relevance")
    return template.fill(question=question_segment(question), document=document_segments([document]))


@dataclass(frozen=True)
class Asking:
    """What an agent is asked (nothing, where there is nothing to ask), and how its replies become scores."""

    inquiry: Inquiry[Any]
    read: Callable[[Sequence[Reply[Any]]], Signal]


def ask_all(run: Recorder, askings: Sequence[Asking]) -> list[Signal]:
    """Ask several agents in one batch, so that none waits for another."""
    replies = ask_together(run, [asking.inquiry for asking in askings])
    return [asking.read(found) for asking, found in zip(askings, replies, strict=True)]


def relevance(item: Question, run: Recorder, decoding: Decoding, *, cot: bool) -> Asking:
    """Relevance of every document, one call each. ``quotes`` are copied out of the documents."""
    requests = [
        agent_request(
            run,
            "relevance",
            relevance_prompt(item.question, document, cot=cot),
            decoding,
            derived_seed(run.seed, "relevance", item.id, document.id),
            cot=cot,
        )
        for document in item.documents
    ]

    def read(replies: Sequence[Reply[Grade]]) -> Signal:
        quotes = {
            document.id: reply.value.evidence
            for document, reply in zip(item.documents, replies, strict=True)
            if reply.value and len(reply.value.evidence) > 2 and reply.value.evidence in document.text
        }
        return _per_document(item, replies, lambda grade: grade.score, quotes)

    return Asking(Inquiry("relevance", requests, parse_grade), read)


def consistency(item: Question, run: Recorder, decoding: Decoding, *, cot: bool, characters: int) -> Asking:
    """Consistency of every document with itself and with how the others begin; one call each."""
    requests = _with_claims(item, run, "consistency", decoding, cot=cot, characters=characters)
    inquiry = Inquiry("consistency", requests, parse_grade)
    return Asking(inquiry, lambda replies: _per_document(item, replies, lambda grade: grade.score))


def conflict(
    item: Question, run: Recorder, decoding: Decoding, *, cot: bool, characters: int, scale: ConflictScale
) -> Asking:
    """Conflict scores of all documents from one call. A single document has nothing to conflict with: no call."""
    if len(item.documents) < 2:
        return _nothing_to_compare(item)
    template = load_template(PACKAGE, "conflict_cot" if cot else "conflict")
    prompt = template.fill(question=question_segment(item.question), claims=claims(item.documents, characters))
    seed = derived_seed(run.seed, "conflict", item.id)
    count = len(item.documents)
    request = agent_request(run, "conflict", prompt, decoding, seed, cot=cot, documents=count)

    def read(replies: Sequence[Reply[Findings]]) -> Signal:
        [reply] = replies
        scores = {
            document.id: reply.score(lambda findings, number=number: findings.score(number, scale))  # type: ignore[misc]
            for number, document in enumerate(item.documents, 1)
        }
        note = ""
        if reply.value and reply.value.clipped:
            note = f"The Conflict Agent's adjustments were clipped to -2 to 2 for {reply.value.clipped} document(s)."
        return Signal(
            scores,
            dict.fromkeys(item.document_ids, reply.call),
            opinion=_opinion(item, reply),
            note=note,
            has_conflict=reply.value is not None and reply.value.has_conflict,
        )

    parse = partial(parse_conflict, documents=count)
    return Asking(Inquiry("conflict", [request], parse, documents=[item.document_ids]), read)


def conflict_per_document(
    item: Question, run: Recorder, decoding: Decoding, *, cot: bool, characters: int, scale: ConflictScale
) -> Asking:
    """Conflict scores from one call per document (``conflict_per_doc``)."""
    if len(item.documents) < 2:
        return _nothing_to_compare(item)
    requests = _with_claims(item, run, "conflict_document", decoding, cot=cot, characters=characters)

    def read(replies: Sequence[Reply[Findings]]) -> Signal:
        return replace(
            _per_document(item, replies, lambda findings: findings.score(1, scale)),
            has_conflict=any(reply.value is not None and reply.value.has_conflict for reply in replies),
        )

    return Asking(Inquiry("conflict", requests, parse_conflict_document), read)


def _with_claims(
    item: Question, run: Recorder, role: str, decoding: Decoding, *, cot: bool, characters: int
) -> list[GenerationRequest]:
    template = load_template(PACKAGE, f"{role}_cot" if cot else role)
    shared = claims(item.documents, characters)
    requests = []
    for number, document in enumerate(item.documents, 1):
        prompt = template.fill(
            question=question_segment(item.question),
            claims=shared,
            document=document_segments([document], [number]),
        )
        seed = derived_seed(run.seed, role, item.id, document.id)
        requests.append(agent_request(run, role, prompt, decoding, seed, cot=cot))
    return requests


def _per_document(
    item: Question, replies: Sequence[Reply[T]], number: Callable[[T], float], quotes: dict[str, str] | None = None
) -> Signal:
    pairs = list(zip(item.document_ids, replies, strict=True))
    scores = {document_id: reply.score(number) for document_id, reply in pairs}
    return Signal(scores, {document_id: reply.call for document_id, reply in pairs}, quotes=quotes or {})


def _nothing_to_compare(item: Question) -> Asking:
    status = DocumentScore(status="unavailable", detail="a single document has no other to conflict with")
    signal = Signal(dict.fromkeys(item.document_ids, status), {})
    return Asking(Inquiry("conflict", [], parse_conflict_document), lambda _: signal)


def _opinion(item: Question, reply: Reply[Findings]) -> Opinion:
    found = reply.value
    if found is None:
        return Opinion(role="conflict", title="Conflict Agent", answer="", status=reply.status, call=reply.call)
    ids = item.document_ids
    named = {number for a, b, _ in found.pairs for number in (a, b)}
    pairs = [f"Documents {a} and {b}: {what}" if what else f"Documents {a} and {b}" for a, b, what in found.pairs]
    return Opinion(
        role="conflict",
        title="Conflict Agent",
        answer=found.majority if found.has_conflict else "",
        reasoning="\n".join(
            ["Conflict found." if found.has_conflict else "No conflict found.", *pairs, found.reasoning]
        ).strip(),
        documents=tuple(ids[number - 1] for number in sorted(named)),
        call=reply.call,
    )


def generator_request(
    item: Question, documents: Sequence[Document], task: Task, decoding: Decoding, seed: int, *, abstain: bool = False
) -> GenerationRequest:
    """A request for the answer from these documents, in this order, numbered from 1; documents before question.

    ``abstain``: the prompt allows the reply "unknown" (our option; the paper's generator has to answer).
    """
    return GenerationRequest(
        prompt=generator_prompt(item.question, documents, task, abstain=abstain),
        max_new_tokens=decoding.generator_tokens,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        seed=seed,
    )


def grades(replies: Sequence[Reply[Grade]]) -> list[DocumentScore]:
    """The scores of a list of graded replies, statuses included."""
    return [reply.score(lambda grade: grade.score) for reply in replies]
