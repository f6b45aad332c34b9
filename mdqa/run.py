"""One question through one method: the only place where an exception becomes a failed run.

:func:`run_one` makes the method's recorder, collects its events into a :class:`~mdqa.records.RunResult` and forwards
every event to ``sink`` (the screen, the store). It returns for every outcome; only a fault of the sink itself escapes.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mdqa.benchmarks.placing import is_closed_book
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, InputError, MdqaError, PromptTooLong
from mdqa.methods.base import MethodConfig, Tools
from mdqa.methods.recorder import Recorder
from mdqa.prompting import document_segment
from mdqa.records import (
    AttentionMap,
    Cost,
    Document,
    Opinion,
    Overflow,
    Question,
    Routing,
    RunError,
    RunResult,
    RunStatus,
    Stage,
)
from mdqa.registry import method_class
from mdqa.trace import (
    AttentionCaptured,
    BaseEvent,
    ModelCall,
    Notice,
    OpinionGiven,
    Routed,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
)

log = logging.getLogger(__name__)

INSTRUCTION_TOKENS = 768
"""Tokens of the window kept for instructions and chat turns, beside the reply, when documents are fitted."""

WORD_LENGTH = 40
"""So many characters are given up at most so that a shortened document ends with a whole word."""


@dataclass
class Collector:
    """Gathers a run's events into the parts of its result; ``maps`` holds the attention arrays.

    ``cost`` and ``at`` are those of what was told: of the model calls, and of the last event.
    """

    stages: list[Stage] = field(default_factory=list)
    opinions: list[Opinion] = field(default_factory=list)
    maps: list[AttentionMap] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    routing: Routing | None = None
    fallbacks: int = 0
    parse_failures: int = 0
    current_stage: str = ""
    cost: Cost = field(default_factory=Cost)
    at: float = 0.0

    def take(self, event: BaseEvent) -> None:
        """Add one event."""
        self.at = event.at
        match event:
            case StageStarted():
                self.current_stage = event.title
            case StageFinished():
                self.stages.append(event.stage)
                self.current_stage = ""
            case OpinionGiven():
                self.opinions.append(event.opinion)
            case AttentionCaptured(map=AttentionMap() as attention_map):
                self.maps.append(attention_map)
            case Routed():
                self.routing = event.routing
            case ModelCall():
                self.parse_failures += event.parse != "ok"
                self.cost += event.cost
            case Notice():
                self.notices.append(event.message)
                self.fallbacks += event.fallback

    def parts(self) -> dict[str, Any]:
        """The collected fields of a RunResult."""
        return {
            "stages": tuple(self.stages),
            "opinions": tuple(self.opinions),
            "routing": self.routing,
            "notices": tuple(self.notices),
            "fallbacks": self.fallbacks,
            "parse_failures": self.parse_failures,
            "attention_summary": tuple(attention_map.summary() for attention_map in self.maps),
        }


@dataclass(frozen=True)
class Outcome:
    """A finished run with its arrays."""

    result: RunResult
    maps: tuple[AttentionMap, ...]


def new_run_id() -> str:
    """A random run id: 32 hex digits."""
    return uuid.uuid4().hex


def begin(
    method: str,
    config: MethodConfig,
    item: Question,
    tools: Tools,
    *,
    seed: int = 0,
    run_id: str | None = None,
    overflow: Overflow = "refuse",
) -> RunResult:
    """The run's record before any work: status ``running``."""
    return RunResult(
        id=run_id or new_run_id(),
        question=item,
        method=method,
        model=tools.backend.model,
        backend=tools.backend.name,
        status="running",
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seed=seed,
        config=config.model_dump(mode="json"),
        profile=tools.profile.name if tools.profile else "",
        overflow=overflow,
    )


def run_one(
    header: RunResult,
    tools: Tools,
    *,
    sink: Callable[[BaseEvent], None] = lambda event: None,
    cancel: CancelToken | None = None,
) -> Outcome:
    """Carry out the run that ``header`` (from :func:`begin`) describes."""
    collector = Collector()

    def take(event: BaseEvent) -> None:
        collector.take(event)
        sink(event)

    run = Recorder(tools, sink=take, cancel=cancel or CancelToken(), seed=header.seed)
    began = time.perf_counter()
    run.emit(RunStarted(method=header.method, model=header.model, documents=len(header.question.documents)))
    answer, error = "", None
    status: RunStatus
    try:
        answer, status = _answer(header, tools, run), "ok"
    except Cancelled:
        status = "cancelled"
    except MdqaError as problem:
        status, error = "failed", _error(problem, str(problem), collector)
    except Exception as problem:  # a fault of ours is data, not a crash (the run keeps what it had)
        log.exception("a fault in the run %s", header.id)
        text = f"internal error: {type(problem).__name__}: {problem}"
        status, error = "failed", _error(problem, text, collector)
    cost = run.cost.model_copy(update={"seconds": time.perf_counter() - began})
    end = RunFinished(at=run.elapsed, status=status, answer=answer, cost=cost, error=error)
    return _ended(header, collector, end, sink)


def broken_off(
    header: RunResult, collector: Collector, problem: MdqaError | None, sink: Callable[[BaseEvent], None]
) -> Outcome:
    """The end of a :func:`run_one` whose process is gone, from the events that ``collector`` has of it.

    It failed by ``problem``; without one it was stopped.
    """
    cost = collector.cost.model_copy(update={"seconds": collector.at})
    error = _error(problem, str(problem), collector) if problem is not None else None
    status: RunStatus = "failed" if problem is not None else "cancelled"
    return _ended(header, collector, RunFinished(at=collector.at, status=status, cost=cost, error=error), sink)


def _ended(header: RunResult, collector: Collector, end: RunFinished, sink: Callable[[BaseEvent], None]) -> Outcome:
    ended = {"status": end.status, "answer": end.answer, "cost": end.cost, "error": end.error}
    sink(end)
    return Outcome(header.model_copy(update={**ended, **collector.parts()}), tuple(collector.maps))


def _answer(header: RunResult, tools: Tools, run: Recorder) -> str:
    cls = method_class(header.method)
    check_question(header.question, closed_book=cls.closed_book and is_closed_book(header.question))
    method = cls(cls.Config.parse(header.config), tools)
    item = fit_documents(header.question, run, header.overflow, reply_tokens=method.config.reply_tokens)
    return str(method.answer(item, run))


def _error(problem: BaseException, text: str, collector: Collector) -> RunError:
    return RunError(type=type(problem).__name__, message=text, stage=collector.current_stage)


def check_question(item: Question, *, closed_book: bool = False) -> None:
    """InputError unless there is a question, at least one document, no empty document and no repeated id.

    ``closed_book``: there may be no document.
    """
    if not item.question.strip():
        raise InputError("there is no question; write one", place=f"question {item.id!r}")
    if not item.documents and not closed_book:
        raise InputError("there are no documents; give at least one", place=f"question {item.id!r}")
    seen: set[str] = set()
    for number, document in enumerate(item.documents, 1):
        place = f"question {item.id!r}, document {number}"
        if not document.text.strip():
            raise InputError("the document is empty; remove it or give it a text", place=place)
        if document.id in seen:
            raise InputError(f"the id {document.id!r} is used twice; ids must differ", place=place)
        seen.add(document.id)


def fit_documents(item: Question, run: Recorder, overflow: Overflow, *, reply_tokens: int = 256) -> Question:
    """The question with documents that fit the window by the chosen rule; what was cut is said in the trace.

    ``INSTRUCTION_TOKENS`` and ``reply_tokens`` stay free. With ``refuse`` and too many tokens: PromptTooLong with
    the numbers.
    """
    backend = run.tools.backend

    def size(number: int, document: Document) -> int:
        return backend.count_tokens(document_segment(number, document).text) + 2

    sizes = [size(number, document) for number, document in enumerate(item.documents, 1)]
    budget = backend.window - INSTRUCTION_TOKENS - reply_tokens - backend.count_tokens(item.question)
    if sum(sizes) <= budget:
        return item
    if budget <= 0:
        tokens = backend.count_tokens(item.question)
        raise PromptTooLong(tokens, backend.window, reserved=INSTRUCTION_TOKENS + reply_tokens, role="question")
    if overflow == "refuse":
        reserved = backend.window - budget
        raise PromptTooLong(sum(sizes), backend.window, reserved=reserved, role="set of documents")
    if overflow == "drop_last":
        keep, total = 0, 0
        while total + sizes[keep] <= budget:
            total += sizes[keep]
            keep += 1
        if keep == 0:
            raise PromptTooLong(sizes[0], backend.window, reserved=backend.window - budget, role="first document")
        run.notice(
            f"{len(sizes) - keep} of {len(sizes)} documents were left out from the end of the list (rule drop_last): "
            f"{sum(sizes):,} tokens do not fit into {budget:,}.",
            warning=True,
        )
        return item.with_documents(item.documents[:keep])
    limit = _common_limit(sizes, budget)
    cut = {i for i, tokens in enumerate(sizes) if tokens > limit}
    run.notice(
        f"{len(cut)} of {len(sizes)} documents were cut to about {limit:,} tokens (rule shorten): "
        f"{sum(sizes):,} tokens do not fit into {budget:,}.",
        warning=True,
    )
    return item.with_documents(
        tuple(
            _shorten(document, sizes[i], limit, partial(size, i + 1)) if i in cut else document
            for i, document in enumerate(item.documents)
        )
    )


def _common_limit(sizes: list[int], budget: int) -> int:
    """The largest length to which all longer documents are cut so that the sum fits."""
    left, remaining = budget, len(sizes)
    for size in sorted(sizes):
        if size * remaining > left:
            return max(left // remaining, 1)
        left, remaining = left - size, remaining - 1
    return max(sizes)


def _shorten(document: Document, tokens: int, limit: int, size: Callable[[Document], int]) -> Document:
    """The beginning of a document of ``tokens`` tokens, of at most ``limit``, cut at a space where one is near.

    The text is cut in proportion and counted again, since its beginning may be denser than the rest.
    """
    text = document.text.strip()
    end = len(text)
    while True:
        end = max(int(end * limit / tokens * 0.95), 1)
        space = text.rfind(" ", max(end - WORD_LENGTH, 1), end)  # scripts without spaces have none near
        cut = document.model_copy(update={"text": text[: space if space > 0 else end] + " …"})
        tokens = size(cut)
        if tokens <= limit or end == 1:
            return cut
