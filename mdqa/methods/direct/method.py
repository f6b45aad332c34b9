"""Direct answering: all documents in input order, one call (the No-Filter and Vanilla baseline of the three papers).

With ``context`` gold_only it is Oracle RAG (CAFE section 5), with none the closed-book setting of Lost in the Middle.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from mdqa.backends.base import GenerationRequest
from mdqa.errors import InputError
from mdqa.methods.answers import answer_prompt, short_answer
from mdqa.methods.base import Method, MethodConfig
from mdqa.methods.recorder import Recorder
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Question

UNSCORED = DocumentScore(status="unavailable", detail="direct answering does not score documents")


class DirectConfig(MethodConfig):
    """Options of direct answering."""

    context: Literal["all", "gold_only", "none"] = Field(
        "all",
        description="Documents the model reads: all of them, only those marked gold (oracle), or none (closed book).",
    )
    question_twice: bool = Field(
        False, description="Also put the question before the documents (query-aware contextualisation)."
    )
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest reply in tokens.")
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 is greedy decoding; higher is more varied.")


class DirectAnswering(Method):
    """Gives the model the documents as they came and asks once."""

    name: ClassVar[str] = "direct"
    title: ClassVar[str] = "Direct answering (No-Filter)"
    summary: ClassVar[str] = "All documents in input order, the question last, one greedy reply. The baseline."
    Config: ClassVar[type[MethodConfig]] = DirectConfig
    closed_book: ClassVar[bool] = True
    config: DirectConfig

    def answer(self, item: Question, run: Recorder) -> str:
        """The model's reply up to its first line break."""
        documents = self._select(item, run)
        request = GenerationRequest(
            self._prompt(item.question, documents),
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            seed=run.seed,
        )
        with run.stage("answer", "Answer", [document.id for document in documents]):
            (reply,) = run.generate("answer", [request], stream=True)
            answer = short_answer(reply.text)
            if not answer:
                run.notice("The model's reply is empty.", warning=True)
        return answer

    def _select(self, item: Question, run: Recorder) -> tuple[Document, ...]:
        """The documents that the model reads, recorded as the stage ``input``."""
        context = self.config.context
        if context == "gold_only" and not item.gold_ids:
            raise InputError(
                "no document is marked gold, and context gold_only reads only those; mark the evidence or choose all",
                place=f"question {item.id!r}",
            )
        chosen = {"all": item.document_ids, "gold_only": item.gold_ids, "none": ()}[context]
        reason = {"all": "", "gold_only": "not marked gold (oracle)", "none": "closed book: no document is read"}[
            context
        ]
        with run.stage("input", "Input", item.document_ids) as stage:
            stage.score("relevance", dict.fromkeys(item.document_ids, UNSCORED))
            stage.keep(chosen, {document: reason for document in item.document_ids if document not in chosen})
        return tuple(document for document in item.documents if document.id in chosen)

    def _prompt(self, question: str, documents: tuple[Document, ...]) -> Prompt:
        if not documents:
            return load_template(__package__, "closed_book").fill(question=question_segment(question))
        if not self.config.question_twice:
            return answer_prompt(question, documents)
        return load_template(__package__, "answer_question_twice").fill(
            documents=document_segments(documents),
            question=question_segment(question),
            question_before=Segment(question.strip()),  # plain text: only the last one is the question that attends
        )
