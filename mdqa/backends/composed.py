"""Two backends as one: an engine or a server writes, a model of transformers shows attention and gives likelihoods.

vLLM and hosted services do not show attention; a smaller model, or the same weights once more, does. Scores are then
the second model's view of the documents, and the answer is the first one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from mdqa.backends.base import (
    SEPARATOR,
    Attention,
    Backend,
    Capability,
    GenerationRequest,
    InspectableBackend,
    Likelihood,
    Movable,
    Noticing,
    Steering,
    TextCallback,
)
from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError, ConfigError
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import Generation


class ComposedBackend:
    """``writer`` generates, ``inspector`` gives likelihoods and attention.

    Where both are the same model, answers under steering are written by the inspector, for only it can steer. With two
    models there is no steering: what one attends to cannot be bent in the other.
    """

    name = "composed"

    def __init__(self, writer: Backend, inspector: Backend) -> None:
        if "attention" not in inspector.capabilities or not isinstance(inspector, InspectableBackend):
            raise ConfigError(
                f"{inspector.model!r} shows no attention, so it cannot be the second model of "
                f"{writer.model + SEPARATOR + inspector.model!r}; name one that runs through transformers"
            )
        self.writer, self.inspector = writer, inspector
        same = writer.model == inspector.model
        self.model = writer.model if same else writer.model + SEPARATOR + inspector.model
        self.window = min(writer.window, inspector.window)
        own: set[Capability] = {"generate", "structured"}
        shown: set[Capability] = {"likelihood", "attention", "steering"} if same else {"likelihood", "attention"}
        self.capabilities: frozenset[Capability] = frozenset(
            (own & writer.capabilities) | (shown & inspector.capabilities)
        )
        self.layers, self.heads = inspector.layers, inspector.heads

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
        """See :class:`mdqa.backends.base.Backend`. Keys and values of the inspector do not serve the writer."""
        if steering is None:
            return self.writer.generate(requests, cancel=cancel, on_text=on_text, on_done=on_done)
        if "steering" not in self.capabilities:
            raise CapabilityError(f"{self.model!r} cannot steer: one model writes and the other is looked at")
        return self.inspector.generate(
            requests, cancel=cancel, on_text=on_text, on_done=on_done, prefix=prefix, steering=steering
        )

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """See :class:`mdqa.backends.base.ScoringBackend`."""
        return self.inspector.log_likelihood(prompts, target=target, cancel=cancel, on_done=on_done)

    def attend(self, prompt: Prompt, **more: Any) -> Attention:
        """See :class:`mdqa.backends.base.InspectableBackend`."""
        return self.inspector.attend(prompt, **more)

    def render(self, prompt: Prompt) -> str:
        """The prompt as the writer sees it."""
        return self.writer.render(prompt)

    def count_tokens(self, text: str) -> int:
        """Tokens by the one of both that makes more of them, since both must hold the prompt."""
        return max(self.writer.count_tokens(text), self.inspector.count_tokens(text))

    def take_notices(self) -> list[str]:
        """What both have to say."""
        return [
            words for one in (self.writer, self.inspector) if isinstance(one, Noticing) for words in one.take_notices()
        ]

    def move(self, device: str) -> None:
        """See :class:`mdqa.backends.base.Movable`; what runs elsewhere stays there."""
        for one in (self.writer, self.inspector):
            if isinstance(one, Movable):
                one.move(device)

    def close(self) -> None:
        """Close both."""
        try:
            self.writer.close()
        finally:
            self.inspector.close()
