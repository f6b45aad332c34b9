"""The values that everything else passes around: frozen, comparable, and the same after a trip through JSON.

Wire formats are those of the command line: one question per line in, one :class:`RunResult` per line out.
Arrays (attention maps) stay out of JSON; they are kept beside it in :class:`AttentionMap`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

Status = Literal["ok", "parse_error", "out_of_range", "truncated", "timeout", "unavailable"]
"""Why a score is or is not there. Only ``ok`` comes with a number."""

RunStatus = Literal["running", "ok", "failed", "cancelled", "interrupted"]

Overflow = Literal["refuse", "shorten", "drop_last"]
"""What to do when the documents do not fit into the model's window: refuse the run, cut the end of the longest
documents to one common length, or leave out documents from the end of the list."""

ASIDE = "comparison"
"""The branch of stages that are no part of a run's own way: what was carried out beside it, to compare."""

Head = tuple[int, int]
"""A query head as (layer, head), both counted from 0."""


class Record(BaseModel):
    """Base of all records: immutable, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Document(Record):
    """One document of a question. ``gold`` is None where nobody said whether it holds the evidence."""

    id: str
    title: str = ""
    text: str
    gold: bool | None = None


class Question(Record):
    """A question with its documents; ``answers`` may be empty (unknown) and ``meta`` may hold anything."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    meta: dict[str, Any] = {}

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of the documents in input order."""
        return tuple(document.id for document in self.documents)

    @property
    def gold_ids(self) -> tuple[str, ...]:
        """Ids of the documents marked as evidence, in input order."""
        return tuple(document.id for document in self.documents if document.gold)

    def document(self, document_id: str) -> Document:
        """The document with this id; KeyError if there is none."""
        for document in self.documents:
            if document.id == document_id:
                return document
        raise KeyError(document_id)

    def with_documents(self, documents: tuple[Document, ...]) -> Question:
        """The same question over other documents."""
        return self.model_copy(update={"documents": documents})


class DocumentScore(Record):
    """A number for one document, or the status that says why there is none. In JSON: the number, or an object."""

    value: float | None = None
    status: Status = "ok"
    detail: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, data: Any) -> Any:
        return {"value": data} if isinstance(data, int | float) and not isinstance(data, bool) else data

    @model_validator(mode="after")
    def _number_iff_ok(self) -> Self:
        if (self.status == "ok") != (self.value is not None and math.isfinite(self.value)):
            raise ValueError(f"a score is a finite number with status ok, or no number with another status: {self!r}")
        return self

    @model_serializer
    def _to_json(self) -> float | dict[str, str]:
        if self.value is not None:
            return self.value
        return {"status": self.status, "detail": self.detail}


class Stage(Record):
    """One step of a method as seen by the documents: which came in, how each was scored, which went on and why.

    ``scores`` maps a signal's name to one entry per incoming document, so that "no score" always has a reason.
    ``calls`` points from a score to the model call behind it (an index into the run's ``ModelCall`` events).
    ``key_sentences`` are texts copied from the documents. ``thresholds`` maps a signal to the bar it was held to.
    """

    name: str
    title: str
    documents: tuple[str, ...]
    kept: tuple[str, ...]
    scores: dict[str, dict[str, DocumentScore]] = {}
    reasons: dict[str, str] = {}
    calls: dict[str, dict[str, int]] = {}
    key_sentences: dict[str, tuple[str, ...]] = {}
    thresholds: dict[str, float] = {}
    branch: str = ""
    note: str = ""
    seconds: float = 0.0

    @model_validator(mode="after")
    def _ledger_is_complete(self) -> Self:
        known = set(self.documents)
        if len(known) != len(self.documents):
            raise ValueError(f"stage {self.name!r}: a document id comes in twice")
        if not set(self.kept) <= known:
            raise ValueError(f"stage {self.name!r}: keeps documents that did not come in: {set(self.kept) - known}")
        for signal, scores in self.scores.items():
            if set(scores) != known:
                raise ValueError(f"stage {self.name!r}: signal {signal!r} must score every incoming document")
        return self


class Opinion(Record):
    """What one voice said: an agent, a judge, or the reading of a single document that votes.

    ``documents`` are the ids it cites (or, for a vote, the one document it read), ``weight`` its say in a vote.
    """

    role: str
    title: str
    answer: str
    reasoning: str = ""
    documents: tuple[str, ...] = ()
    weight: float | None = None
    group: str = ""
    chosen: bool = False
    status: Status = "ok"
    call: int | None = None


class Alternative(Record):
    """What would be chosen if one threshold were moved to ``value``."""

    threshold: str
    value: float
    treatment: str


class Routing(Record):
    """A routing decision with everything it rests on. Margins are signed distances measure minus threshold."""

    treatment: str
    title: str
    reason: str
    model_class: str = ""
    coupling: str = ""
    measures: dict[str, float | None] = {}
    thresholds: dict[str, float] = {}
    margins: dict[str, float] = {}
    alternatives: tuple[Alternative, ...] = ()
    note: str = ""


class Cost(Record):
    """What a run or a call took: of the ``prompt_tokens`` sent, ``prefill_tokens_computed`` went through the model.

    ``cached_tokens`` are the sent tokens whose keys and values were reused. A pass that stops after layer l of L
    counts l/L of its tokens as computed. ``seconds`` is wall time. ``remembered_calls`` are those of the ``llm_calls``
    that work remembered from earlier ones answered or shortened (:mod:`mdqa.backends.remembering`): where there are
    any, ``prefill_tokens_computed`` and ``seconds`` are less than the method takes on its own, see ``own_work``.
    """

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    prefill_tokens_computed: int = 0
    seconds: float = 0.0
    remembered_calls: int = 0

    @property
    def own_work(self) -> bool:
        """Whether time and computed tokens are what this takes without anything remembered from before."""
        return self.remembered_calls == 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in Cost.model_fields})


class Generation(Record):
    """A reply of the model. ``call`` is its index among the run's model calls once it is recorded (-1 before)."""

    text: str
    finish_reason: Literal["stop", "length", "cancelled"]
    cost: Cost
    seed: int = 0
    call: int = -1


class AttentionSummary(Record):
    """The part of an attention map that fits into JSON: mean mass per document and the heads that were used."""

    stage: str
    layers: int
    heads: int
    retrieval_heads: tuple[Head, ...]
    document_mass: dict[str, float]
    head_mass: dict[str, dict[str, float]]


class RunError(Record):
    """Why a run failed: the error's type, its text for people, and where it happened."""

    type: str
    message: str
    stage: str = ""


class Profile(Record):
    """What has to be prepared once per model: CAFE's heads, MADARA's probe. ``values`` belongs to the method."""

    name: str
    method: str
    model: str
    data: str
    n: int
    seed: int
    created: str
    versions: dict[str, str] = {}
    values: dict[str, Any] = {}
    note: str = ""


class RunResult(Record):
    """One run of one method on one question, complete or as far as it got.

    ``to_line`` is the wire format of ``python -m mdqa answer``: the question's id as ``id`` and no documents.
    """

    id: str
    question: Question
    method: str
    model: str
    backend: str
    status: RunStatus
    created: str
    seed: int
    answer: str = ""
    stages: tuple[Stage, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    routing: Routing | None = None
    attention_summary: tuple[AttentionSummary, ...] = ()
    notices: tuple[str, ...] = ()
    fallbacks: int = 0
    parse_failures: int = 0
    cost: Cost = Cost()
    config: dict[str, Any] = {}
    profile: str = ""
    overflow: Overflow = "refuse"
    error: RunError | None = None

    def to_line(self) -> dict[str, Any]:
        """The record as a JSON-ready object with the question's id first, its documents left out."""
        line = self.model_dump(mode="json", exclude={"question", "id"})
        return {"id": self.question.id, "run": self.id, "question": self.question.question, **line}


@dataclass(frozen=True)
class TokenHeat:
    """Attention per document token for a few heads, with the text each token stands for.

    ``texts``: one rendered block per document (header and text). ``document``: (T,) index into ``texts``.
    ``spans``: (T, 2) character offsets into that text. ``weights``: (len(heads), T), mean over question rows.
    """

    heads: tuple[Head, ...]
    texts: tuple[str, ...]
    document: np.ndarray
    spans: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class AttentionMap:
    """Attention mass that the question puts on each document, for every head of the layers that were run.

    ``mass``: (layers, heads, documents) float32, softmax weights, mean over the question's rows and pooled over
    the document's tokens (``pool``: sum or mean). ``retrieval_heads``: the heads the stage worked with.
    """

    stage: str
    title: str
    documents: tuple[str, ...]
    mass: np.ndarray
    retrieval_heads: tuple[Head, ...] = ()
    model_layers: int = 0
    pool: str = "sum"
    heat: TokenHeat | None = field(default=None, compare=False)

    def summary(self) -> AttentionSummary:
        """The map without its array: means over all heads, and the rows of the retrieval heads."""
        layers, heads, _ = self.mass.shape
        mean = self.mass.mean(axis=(0, 1))
        return AttentionSummary(
            stage=self.stage,
            layers=layers,
            heads=heads,
            retrieval_heads=self.retrieval_heads,
            document_mass={d: float(m) for d, m in zip(self.documents, mean, strict=True)},
            head_mass={
                f"{layer}-{head}": {d: float(m) for d, m in zip(self.documents, self.mass[layer, head], strict=True)}
                for layer, head in self.retrieval_heads
            },
        )


def as_score(value: float | DocumentScore) -> DocumentScore:
    """A plain number as a score with status ok; a score as it is."""
    return value if isinstance(value, DocumentScore) else DocumentScore(value=float(value))


def numbers(scores: Mapping[str, DocumentScore], default: float) -> dict[str, float]:
    """The scores as plain numbers, ``default`` where there is only a status."""
    return {key: default if score.value is None else score.value for key, score in scores.items()}
