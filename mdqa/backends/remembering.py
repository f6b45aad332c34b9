"""Attention passes remembered from run to run, for a person who changes an option and asks the same again.

The same pass is answered at once; another pass, or a reply to a prompt that begins like a remembered one, starts from
its keys and values, so that only the rest is computed. Results are the inner backend's own: a remembered map is the
one that it gave, and reusing a beginning is the inner backend's work (``prefix``).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

from mdqa.backends.base import (
    AttendingRows,
    Attention,
    Backend,
    GenerationRequest,
    InspectableBackend,
    Likelihood,
    Steering,
    TextCallback,
)
from mdqa.cancellation import CancelToken
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import AttentionMap, Cost, Generation, Head, TokenHeat

MEMORY_BYTES = 512 * 2**20

SHORTEST = 200
"""Characters that a prompt must have in common with a remembered one; a shared instruction alone is not worth it."""


@runtime_checkable
class Stored(Protocol):
    """A prefix that says what memory it holds."""

    def storages(self) -> Mapping[int, int]:
        """Bytes of each piece of memory by its address; prefixes may share pieces."""
        ...


@dataclass(frozen=True)
class _Beginning:
    """Keys and values of a prompt (``text`` as rendered) for its first ``layers`` layers."""

    prompt: Prompt
    text: str
    layers: int
    prefix: Any


@dataclass(frozen=True)
class _Wanted:
    """What decides a pass's result."""

    prompt: Prompt
    rows: AttendingRows
    pool: str
    layers: int
    heads: tuple[Head, ...]


@dataclass(frozen=True)
class _Pass:
    """A finished pass. ``beginning`` may be another pass's, or None where its memory was needed for others."""

    wanted: _Wanted
    map: AttentionMap
    document_tokens: tuple[int, ...]
    prompt_tokens: int
    beginning: _Beginning | None

    def serves(self, wanted: _Wanted) -> bool:
        """Whether the result for ``wanted`` can be read off this one: the same rows, no more layers, no other heads."""
        own, heads = self.wanted, set(self.map.heat.heads) if self.map.heat is not None else set()
        return (
            own.layers >= wanted.layers
            and (own.rows, own.pool) == (wanted.rows, wanted.pool)
            and all(head in heads and head[0] < wanted.layers for head in wanted.heads)
            and own.prompt == wanted.prompt
        )

    def again(self, wanted: _Wanted, stage: str, title: str, seconds: float, keep_prefix: bool) -> Attention:
        """The pass as the answer to a new request: its labels, and a cost that says that nothing was computed."""
        cost = Cost(llm_calls=1, prompt_tokens=self.prompt_tokens, cached_tokens=self.prompt_tokens, seconds=seconds)
        renewed = replace(
            self.map,
            stage=stage,
            title=title,
            retrieval_heads=wanted.heads,
            mass=self.map.mass[: wanted.layers],
            heat=_of_heads(self.map.heat, wanted.heads),
        )
        prefix = self.beginning.prefix if keep_prefix and self.beginning is not None else None
        return Attention(renewed, cost, prefix, self.document_tokens)

    def storages(self) -> Iterator[tuple[int, int]]:
        """Address and bytes of everything that it holds on to."""
        heat = self.map.heat
        arrays = [self.map.mass] if heat is None else [self.map.mass, heat.document, heat.spans, heat.weights]
        yield from ((id(array), array.nbytes) for array in arrays)
        yield id(self.wanted), sum(len(turn.text) for turn in self.wanted.prompt.turns)
        if self.beginning is not None and isinstance(self.beginning.prefix, Stored):
            yield from self.beginning.prefix.storages().items()


class RememberingBackend:
    """An inspectable backend that remembers its attention passes, the least recently used ones forgotten first.

    Args:
        inner: does the work.
        memory_bytes: limit for keys, values and maps. Keys and values of old passes go before their maps do.

    Any thread may call any method. Closing forgets everything.
    """

    def __init__(self, inner: InspectableBackend, memory_bytes: int = MEMORY_BYTES) -> None:
        self.inner = inner
        self.name, self.model, self.window = inner.name, inner.model, inner.window
        self.capabilities = inner.capabilities
        self.layers, self.heads = inner.layers, inner.heads
        self._memory = _Memory(memory_bytes)

    @property
    def remembered_bytes(self) -> int:
        """Memory that is taken now."""
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
        wanted = _Wanted(prompt, rows, pool, layers, tuple(retrieval_heads))
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
        self._memory.add(_Pass(wanted, attention.map, attention.document_tokens, tokens, kept))
        return attention if keep_prefix else replace(attention, prefix=None)

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
        """See :class:`mdqa.backends.base.Backend`; without a ``prefix`` the best remembered one is used."""
        if prefix is None and requests and self._memory.bytes:
            source = self._memory.longest([self.inner.render(request.prompt) for request in requests], self.layers)
            prefix = None if source is None else source.prefix
        return self.inner.generate(
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
        return self.inner.log_likelihood(prompts, target=target, cancel=cancel, on_done=on_done)

    def render(self, prompt: Prompt) -> str:
        """The prompt exactly as the model sees it."""
        return self.inner.render(prompt)

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        return self.inner.count_tokens(text)

    def close(self) -> None:
        """Forget everything and free the model's memory."""
        self._memory.close()
        self.inner.close()


def remembering(backend: Backend, memory_bytes: int = MEMORY_BYTES) -> Backend:
    """The backend with a memory for its passes; one that shows no attention has none to remember and stays as it is."""
    if "attention" in backend.capabilities and isinstance(backend, InspectableBackend):
        return RememberingBackend(backend, memory_bytes)
    return backend


class _Memory:
    """Passes from the least to the most recently used, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._passes: OrderedDict[_Wanted, _Pass] = OrderedDict()
        self._closed = False

    @property
    def bytes(self) -> int:
        """Memory taken, pieces that passes share counted once."""
        with self._lock:
            return _bytes(self._passes.values())

    def find(self, wanted: _Wanted) -> _Pass | None:
        """A pass from which the wanted one's result can be read, with its keys and values where there is a choice."""
        with self._lock:
            serving = [known for known in reversed(self._passes.values()) if known.serves(wanted)]
            found = next((known for known in serving if known.beginning is not None), serving[0] if serving else None)
            if found is not None:
                self._passes.move_to_end(found.wanted)
            return found

    def owner(self, prefix: Any) -> _Beginning | None:
        """Where a prefix comes from; None if it is not remembered (any more)."""
        with self._lock:
            held = (known.beginning for known in self._passes.values() if known.beginning is not None)
            return next((beginning for beginning in held if beginning.prefix is prefix), None)

    def longest(self, texts: Sequence[str], layers: int) -> _Beginning | None:
        """The keys and values of at least ``layers`` layers that have most in common with all of these prompts."""
        best, most = None, SHORTEST - 1
        with self._lock:
            for known in reversed(self._passes.values()):
                if known.beginning is not None and known.beginning.layers >= layers:
                    shared = _shared([known.beginning.text, *texts])
                    if shared > most:
                        best, most = known, shared
            if best is not None:
                self._passes.move_to_end(best.wanted)
        return None if best is None else best.beginning

    def add(self, done: _Pass) -> None:
        """Remember a pass; older ones give up their keys and values, then their maps, until all fit."""
        with self._lock:
            if self._closed:
                return
            if _bytes([done]) > self._limit:
                done = replace(done, beginning=None)
            self._passes[done.wanted] = done
            self._passes.move_to_end(done.wanted)
            for wanted, known in list(self._passes.items()):
                if _bytes(self._passes.values()) <= self._limit:
                    return
                self._passes[wanted] = replace(known, beginning=None)
            while _bytes(self._passes.values()) > self._limit:
                self._passes.popitem(last=False)

    def close(self) -> None:
        """Forget everything and remember nothing any more."""
        with self._lock:
            self._closed = True
            self._passes.clear()


def _bytes(passes: Any) -> int:
    return sum({address: size for known in passes for address, size in known.storages()}.values())


def _beginning(
    prompt: Prompt, text: str, attention: Attention, source: _Beginning | None, layers: int
) -> _Beginning | None:
    """The keys and values to remember with a pass: those that it reused where only the question is another one."""
    reused = 2 * attention.cost.cached_tokens > attention.cost.prompt_tokens
    if (
        source is not None
        and source.layers >= layers
        and reused
        and _questionless(source.prompt) == _questionless(prompt)
    ):
        return source
    return None if attention.prefix is None else _Beginning(prompt, text, len(attention.map.mass), attention.prefix)


def _questionless(prompt: Prompt) -> list[tuple[str, str]]:
    """The prompt's pieces with their roles, those of the question left out."""
    return [(turn.role, piece.text) for turn in prompt.turns for piece in turn.segments if piece.kind != "question"]


def _shared(texts: Sequence[str]) -> int:
    """How many characters at the beginning are the same in all texts."""
    first, last = min(texts), max(texts)  # all others lie between these, and begin as both do
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _of_heads(heat: TokenHeat | None, heads: Sequence[Head]) -> TokenHeat | None:
    """The token weights of these heads only, in the order in which they are held."""
    kept = [] if heat is None else [index for index, head in enumerate(heat.heads) if head in heads]
    if heat is None or not kept:
        return None
    return replace(heat, heads=tuple(heat.heads[index] for index in kept), weights=heat.weights[kept])
