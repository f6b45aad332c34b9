"""Work remembered from run to run, for a person who changes an option or a document and asks the same again.

The same attention pass, the same reply and the same likelihood are answered at once (the latter two by
:mod:`mdqa.backends.replies`); another pass, or a reply to a prompt that begins like a remembered one, starts from its
keys and values, so that only the rest is computed. Results are the inner backend's own: a remembered map is the one
that it gave, and reusing a beginning is the inner backend's work (``prefix``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from mdqa.backends.base import (
    AttendingRows,
    Attention,
    Backend,
    GenerationRequest,
    InspectableBackend,
    Likelihood,
    Movable,
    Noticing,
    Steering,
    TextCallback,
)
from mdqa.backends.pass_memory import Beginning, Pass, PassMemory, Wanted
from mdqa.backends.replies import REPLY_BYTES, ReplyMemory, likelihood_key, renumbered, reply_key
from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import Cost, Generation, Head

MEMORY_BYTES = 512 * 2**20


class RememberingBackend:
    """An inspectable backend that remembers what it did, what was not used for longest forgotten first.

    Args:
        inner: does the work.
        memory_bytes: limit for keys, values and maps. Keys and values of old passes go before their maps do.
        reply_bytes: limit for replies, and another one of the same size for likelihoods.

    Any thread may call any method. Closing forgets everything.
    """

    def __init__(
        self, inner: InspectableBackend, memory_bytes: int = MEMORY_BYTES, reply_bytes: int = REPLY_BYTES
    ) -> None:
        self.inner = inner
        self.name, self.model, self.window = inner.name, inner.model, inner.window
        self.capabilities = inner.capabilities
        self.layers, self.heads = inner.layers, inner.heads
        self._memory_bytes, self._moved_to = memory_bytes, ""
        self._memory = PassMemory(memory_bytes)
        self._replies: ReplyMemory[Generation] = ReplyMemory(reply_bytes)
        self._likelihoods: ReplyMemory[Likelihood] = ReplyMemory(reply_bytes)

    @property
    def remembered_bytes(self) -> int:
        """Memory that keys, values and maps take now."""
        return self._memory.bytes

    def attend(
        self,
        prompt: Prompt,
        *,
        stage: str,
        title: str,
        cancel: CancelToken,
        rows: AttendingRows = "question",
        pool: Literal["sum", "mean"] = "sum",
        until_layer: int | None = None,
        retrieval_heads: Sequence[Head] = (),
        prefix: Any = None,
        keep_prefix: bool = False,
    ) -> Attention:
        """See :class:`mdqa.backends.base.InspectableBackend`; a pass that is remembered costs no computation."""
        cancel.check()
        began = time.perf_counter()
        layers = self.layers if until_layer is None else min(until_layer + 1, self.layers)
        wanted = Wanted(prompt, rows, pool, layers, tuple(retrieval_heads))
        found = self._memory.find(wanted)
        if found is not None:
            return found.again(wanted, stage, title, time.perf_counter() - began, keep_prefix)
        text = self.inner.render(prompt)
        source = self._memory.owner(prefix) if prefix is not None else self._memory.longest([text], layers)
        attention = self.inner.attend(
            prompt,
            stage=stage,
            title=title,
            cancel=cancel,
            rows=rows,
            pool=pool,
            until_layer=until_layer,
            retrieval_heads=retrieval_heads,
            prefix=prefix if source is None else source.prefix,
            keep_prefix=True,
        )
        kept = _beginning(prompt, text, attention, source, layers)
        tokens = attention.cost.prompt_tokens
        self._memory.add(Pass(wanted, attention.map, attention.document_tokens, tokens, kept))
        cost = _shortened(attention.cost, prefix is None and source is not None)
        return replace(attention, cost=cost, prefix=attention.prefix if keep_prefix else None)

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
        """See :class:`mdqa.backends.base.Backend`; a reply that is remembered costs no computation.

        The others are written together; without a ``prefix`` they begin with the best remembered one.
        """
        cancel.check()

        def tell(index: int, reply: Generation) -> None:
            if on_text and reply.text:
                on_text(index, reply.text)
            if on_done:
                on_done(index)

        def write(missing: Sequence[int]) -> list[Generation]:
            asked = [requests[index] for index in missing]
            source = None
            if prefix is None and self._memory.bytes:
                source = self._memory.longest([self.inner.render(request.prompt) for request in asked], self.layers)
            start = prefix if source is None else source.prefix
            text, done = renumbered(on_text, missing), renumbered(on_done, missing)
            replies = self.inner.generate(
                asked, cancel=cancel, on_text=text, on_done=done, prefix=start, steering=steering
            )
            costs = [_shortened(reply.cost, source is not None) for reply in replies]
            return [reply.model_copy(update={"cost": cost}) for reply, cost in zip(replies, costs, strict=True)]

        return self._replies.complete([reply_key(request, steering) for request in requests], write, tell)

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """See :class:`mdqa.backends.base.ScoringBackend`; a likelihood that is remembered costs no computation."""
        cancel.check()

        def measure(missing: Sequence[int]) -> list[Likelihood]:
            asked, done = [prompts[index] for index in missing], renumbered(on_done, missing)
            return self.inner.log_likelihood(asked, target=target, cancel=cancel, on_done=done)

        def tell(index: int, known: Likelihood) -> None:
            if on_done:
                on_done(index)

        return self._likelihoods.complete([likelihood_key(prompt, target) for prompt in prompts], measure, tell)

    def render(self, prompt: Prompt) -> str:
        """The prompt exactly as the model sees it."""
        return self.inner.render(prompt)

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        return self.inner.count_tokens(text)

    def take_notices(self) -> list[str]:
        """What the inner backend has to say."""
        return self.inner.take_notices() if isinstance(self.inner, Noticing) else []

    def move(self, device: str) -> None:
        """See :class:`mdqa.backends.base.Movable`. Keys and values of the old device are forgotten."""
        if isinstance(self.inner, Movable) and device != self._moved_to:
            self._memory.close()
            self.inner.move(device)
            self._memory, self._moved_to = PassMemory(self._memory_bytes), device

    def close(self) -> None:
        """Forget everything and free the model's memory."""
        for memory in (self._memory, self._replies, self._likelihoods):
            memory.close()
        self.inner.close()


def remembering(backend: Backend, memory_bytes: int = MEMORY_BYTES) -> Backend:
    """The backend with a memory; one that shows no attention stays as it is."""
    if "attention" in backend.capabilities and isinstance(backend, InspectableBackend):
        return RememberingBackend(backend, memory_bytes)
    return backend


def _beginning(
    prompt: Prompt, text: str, attention: Attention, source: Beginning | None, layers: int
) -> Beginning | None:
    """The keys and values to remember with a pass: those that it reused where only the question is another one."""
    reused = 2 * attention.cost.cached_tokens > attention.cost.prompt_tokens
    if (
        source is not None
        and source.layers >= layers
        and reused
        and _questionless(source.prompt) == _questionless(prompt)
    ):
        return source
    return None if attention.prefix is None else Beginning(prompt, text, len(attention.map.mass), attention.prefix)


def _shortened(cost: Cost, offered: bool) -> Cost:
    """The cost of a call that was ``offered`` a remembered beginning, which the method itself did not hand on."""
    return cost.model_copy(update={"remembered_calls": cost.llm_calls}) if offered and cost.cached_tokens else cost


def _questionless(prompt: Prompt) -> list[tuple[str, str]]:
    """The prompt's pieces with their roles, those of the question left out."""
    return [(turn.role, piece.text) for turn in prompt.turns for piece in turn.segments if piece.kind != "question"]
