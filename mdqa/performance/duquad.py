"""What DuQUAD costs beside direct answering: calls, prompt tokens sent and computed, time, by number of documents.

``direct`` and ``duquad`` are the methods themselves, both to the end of their answer. Sent tokens are those of all
prompts; computed ones went through the model: passes over the same documents share their keys and values, the Global
Agent's prompt with both passes of the attention contrast, and equal beginnings within a batch are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mdqa.errors import PromptTooLong
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.performance.cases import Case
from mdqa.performance.figures import Figure, Goal, compared, figures_of, skipped
from mdqa.performance.measuring import Measured, Sample, Variant
from mdqa.performance.model import transformers_backend
from mdqa.performance.plan import Plan
from mdqa.performance.runs import Ran, run_method
from mdqa.records import Question

if TYPE_CHECKING:
    from mdqa.backends.hf import TransformersBackend

HEADLINE_DOCUMENTS = 20
COMPUTED = Goal(3)


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures per case as they come; ``plan.options`` are options of the method.

    At once: CapabilityError for a backend without weights of its own, ConfigError for an option that cannot be used.
    """
    backend = transformers_backend(plan.tools.backend)
    DuQUADConfig.parse(dict(plan.options))
    return _bench(plan, backend)


def _bench(plan: Plan, backend: TransformersBackend) -> Iterator[Figure]:
    for case in plan.cases:
        try:
            measured = plan.measure(case, partial(_variants, backend, plan))
        except PromptTooLong as problem:
            note = f"{problem.tokens:,} tokens do not fit into the model's window of {problem.window:,}"
            yield skipped("duquad.time", "s", note, tokens=problem.tokens, documents=len(case.items[0].documents))
            continue
        yield from figures(measured, case, plan.meter.source)


def _variants(backend: TransformersBackend, plan: Plan, item: Question) -> list[Variant]:
    return [
        Variant("direct", partial(run_method, "direct", {}, item, plan, backend)),
        Variant("duquad", partial(run_method, "duquad", plan.options, item, plan, backend)),
    ]


def figures(measured: Measured, case: Case, memory: str) -> Iterator[Figure]:
    """The figures of one case. ``memory``: why memory could not be read, where it could not."""
    direct, duquad = (measured.samples.get(name, []) for name in ("direct", "duquad"))
    counts = {len(item.documents) for item in case.items}
    more: dict[str, Any] = {"documents": max(counts)}
    if direct:
        more["tokens"] = max(sample.outcome.cost.prompt_tokens for sample in direct)
    yield from figures_of(measured, "direct", memory=memory, **more)
    yield from figures_of(measured, "duquad", "direct", memory=memory, **more)
    if not direct or not duquad:
        return
    for name, unit, read in _COSTS:
        goals = {"goal": COMPUTED} if name == "prompt_tokens_computed" and counts == {HEADLINE_DOCUMENTS} else {}
        yield compared(f"duquad.{name}", unit, _of(duquad, read), _of(direct, read), "direct", **goals, **more)
    sent, computed = _of(duquad, _sent), _of(duquad, _computed)
    yield compared("duquad.computed_of_sent", "tokens", computed, sent, "tokens sent", **more)
    totals = [sample.seconds for sample in direct]
    for name in dict.fromkeys(stage.name for sample in duquad for stage in sample.outcome.stages):
        seconds = [sample.outcome.seconds_of(name) for sample in duquad]
        yield compared(f"duquad.{name}.time", "s", seconds, totals, "direct", **more)


def _of(samples: Sequence[Sample], read: Callable[[Ran], float]) -> list[float]:
    return [read(sample.outcome) for sample in samples]


def _sent(ran: Ran) -> float:
    return float(ran.cost.prompt_tokens)


def _computed(ran: Ran) -> float:
    return float(ran.cost.prefill_tokens_computed)


_COSTS: tuple[tuple[str, str, Callable[[Ran], float]], ...] = (
    ("calls", "calls", lambda ran: float(ran.cost.llm_calls)),
    ("prompt_tokens_sent", "tokens", _sent),
    ("prompt_tokens_computed", "tokens", _computed),
    ("completion_tokens", "tokens", lambda ran: float(ran.cost.completion_tokens)),
)
