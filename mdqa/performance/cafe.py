"""What CAFE costs beside direct answering: the time to the first token, and what its two savings save.

``direct`` and ``cafe`` are the methods themselves, told to write one token. Stage 1's stopped pass and the steered
prefill are then run again by themselves with the very arguments that the method gave the backend, beside the same
calls without the saving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mdqa.backends.base import Attention, GenerationRequest, InspectableBackend
from mdqa.errors import ProfileError, PromptTooLong
from mdqa.performance.cases import Case
from mdqa.performance.figures import Figure, Goal, compared, figures_of, skipped
from mdqa.performance.measuring import Measured, Variant
from mdqa.performance.model import attention_of, transformers_backend
from mdqa.performance.plan import Plan
from mdqa.performance.runs import Ran, run_method
from mdqa.prompting import Prompt
from mdqa.records import Generation, Question

if TYPE_CHECKING:
    from mdqa.backends.hf import TransformersBackend

HEADLINE_DOCUMENTS = 20
OVER_DIRECT = Goal(1.1)
SLACK = 1.05
"""The stopped pass may take so much more than its share of the layers."""


class Watched:
    """Passes every call on to a backend and keeps what ``attend`` and ``generate`` were asked for."""

    def __init__(self, backend: InspectableBackend) -> None:
        self.name, self.model, self.window = backend.name, backend.model, backend.window
        self.capabilities, self.layers, self.heads = backend.capabilities, backend.layers, backend.heads
        self.render, self.count_tokens, self.close = backend.render, backend.count_tokens, backend.close
        self.log_likelihood = backend.log_likelihood
        self._backend = backend
        self.attended: list[tuple[Prompt, dict[str, Any]]] = []
        self.generated: list[tuple[Sequence[GenerationRequest], dict[str, Any]]] = []

    def attend(self, prompt: Prompt, **options: Any) -> Attention:
        """See :class:`mdqa.backends.base.InspectableBackend`."""
        self.attended.append((prompt, options))
        return self._backend.attend(prompt, **options)

    def generate(self, requests: Sequence[GenerationRequest], **options: Any) -> list[Generation]:
        """See :class:`mdqa.backends.base.Backend`."""
        self.generated.append((requests, options))
        return self._backend.generate(requests, **options)


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures per case as they come.

    At once: ProfileError without a CAFE profile of the model, CapabilityError for a backend without weights,
    ConfigError for options.
    """
    plan.refuse_options("cafe")
    backend = transformers_backend(plan.tools.backend)
    profile = plan.find_profile("cafe")
    if profile is None:
        raise ProfileError(
            f"there is no CAFE profile of {backend.model!r}; make one with: python -m mdqa calibrate --method cafe "
            "--input FILE --name NAME, or name one with --profile"
        )
    return _bench(replace(plan, tools=replace(plan.tools, profile=profile)), backend)


def _bench(plan: Plan, backend: TransformersBackend) -> Iterator[Figure]:
    for case in plan.cases:
        try:
            yield from _first_token(case, backend, plan)
            yield from _savings(case, backend, plan)
        except PromptTooLong as problem:
            note = f"{problem.tokens:,} tokens do not fit into the model's window of {problem.window:,}"
            yield skipped("cafe.time", "s", note, tokens=problem.tokens, documents=len(case.items[0].documents))


def first_token(method: str, item: Question, plan: Plan, backend: InspectableBackend) -> Ran:
    """The real method with one token to write."""
    return run_method(method, {"max_new_tokens": 1}, item, plan, backend)


def _first_token(case: Case, backend: TransformersBackend, plan: Plan) -> Iterator[Figure]:
    def variants(item: Question) -> list[Variant]:
        return [
            Variant(
                "direct",
                partial(first_token, "direct", item, plan, backend),
                partial(attention_of, backend.pretrained, "sdpa"),
            ),
            Variant("cafe", partial(first_token, "cafe", item, plan, backend)),
        ]

    measured = plan.measure(case, variants)
    direct, cafe = measured.samples.get("direct", []), measured.samples.get("cafe", [])
    more: dict[str, Any] = {"documents": len(case.items[0].documents)}
    if direct:
        more["tokens"] = max(sample.outcome.cost.prompt_tokens for sample in direct)
    goals = {"time": OVER_DIRECT} if more["documents"] == HEADLINE_DOCUMENTS else {}
    yield from figures_of(measured, "direct", memory=plan.meter.source, **more)
    yield from figures_of(measured, "cafe", "direct", goals=goals, memory=plan.meter.source, **more)
    if not direct or not cafe:
        return
    totals = [sample.seconds for sample in direct]
    for name in dict.fromkeys(stage.name for stage in cafe[0].outcome.stages):
        yield compared(f"cafe.{name}.time", "s", [s.outcome.seconds_of(name) for s in cafe], totals, "direct", **more)
    computed, whole = ([float(s.outcome.cost.prefill_tokens_computed) for s in samples] for samples in (cafe, direct))
    yield compared("cafe.prompt_tokens_computed", "tokens", computed, whole, "direct", **more)
    kept = [float(len(s.outcome.stages[-1].kept)) for s in cafe]
    incoming = [float(len(s.outcome.stages[0].documents)) for s in cafe]
    yield compared("cafe.documents_kept", "documents", kept, incoming, "all documents", **more)


def _savings(case: Case, backend: TransformersBackend, plan: Plan) -> Iterator[Figure]:
    """Stage 1 stopped and whole, the steered prefill with and without reuse: in turn, by themselves."""
    measured = plan.measure(case, partial(_saving_variants, backend, plan))
    more: dict[str, Any] = {"documents": len(case.items[0].documents), "memory": plan.meter.source}
    goals, note = {}, ""
    if stopped := measured.samples.get("coarse_pass_stopped", []):
        run = stopped[0].outcome["layers"]
        goals = {"time": Goal(SLACK * run / backend.layers)}
        note = f"runs {run} of {backend.layers} layers ({run / backend.layers:.3f})"
    tokens = _most_tokens(measured, "coarse_pass_whole")
    yield from figures_of(
        measured, "coarse_pass_stopped", "coarse_pass_whole", goals=goals, note=note, tokens=tokens, **more
    )
    more["tokens"] = _most_tokens(measured, "steered_prefill_whole")
    yield from figures_of(measured, "steered_prefill_reusing", "steered_prefill_whole", **more)
    reusing = measured.samples.get("steered_prefill_reusing", [])
    if reusing:
        del more["memory"]
        computed, after = ([float(s.outcome[key]) for s in reusing] for key in ("computed", "from_question"))
        against = "rows from the question on"
        yield compared("steered_prefill.rows", "tokens", computed, after, against, goal=Goal(1), **more)


def _saving_variants(backend: TransformersBackend, plan: Plan, item: Question) -> list[Variant]:
    watched = Watched(backend)
    first_token("cafe", item, plan, watched)
    coarse_prompt, coarse = watched.attended[0]
    requests, answer = watched.generated[-1]
    question = backend.encoder.encode(requests[0].prompt)
    from_question = len(question.ids) - question.question.first

    def attend(**changed: Any) -> dict[str, int]:
        seen = backend.attend(coarse_prompt, **{**coarse, **changed})
        return {"layers": len(seen.map.mass), "tokens": seen.cost.prompt_tokens}

    def generate(**changed: Any) -> dict[str, int]:
        [reply] = backend.generate(requests, **{**answer, **changed})
        cost = reply.cost
        return {
            "computed": cost.prefill_tokens_computed,
            "from_question": from_question,
            "tokens": cost.prompt_tokens,
        }

    return [
        Variant("coarse_pass_stopped", attend),
        Variant("coarse_pass_whole", partial(attend, until_layer=None)),
        Variant("steered_prefill_reusing", generate),
        Variant("steered_prefill_whole", partial(generate, prefix=None)),
    ]


def _most_tokens(measured: Measured, variant: str) -> int | None:
    return max((sample.outcome["tokens"] for sample in measured.samples.get(variant, [])), default=None)
