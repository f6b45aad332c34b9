"""What each voice of DuQUAD is asked: its prompt and the JSON schema of its reply.

The paper has templates for three roles (the agents, the judge, the Score Agent) and prints none that we have, so
the wording is ours. The question stands last, so that prompts over the same documents share their beginning; the
Score Agent's instructions stand first, because every call is about another document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mdqa.methods.sentences import split_sentences
from mdqa.prompting import (
    Prompt,
    Segment,
    document_segment,
    document_segments,
    load_template,
    question_segment,
)
from mdqa.records import Document, Question

PACKAGE = "mdqa.methods.duquad"

CHARACTERS_PER_TOKEN = 2
"""A cautious size of a token, by which a schema keeps the reasoning short enough for the answer to follow."""

RESTRICTION = "The document above holds what answers this question."
"""What may be added to the question whose likelihood is measured."""

View = Literal["local", "global"]


@dataclass(frozen=True)
class Statement:
    """What one agent said, ready for the judge and the ledger. ``cited`` and ``seen`` are document ids."""

    view: View
    answer: str
    reasoning: str
    cited: tuple[str, ...]
    seen: tuple[str, ...]

    @property
    def title(self) -> str:
        """The agent's name for people."""
        return agent_title(self.view)


def agent_title(view: View) -> str:
    """The name of an agent for people."""
    return "Local Agent" if view == "local" else "Global Agent"


def numbers_of(item: Question) -> dict[str, int]:
    """The one numbering that every prompt uses: position in the input, from 1."""
    return {document.id: number for number, document in enumerate(item.documents, 1)}


def agent_prompt(item: Question, documents: Sequence[Document], limit: int, question: str | None = None) -> Prompt:
    """The template that both agents share, over these documents under their numbers in the whole input.

    ``question`` replaces the item's question (the content-free query).
    """
    numbers = numbers_of(item)
    return load_template(PACKAGE, "agent").fill(
        documents=document_segments(documents, [numbers[document.id] for document in documents]),
        limit=str(limit),
        question=question_segment(item.question if question is None else question),
    )


def likelihood_prompt(item: Question, document: Document, *, restriction: bool = False) -> Prompt:
    """One document, then the question whose tokens are scored. The number is 1 wherever the document stands.

    With ``restriction`` the sentence that the document answers it is part of what is scored.
    """
    question = f"{item.question} {RESTRICTION}" if restriction else item.question
    return load_template(PACKAGE, "likelihood").fill(
        document=document_segment(1, document), question=question_segment(question)
    )


def score_prompt(item: Question, document: Document, limit: int) -> Prompt:
    """The Score Agent's prompt: the document as a numbered list of its sentences."""
    lines = [f"({n}) {' '.join(text.split())}" for n, text in enumerate(split_sentences(document.text), 1)]
    return load_template(PACKAGE, "score").fill(
        document=_as_segment(item, document, "\n".join(lines)),
        limit=str(limit),
        question=question_segment(item.question),
    )


def yes_no_prompt(item: Question, document: Document, reply: str) -> Prompt:
    """The prompt of the continuous DocScore with its reply already there."""
    segment = _as_segment(item, document, document.text)
    template = load_template(PACKAGE, "yes_no")
    return template.fill(document=segment, question=question_segment(item.question)).with_reply(reply)


def judge_prompt(
    item: Question, evidence: Mapping[str, Sequence[str] | None], statements: Sequence[Statement]
) -> Prompt:
    """The judge's prompt. ``evidence``: per document id the sentences it sees, or None for the whole text."""
    segments: list[Segment] = []
    for document_id, sentences in evidence.items():
        document = item.document(document_id)
        body = document.text if sentences is None else "\n".join(f"- {' '.join(text.split())}" for text in sentences)
        segments += [Segment("\n\n")] if segments else []
        segments.append(_as_segment(item, document, body))
    return load_template(PACKAGE, "judge").fill(
        evidence=segments,
        opinions="\n\n".join(_opinion(statement, numbers_of(item)) for statement in statements),
        question=question_segment(item.question),
    )


def agent_schema(numbers: Sequence[int], limit: int, max_tokens: int) -> Mapping[str, Any]:
    """JSON schema of an agent's reply; only the documents shown can be cited."""
    return _object(
        reasoning=_text(max_tokens * CHARACTERS_PER_TOKEN),
        answer=_text(200),
        important_documents={
            "type": "array",
            "items": {"type": "integer", "enum": sorted(numbers)},
            "maxItems": limit,
        },
    )


def score_schema(sentences: int, limit: int) -> Mapping[str, Any]:
    """JSON schema of the Score Agent's reply: one decimal, existing sentences."""
    return _object(
        score={"type": "number", "enum": [tenth / 10 for tenth in range(11)]},
        key_sentences={
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": sentences},
            "maxItems": limit,
        },
    )


def judge_schema(max_tokens: int) -> Mapping[str, Any]:
    """JSON schema of the judge's reply."""
    return _object(reasoning=_text(max_tokens * CHARACTERS_PER_TOKEN), answer=_text(200))


def _object(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(length: int) -> Mapping[str, Any]:
    return {"type": "string", "maxLength": length}


def _as_segment(item: Question, document: Document, body: str) -> Segment:
    """A document under its number with another body, still marked as that document."""
    return document_segment(numbers_of(item)[document.id], document.model_copy(update={"text": body}))


def _opinion(statement: Statement, numbers: Mapping[str, int]) -> str:
    def listed(ids: Sequence[str]) -> str:
        return ", ".join(str(numbers[document_id]) for document_id in ids) or "none"

    seen = "all documents" if len(statement.seen) == len(numbers) else f"the documents {listed(statement.seen)}"
    return (
        f"{statement.title} (read {seen})\n"
        f"Reasoning: {statement.reasoning or 'not given'}\n"
        f"Answer: {statement.answer or 'not given'}\n"
        f"Cited documents: {listed(statement.cited)}"
    )
