"""What MADARA's assessment gains by asking in batches: beside the same calls one at a time, nothing shared.

``batched`` and ``one_at_a_time`` are the method itself with all documents assessed by three agents (treatment
``three_agent``): the same prompts, seeds and lengths of replies, retries included. The second goes through a backend
that hands every request on alone, so that each prompt is computed whole, as a loop over an endpoint without prefix
caching does. Time and tokens are those of the stage ``assessment``; memory is that of the whole run, in which the
generator's call follows. Replies are sampled with a seed each; where rounding in another batch turns a token over, a
reply goes on differently, so the number of equal replies and the tokens written are told too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from mdqa.backends.base import Backend, GenerationRequest, Steering, TextCallback
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError, PromptTooLong
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.recorder import Recorder
from mdqa.performance.cases import Case
from mdqa.performance.figures import Figure, Goal, compared, figures_of, skipped
from mdqa.performance.measuring import Measured, Sample, Variant
from mdqa.performance.model import transformers_backend
from mdqa.performance.plan import Plan
from mdqa.records import Cost, Generation, Question
from mdqa.registry import method_class
from mdqa.trace import BaseEvent, ModelCall, StageFinished, StageStarted

HEADLINE_DOCUMENTS = 10
STAGE = "assessment"
FASTER = Goal(3, at_least=True)
SHARED = Goal(0.6)
OPTIONS: Mapping[str, Any] = MappingProxyType({"treatment": "three_agent"})


@dataclass
class Assessment:
    """What the assessing stage of one run took: wall and processor seconds, cost, replies by call."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    cost: Cost = field(default_factory=Cost)
    replies: dict[str, str] = field(default_factory=dict)
    _began: float = 0.0

    def take(self, event: BaseEvent) -> None:
        """Read one event of the run."""
        match event:
            case StageStarted(name=name) if name == STAGE:
                self._began = time.process_time()
            case StageFinished(stage=stage) if stage.name == STAGE:
                self.processor_seconds = time.process_time() - self._began
                self.seconds = stage.seconds
            case ModelCall(stage=stage, role=role, documents=documents, attempt=attempt) if stage == STAGE:
                self.cost = self.cost + event.cost
                self.replies[f"{role} {' '.join(documents)} {attempt}"] = event.output


class OneAtATime:
    """Hands every request to a backend alone and passes no prefix on: nothing is batched, nothing is shared."""

    def __init__(self, backend: Backend) -> None:
        self.name, self.model, self.window = backend.name, backend.model, backend.window
        self.capabilities = backend.capabilities
        self.render, self.count_tokens, self.close = backend.render, backend.count_tokens, backend.close
        self._backend = backend

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        *,
        cancel: CancelToken,
        on_text: TextCallback | None = None,
        on_done: Callable[[int], None] | None = None,
        prefix: Any = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """See :class:`mdqa.backends.base.Backend`; ``prefix`` is left aside."""
        replies = []
        for index, request in enumerate(requests):
            said = None if on_text is None else partial(_of_request, on_text, index)
            replies += self._backend.generate([request], cancel=cancel, on_text=said, steering=steering)
            if on_done is not None:
                on_done(index)
        return replies


def _of_request(on_text: TextCallback, index: int, _: int, text: str) -> None:
    on_text(index, text)


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures per case as they come; ``plan.options`` are options of the method.

    At once: CapabilityError for a backend without weights of its own, ConfigError for an option that cannot be used.
    """
    backend = transformers_backend(plan.tools.backend)
    config = MADARAConfig.parse({**OPTIONS, **plan.options})
    if config.treatment in ("auto", "nf") or (config.treatment == "pde" and config.pde_votes == "random"):
        raise ConfigError(f"bench madara measures the assessment, which treatment {config.treatment} may leave out")
    return _bench(plan, backend, config)


def _bench(plan: Plan, backend: Backend, config: MADARAConfig) -> Iterator[Figure]:
    for case in plan.cases:
        documents = len(case.items[0].documents)
        try:
            measured = plan.measure(case, partial(_variants, backend, plan, config))
        except PromptTooLong as problem:
            note = f"{problem.tokens:,} tokens do not fit into the model's window of {problem.window:,}"
            yield skipped("batched.time", "s", note, tokens=problem.tokens, documents=documents)
            continue
        yield from figures(measured, case, plan.meter.source)


def _variants(backend: Backend, plan: Plan, config: MADARAConfig, item: Question) -> list[Variant]:
    return [
        Variant("batched", partial(assess, item, config, plan, backend)),
        Variant("one_at_a_time", partial(assess, item, config, plan, OneAtATime(backend))),
    ]


def assess(item: Question, config: MADARAConfig, plan: Plan, backend: Backend) -> Assessment:
    """The method as it is, over a backend."""
    assessment, tools = Assessment(), Tools(backend, plan.tools.make_encoder)
    run = Recorder(tools, sink=assessment.take, cancel=plan.cancel, seed=plan.seed)
    method_class("madara")(config, tools).answer(item, run)
    return assessment


def figures(measured: Measured, case: Case, memory: str) -> Iterator[Figure]:
    """The figures of one case. ``memory``: why memory could not be read, where it could not."""
    batched, single = (measured.samples.get(name, []) for name in ("batched", "one_at_a_time"))
    counts = {len(item.documents) for item in case.items}
    more: dict[str, Any] = {"documents": max(counts)}
    if batched:
        more["tokens"] = max(sample.outcome.cost.prompt_tokens for sample in batched)
    yield from figures_of(measured, "batched", memory=memory, **more)
    yield from figures_of(measured, "one_at_a_time", "batched", memory=memory, **more)
    if not batched or not single:
        return
    headline = counts == {HEADLINE_DOCUMENTS}
    for name, unit, read, goal in _TIMES:
        goals = {"goal": goal} if headline else {}
        values, bases = _of(single, read), _of(batched, read)
        yield compared(f"assessment.one_at_a_time.{name}", unit, values, bases, "batched", **goals, **more)
    goals = {"goal": SHARED} if headline else {}
    computed, sent = (_of(batched, read) for read in (_computed, _sent))
    yield compared("assessment.prompt_tokens_computed", "tokens", computed, sent, "tokens sent", **goals, **more)
    for name, unit, read in _SAMENESS:
        yield compared(f"assessment.{name}", unit, _of(batched, read), _of(single, read), "one_at_a_time", **more)
    pairs = [(a.outcome.replies, b.outcome.replies) for a, b in zip(batched, single, strict=True)]
    equal = [float(sum(b.get(call) == reply for call, reply in a.items())) for a, b in pairs]
    yield compared("assessment.equal_replies", "replies", equal, [float(len(a)) for a, _ in pairs], "all", **more)


def _of(samples: Sequence[Sample], read: Callable[[Assessment], float]) -> list[float]:
    return [read(sample.outcome) for sample in samples]


def _computed(assessment: Assessment) -> float:
    return float(assessment.cost.prefill_tokens_computed)


def _sent(assessment: Assessment) -> float:
    return float(assessment.cost.prompt_tokens)


_TIMES: tuple[tuple[str, str, Callable[[Assessment], float], Goal | None], ...] = (
    ("time", "s", lambda assessment: assessment.seconds, FASTER),
    ("processor_time", "s", lambda assessment: assessment.processor_seconds, None),
)
_SAMENESS: tuple[tuple[str, str, Callable[[Assessment], float]], ...] = (
    ("calls", "calls", lambda assessment: float(assessment.cost.llm_calls)),
    ("completion_tokens", "tokens", lambda assessment: float(assessment.cost.completion_tokens)),
)
