"""What a backend can be asked for. Methods know these protocols and never a concrete backend.

Three levels: every backend generates; a :class:`ScoringBackend` also gives log-likelihoods; an
:class:`InspectableBackend` also shows and steers attention. ``capabilities`` says which before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import AttentionMap, Cost, Generation, Head

SEPARATOR = " + "
"""Between the names of two models that work as one, see :mod:`mdqa.backends.composed`."""

Capability = Literal["generate", "structured", "likelihood", "attention", "steering"]
SteeredRows = Literal["question", "question_to_end", "question_to_end_and_generated"]
AttendingRows = Literal["question", "question_to_end", "last"]


@dataclass(frozen=True)
class GenerationRequest:
    """One reply to write. Temperature 0 is greedy. ``schema`` is a JSON schema the reply must follow (structured)."""

    prompt: Prompt
    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Likelihood:
    """Log-probability (natural log) of a stretch of the prompt: sum over its tokens and how many there are."""

    logprob: float
    tokens: int
    cost: Cost

    @property
    def mean(self) -> float:
        """Mean log-probability per token, that is minus the mean negative log-likelihood."""
        return self.logprob / self.tokens


class Part(NamedTuple):
    """Characters [start, end) of a document's rendered block: header and text, as in ``TokenHeat.texts``."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Steering:
    """A bias on attention logits: for the rows of the question, towards the tokens of some documents.

    ``delta``: added to the logits after scaling by 1/sqrt(d), so that exp(delta) multiplies the weight before
    renormalisation; with ``before_scale`` it is scaled too (CAFE eq. 8 read literally). All layers and heads.
    Minus infinity is a mask: the weight is exactly 0, as if the tokens were not there for these rows.

    ``parts``: if given, only these parts of the documents (a token belongs where its first character that is not
    white space stands). ``row_documents``: if given, the rows of these documents are steered in place of the
    question's, and ``rows`` says nothing.
    """

    documents: tuple[str, ...]
    delta: float
    rows: SteeredRows = "question"
    before_scale: bool = False
    parts: tuple[Part, ...] = ()
    row_documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attention:
    """Result of an attention pass. ``prefix``: the pass's keys and values, to be handed to a later call.

    The prefix of a pass that stopped early has the layers that were run and serves passes that stop no later.
    ``document_tokens``: tokens of every document of the map, by which a sum over them becomes a mean.
    """

    map: AttentionMap
    cost: Cost
    prefix: Any = None
    document_tokens: tuple[int, ...] = ()


TextCallback = Callable[[int, str], None]
"""Called with the index of the request and the piece of text that was just written."""


@runtime_checkable
class Backend(Protocol):
    """Generates replies. ``window`` is the longest prompt plus reply in tokens."""

    name: str
    model: str
    window: int
    capabilities: frozenset[Capability]

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
        """One reply per request, in order; batched as the backend sees fit. ``on_done`` counts finished replies.

        ``prefix``: keys and values of an earlier pass; the longest common beginning is reused. ``steering`` needs
        the capability ``steering`` and exactly one request. Raises PromptTooLong and Cancelled.
        """
        ...

    def render(self, prompt: Prompt) -> str:
        """The prompt exactly as the model sees it, chat template applied."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        ...

    def close(self) -> None:
        """Free the model's memory."""
        ...


@runtime_checkable
class Noticing(Protocol):
    """A backend that may have something to say of how it worked, for the person who asked."""

    def take_notices(self) -> list[str]:
        """What is to be said since the last look."""
        ...


@runtime_checkable
class Movable(Protocol):
    """A backend whose model lies in this process and can be brought to another device."""

    def move(self, device: str) -> None:
        """Compute on this device from now on; ModelError where its memory does not hold the model."""
        ...


@runtime_checkable
class ScoringBackend(Backend, Protocol):
    """Also gives log-likelihoods."""

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """Log-probability of every prompt's ``target`` (its question segment, or its begun reply) given all before."""
        ...


@runtime_checkable
class InspectableBackend(ScoringBackend, Protocol):
    """Also shows and steers attention. ``layers`` and ``heads`` count decoder layers and query heads."""

    layers: int
    heads: int

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
        """Attention of the question's rows to every document, reduced to (layers, heads, documents) as it is computed.

        ``until_layer``: the last layer that is run (0-based); the map then has until_layer + 1 layers. Token weights
        are kept for ``retrieval_heads`` only. ``prefix`` as in ``generate``; ``keep_prefix`` returns this pass's.
        """
        ...
