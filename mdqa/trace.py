"""What happens during a run, as a stream of small typed events.

Every event carries ``at``, seconds since the run began. One discriminated union (:data:`Event`) reads any of them
back. ``TRACE_VERSION`` rises when an event changes its meaning. :class:`TextDelta` and :class:`Progress` are for the
screen only and are not stored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from mdqa.records import AttentionMap, Cost, DocumentScore, Opinion, Record, Routing, RunError, RunStatus, Stage, Status

TRACE_VERSION = 1


class BaseEvent(Record):
    """Common part of all events."""

    at: float = 0.0


class RunStarted(BaseEvent):
    """The run exists; nothing was computed yet."""

    kind: Literal["run_started"] = "run_started"
    method: str
    model: str
    documents: int
    trace_version: int = TRACE_VERSION


class StageStarted(BaseEvent):
    """A stage begins."""

    kind: Literal["stage_started"] = "stage_started"
    name: str
    title: str
    documents: int


class Progress(BaseEvent):
    """``done`` of ``total`` steps of the running stage are finished (screen only)."""

    kind: Literal["progress"] = "progress"
    stage: str
    done: int
    total: int


class PartialScores(BaseEvent):
    """Scores of the running stage that are known already."""

    kind: Literal["partial_scores"] = "partial_scores"
    stage: str
    signal: str
    scores: dict[str, DocumentScore]


class TextDelta(BaseEvent):
    """A piece of text that the model is just writing (screen only)."""

    kind: Literal["text_delta"] = "text_delta"
    role: str
    text: str


class ModelCall(BaseEvent):
    """One call of the model: exact prompt, output, tokens and time. ``index`` counts from 0 within the run.

    ``purpose`` is ``generate``, ``likelihood`` or ``attention``; only the first has an output. ``parse`` says how
    reading the output went, ``attempt`` is 2 for a retry.
    """

    kind: Literal["model_call"] = "model_call"
    index: int
    stage: str
    role: str
    purpose: Literal["generate", "likelihood", "attention"]
    documents: tuple[str, ...] = ()
    prompt: str
    prompt_hash: str
    output: str = ""
    finish_reason: str = ""
    cost: Cost
    seed: int = 0
    parse: Status = "ok"
    attempt: int = 1


class StageFinished(BaseEvent):
    """A stage is complete; its ledger entry is final."""

    kind: Literal["stage_finished"] = "stage_finished"
    stage: Stage


class OpinionGiven(BaseEvent):
    """An agent, a judge or a single reading gave its answer."""

    kind: Literal["opinion"] = "opinion"
    opinion: Opinion


class Routed(BaseEvent):
    """The router decided."""

    kind: Literal["routed"] = "routed"
    routing: Routing


class AttentionCaptured(BaseEvent):
    """An attention map is there. The arrays travel with the live event only; storage keeps them apart."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    kind: Literal["attention"] = "attention"
    stage: str
    map: AttentionMap | None = Field(default=None, exclude=True)


class Notice(BaseEvent):
    """Something the person should know: a fallback that was taken, a document that was cut."""

    kind: Literal["notice"] = "notice"
    level: Literal["info", "warning"] = "info"
    message: str
    fallback: bool = False


class RunFinished(BaseEvent):
    """The run ended in ``status``; with a failure, why."""

    kind: Literal["run_finished"] = "run_finished"
    status: RunStatus
    answer: str = ""
    cost: Cost
    error: RunError | None = None


Event = Annotated[
    RunStarted
    | StageStarted
    | Progress
    | PartialScores
    | TextDelta
    | ModelCall
    | StageFinished
    | OpinionGiven
    | Routed
    | AttentionCaptured
    | Notice
    | RunFinished,
    Field(discriminator="kind"),
]

SCREEN_ONLY = (Progress, TextDelta, PartialScores)
"""Events that need not be stored: what they say is in a later event."""

_ADAPTER: TypeAdapter[Any] = TypeAdapter(Event)


def read_event(data: dict[str, Any]) -> Event:
    """An event from its JSON object; pydantic's ValidationError if it is none."""
    event: Event = _ADAPTER.validate_python(data)
    return event
