"""Attention passes by what decides them, with the keys and values that they leave, within a number of bytes."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from mdqa.backends.base import AttendingRows, Attention
from mdqa.prompting import Prompt
from mdqa.records import AttentionMap, Cost, Head, TokenHeat

SHORTEST = 200
"""Characters that a prompt must have in common with a remembered one; a shared instruction alone is not worth it."""


@runtime_checkable
class Stored(Protocol):
    """A prefix that says what memory it holds."""

    def storages(self) -> Mapping[int, int]:
        """Bytes of each piece of memory by its address; prefixes may share pieces."""
        ...


@dataclass(frozen=True)
class Beginning:
    """Keys and values of a prompt (``text`` as rendered) for its first ``layers`` layers."""

    prompt: Prompt
    text: str
    layers: int
    prefix: Any


@dataclass(frozen=True)
class Wanted:
    """What decides a pass's result."""

    prompt: Prompt
    rows: AttendingRows
    pool: str
    layers: int
    heads: tuple[Head, ...]


@dataclass(frozen=True)
class Pass:
    """A finished pass. ``beginning`` may be another pass's, or None where its memory was needed for others."""

    wanted: Wanted
    map: AttentionMap
    document_tokens: tuple[int, ...]
    prompt_tokens: int
    beginning: Beginning | None

    def serves(self, wanted: Wanted) -> bool:
        """Whether the result for ``wanted`` can be read off this one: the same rows, no more layers, no other heads."""
        own, heads = self.wanted, set(self.map.heat.heads) if self.map.heat is not None else set()
        return (
            own.layers >= wanted.layers
            and (own.rows, own.pool) == (wanted.rows, wanted.pool)
            and all(head in heads and head[0] < wanted.layers for head in wanted.heads)
            and own.prompt == wanted.prompt
        )

    def again(self, wanted: Wanted, stage: str, title: str, seconds: float, keep_prefix: bool) -> Attention:
        """The pass as the answer to a new request: its labels, and a cost that says that nothing was computed."""
        cost = Cost(
            llm_calls=1,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.prompt_tokens,
            seconds=seconds,
            remembered_calls=1,
        )
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


class PassMemory:
    """Passes from the least to the most recently used, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._passes: OrderedDict[Wanted, Pass] = OrderedDict()
        self._closed = False

    @property
    def bytes(self) -> int:
        """Memory taken, pieces that passes share counted once."""
        with self._lock:
            return _bytes(self._passes.values())

    def find(self, wanted: Wanted) -> Pass | None:
        """A pass from which the wanted one's result can be read, with its keys and values where there is a choice."""
        with self._lock:
            serving = [known for known in reversed(self._passes.values()) if known.serves(wanted)]
            found = next((known for known in serving if known.beginning is not None), serving[0] if serving else None)
            if found is not None:
                self._passes.move_to_end(found.wanted)
            return found

    def owner(self, prefix: Any) -> Beginning | None:
        """Where a prefix comes from; None if it is not remembered (any more)."""
        with self._lock:
            held = (known.beginning for known in self._passes.values() if known.beginning is not None)
            return next((beginning for beginning in held if beginning.prefix is prefix), None)

    def longest(self, texts: Sequence[str], layers: int) -> Beginning | None:
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

    def add(self, done: Pass) -> None:
        """Remember a pass; older ones give up their keys and values, then their maps, until all fit."""
        with self._lock:
            if self._closed:
                return
            if _bytes([done]) > self._limit:
                done = replace(done, beginning=None)
            self._passes[done.wanted] = done
            self._passes.move_to_end(done.wanted)
            held = _Held(self._passes.values())
            for wanted, known in list(self._passes.items()):
                if held.bytes <= self._limit:
                    return
                if known.beginning is not None:  # thousands may have none
                    self._passes[wanted] = lighter = replace(known, beginning=None)
                    held.exchange(known, lighter)
            while held.bytes > self._limit:
                held.drop(self._passes.popitem(last=False)[1])

    def close(self) -> None:
        """Forget everything and remember nothing any more."""
        with self._lock:
            self._closed = True
            self._passes.clear()


class _Held:
    """The memory that passes take together, kept up to date as some of them go; shared pieces count once."""

    def __init__(self, passes: Iterable[Pass]) -> None:
        self._users: Counter[int] = Counter()
        self.bytes = 0
        for known in passes:
            self._add(known)

    def _add(self, known: Pass) -> None:
        for address, size in dict(known.storages()).items():
            self.bytes += 0 if self._users[address] else size
            self._users[address] += 1

    def drop(self, known: Pass) -> None:
        """The pass is there no more."""
        for address, size in dict(known.storages()).items():
            self._users[address] -= 1
            self.bytes -= 0 if self._users[address] else size

    def exchange(self, known: Pass, lighter: Pass) -> None:
        """The pass holds on to less."""
        self._add(lighter)
        self.drop(known)


def _bytes(passes: Iterable[Pass]) -> int:
    return _Held(passes).bytes


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
