"""The recorder: the voice in which a method says what it does.

Model calls, stages, opinions, routing and notices become events; the cost is counted and a stop is checked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from mdqa.backends.base import Attention, GenerationRequest, Likelihood, Noticing, Steering
from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import (
    AttentionMap,
    Cost,
    DocumentScore,
    Generation,
    Opinion,
    Routing,
    Stage,
    Status,
    as_score,
)
from mdqa.trace import (
    AttentionCaptured,
    BaseEvent,
    ModelCall,
    Notice,
    OpinionGiven,
    PartialScores,
    Progress,
    Routed,
    StageFinished,
    StageStarted,
    TextDelta,
)

if TYPE_CHECKING:
    from mdqa.methods.base import Tools

Purpose = Literal["generate", "likelihood", "attention"]


class StageDraft:
    """A stage being written. Scores and reasons are given as they become known; leaving the block completes it."""

    def __init__(self, run: Recorder, name: str, title: str, documents: Sequence[str], branch: str) -> None:
        self._run = run
        self.name, self.title, self.branch = name, title, branch
        self.documents = tuple(documents)
        self.kept: tuple[str, ...] = self.documents
        self.scores: dict[str, dict[str, DocumentScore]] = {}
        self.calls: dict[str, dict[str, int]] = {}
        self.reasons: dict[str, str] = {}
        self.key_sentences: dict[str, tuple[str, ...]] = {}
        self.thresholds: dict[str, float] = {}
        self.note = ""

    def score(
        self,
        signal: str,
        scores: Mapping[str, float | DocumentScore],
        *,
        calls: Mapping[str, int] | None = None,
        threshold: float | None = None,
    ) -> dict[str, DocumentScore]:
        """Record one signal for every incoming document and show it at once."""
        self.scores[signal] = {key: as_score(value) for key, value in scores.items()}
        if calls:
            self.calls[signal] = dict(calls)
        if threshold is not None:
            self.thresholds[signal] = threshold
        self._run.emit(PartialScores(stage=self.name, signal=signal, scores=self.scores[signal]))
        return self.scores[signal]

    def keep(self, kept: Sequence[str], reasons: Mapping[str, str] | None = None) -> None:
        """The documents that go on, in the order in which they go on, with the reason per document."""
        self.kept = tuple(kept)
        self.reasons.update(reasons or {})

    def progress(self, done: int, total: int) -> None:
        """Say how far the stage is."""
        self._run.emit(Progress(stage=self.name, done=done, total=total))

    def finish(self, seconds: float) -> Stage:
        """The complete ledger entry."""
        return Stage(
            name=self.name,
            title=self.title,
            documents=self.documents,
            kept=self.kept,
            scores=self.scores,
            reasons=self.reasons,
            calls=self.calls,
            key_sentences=self.key_sentences,
            thresholds=self.thresholds,
            branch=self.branch,
            note=self.note,
            seconds=seconds,
        )


class Recorder:
    """The method's voice: model calls, stages, opinions, routing and notices become events in ``sink``."""

    def __init__(self, tools: Tools, *, sink: Callable[[BaseEvent], None], cancel: CancelToken, seed: int = 0) -> None:
        self.tools = tools
        self.cancel = cancel
        self.seed = seed
        self.cost = Cost()
        self.stage_name = ""
        self._sink = sink
        self._calls = 0
        self._passed_on: set[str] = set()
        self._started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def emit(self, event: BaseEvent) -> None:
        """Send an event, stamped with the time since the run began."""
        self._sink(event.model_copy(update={"at": self.elapsed}))

    @contextmanager
    def stage(self, name: str, title: str, documents: Sequence[str], *, branch: str = "") -> Iterator[StageDraft]:
        """Open a stage over these incoming documents; it is emitted when the block ends without an exception."""
        self.cancel.check()
        began, self.stage_name = time.perf_counter(), name
        draft = StageDraft(self, name, title, documents, branch)
        self.emit(StageStarted(name=name, title=title, documents=len(draft.documents)))
        yield draft
        self.emit(StageFinished(stage=draft.finish(time.perf_counter() - began)))
        self.stage_name = ""

    def generate(
        self,
        role: str,
        requests: Sequence[GenerationRequest],
        *,
        documents: Sequence[Sequence[str]] | None = None,
        stream: bool = False,
        attempt: int = 1,
        prefix: Any = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """Replies to the requests, each recorded as a model call; the result's ``call`` is its index.

        ``documents`` says per request which documents it is about (default: those in its prompt). The ``parse``
        status of a call is recorded as ok; ``asking.ask`` records calls whose replies are parsed.
        """
        generations = self.generate_unrecorded(role, requests, stream=stream, prefix=prefix, steering=steering)
        about = documents or [request.prompt.document_ids for request in requests]
        return [
            self.record_call(role, request, generation, documents=ids, attempt=attempt)
            for request, generation, ids in zip(requests, generations, about, strict=True)
        ]

    def generate_unrecorded(
        self,
        role: str,
        requests: Sequence[GenerationRequest],
        *,
        stream: bool = False,
        prefix: Any = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """Replies without ``ModelCall`` events, for callers that first parse them; progress and text are shown."""
        self.cancel.check()
        stage, done = self.stage_name, 0

        def on_done(_: int) -> None:
            nonlocal done
            done += 1
            self.emit(Progress(stage=stage, done=done, total=len(requests)))

        def on_text(_: int, text: str) -> None:
            self.emit(TextDelta(role=role, text=text))

        generations = self.tools.backend.generate(
            requests,
            cancel=self.cancel,
            on_text=on_text if stream else None,
            on_done=on_done if len(requests) > 1 else None,
            prefix=prefix,
            steering=steering,
        )
        self._pass_on_notices()
        self.cancel.check()
        return generations

    def record_call(
        self,
        role: str,
        request: GenerationRequest,
        generation: Generation,
        *,
        documents: Sequence[str],
        parse: Status = "ok",
        attempt: int = 1,
    ) -> Generation:
        """Record one reply as a model call and return it with its index."""
        index = self._record(
            role,
            "generate",
            request.prompt,
            generation.cost,
            documents=tuple(documents),
            output=generation.text,
            finish_reason=generation.finish_reason,
            seed=generation.seed,
            parse=parse,
            attempt=attempt,
        )
        return generation.model_copy(update={"call": index})

    def log_likelihood(
        self, role: str, prompts: Sequence[Prompt], *, target: SegmentKind | Literal["reply"]
    ) -> list[tuple[Likelihood, int]]:
        """Log-likelihood of each prompt's target with the index of the recorded call."""
        self.cancel.check()
        stage, done = self.stage_name, 0

        def on_done(_: int) -> None:
            nonlocal done
            done += 1
            self.emit(Progress(stage=stage, done=done, total=len(prompts)))

        results = self.tools.scoring.log_likelihood(prompts, target=target, cancel=self.cancel, on_done=on_done)
        self._pass_on_notices()
        return [
            (result, self._record(role, "likelihood", prompt, result.cost, documents=prompt.document_ids))
            for prompt, result in zip(prompts, results, strict=True)
        ]

    def _pass_on_notices(self) -> None:
        """Say what the backend has to say of how it worked, once in a run."""
        if isinstance(self.tools.backend, Noticing):
            for words in self.tools.backend.take_notices():
                if words not in self._passed_on:
                    self._passed_on.add(words)
                    self.notice(words)

    def attend(self, role: str, prompt: Prompt, *, publish: bool = True, **options: Any) -> Attention:
        """An attention pass (options as in ``InspectableBackend.attend``); ``publish`` adds its map to the result."""
        self.cancel.check()
        options.setdefault("stage", self.stage_name)
        attention = self.tools.inspectable.attend(prompt, cancel=self.cancel, **options)
        self._record(role, "attention", prompt, attention.cost, documents=prompt.document_ids)
        if publish:
            self.publish_map(attention.map)
        return attention

    def publish_map(self, attention_map: AttentionMap) -> None:
        """Add an attention map to the result."""
        self.emit(AttentionCaptured(stage=attention_map.stage, map=attention_map))

    def opinion(self, opinion: Opinion) -> None:
        """Record what an agent, judge or single reading said."""
        self.emit(OpinionGiven(opinion=opinion))

    def route(self, routing: Routing) -> None:
        """Record the routing decision."""
        self.emit(Routed(routing=routing))

    def notice(self, message: str, *, warning: bool = False, fallback: bool = False) -> None:
        """Tell the person something; ``fallback`` counts it as a fallback taken."""
        self.emit(Notice(level="warning" if warning else "info", message=message, fallback=fallback))

    def _record(self, role: str, purpose: Purpose, prompt: Prompt, cost: Cost, **more: Any) -> int:
        index, self._calls = self._calls, self._calls + 1
        self.cost = self.cost + cost
        self.emit(
            ModelCall(
                index=index,
                stage=self.stage_name,
                role=role,
                purpose=purpose,
                prompt=self.tools.backend.render(prompt),
                prompt_hash=prompt.fingerprint,
                cost=cost,
                **more,
            )
        )
        return index
