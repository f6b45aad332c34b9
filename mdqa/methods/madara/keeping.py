"""Model replies kept on disk while a calibration is made, so that a stopped or killed one repeats no finished work.

What is kept is one piece per batch that the backend was given: its replies together, under a key made from the model
and everything that decides them. A piece is whole or absent, so going on hands the backend the same batches as an
attempt that was never stopped, and the profile comes out the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError

from mdqa.backends.base import Backend, GenerationRequest, Likelihood, ScoringBackend, Steering, TextCallback
from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError
from mdqa.passes import Passes
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import Cost, Generation

_REPLIES = TypeAdapter(list[Generation])
_LIKELIHOODS = TypeAdapter(list[tuple[float, int, Cost]])


class KeepingBackend:
    """A backend whose replies and likelihoods are kept in ``passes``; the work itself is ``inner``'s.

    Steered or prefixed generation is not kept: a calibration asks for neither.
    """

    def __init__(self, inner: Backend, passes: Passes) -> None:
        self.inner, self._passes = inner, passes
        self.name, self.model, self.window = inner.name, inner.model, inner.window
        self.capabilities = inner.capabilities

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
        """See :class:`mdqa.backends.base.Backend`."""
        more: dict[str, Any] = {"cancel": cancel, "on_text": on_text, "on_done": on_done}
        if prefix is not None or steering is not None:
            return self.inner.generate(requests, **more, prefix=prefix, steering=steering)
        key = self._key("replies", [self._identity(request) for request in requests])
        replies = self._find(key, _REPLIES, len(requests))
        if replies is None:
            replies = self.inner.generate(requests, **more)
            self._keep(key, _REPLIES.dump_json(replies))
            return replies
        _count(replies, on_done)
        return replies

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """See :class:`mdqa.backends.base.ScoringBackend`; CapabilityError if the inner backend is none."""
        if not isinstance(self.inner, ScoringBackend):
            raise CapabilityError(f"the backend {self.name!r} cannot give likelihood")
        scored = [[self.render(prompt), _target(prompt, target)] for prompt in prompts]
        key = self._key("likelihoods", [target, scored])
        kept = self._find(key, _LIKELIHOODS, len(prompts))
        if kept is None:
            found = self.inner.log_likelihood(prompts, target=target, cancel=cancel, on_done=on_done)
            self._keep(key, _LIKELIHOODS.dump_json([(each.logprob, each.tokens, each.cost) for each in found]))
            return found
        _count(kept, on_done)
        return [Likelihood(logprob, tokens, cost) for logprob, tokens, cost in kept]

    def render(self, prompt: Prompt) -> str:
        """The prompt exactly as the model sees it."""
        return self.inner.render(prompt)

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        return self.inner.count_tokens(text)

    def close(self) -> None:
        """The inner backend belongs to whoever made it, so it stays open."""

    def _identity(self, request: GenerationRequest) -> list[Any]:
        """Everything that decides a reply."""
        return [
            self.render(request.prompt),
            request.max_new_tokens,
            request.temperature,
            request.top_p,
            request.seed,
            list(request.stop),
            None if request.schema is None else dict(request.schema),
        ]

    def _key(self, kind: str, parts: Sequence[Any]) -> str:
        return Passes.key("madara", kind, self.model, json.dumps(parts, sort_keys=True))

    def _find(self, key: str, adapter: TypeAdapter[Any], count: int) -> Any:
        """A kept piece as a list of ``count`` results; None if it is not there or damaged."""
        arrays = self._passes.get(key)
        if arrays is None or "json" not in arrays:
            return None
        try:
            results = adapter.validate_json(arrays["json"].tobytes())
        except ValidationError:
            return None
        return results if len(results) == count else None

    def _keep(self, key: str, data: bytes) -> None:
        self._passes.put(key, {"json": np.frombuffer(data, dtype=np.uint8)})


def _target(prompt: Prompt, target: str) -> str:
    """The text that is scored, so that the same rendering with other marks is another piece."""
    if target == "reply":
        return prompt.reply
    return "\x00".join(s.text for turn in prompt.turns for s in turn.segments if s.kind == target)


def _count(results: Sequence[Any], on_done: Callable[[int], None] | None) -> None:
    for index in range(len(results)):
        if on_done is not None:
            on_done(index)
