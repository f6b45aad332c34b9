"""Replies and likelihoods remembered from run to run, for a person who changes something and asks the same again.

Only what is equal in everything that decides the result is answered from memory: the prompt with its segments, limits,
temperature, top-p, seed, stop strings, schema and steering of a reply; the prompt and target of a likelihood. The
result is the one that the model gave. Its cost says what the method asked for (tokens sent and written) and that
nothing was computed: all prompt tokens are cached, and the call counts as remembered.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Generic, TypeVar

from mdqa.backends.base import GenerationRequest, Likelihood, Steering
from mdqa.prompting import Prompt
from mdqa.records import Cost, Generation

Result = TypeVar("Result", Generation, Likelihood)

REPLY_BYTES = 16 * 2**20

_ENTRY = 1_000
"""Bytes that an entry takes beside its text: the objects, the key, its place in the table (measured: about 900)."""


class ReplyMemory(Generic[Result]):
    """Results by their key, the least recently used ones forgotten first. Any thread may call any method.

    Args:
        limit: bytes that may be held.
    """

    def __init__(self, limit: int = REPLY_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Result] = OrderedDict()
        self._bytes = 0
        self._closed = False

    @property
    def held_bytes(self) -> int:
        """Memory that is taken now."""
        with self._lock:
            return self._bytes

    def find(self, key: bytes) -> Result | None:
        """The remembered result as the answer to a new request: at once, and without any computation."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return None
            self._known.move_to_end(key)
        return _again(known)

    def complete(
        self,
        keys: Sequence[bytes],
        work: Callable[[Sequence[int]], Sequence[Result]],
        tell: Callable[[int, Result], None],
    ) -> list[Result]:
        """A result per key: ``work`` is asked for those that are not remembered (by their numbers), all together.

        ``tell`` hears of the remembered ones first.
        """
        found = {index: result for index, key in enumerate(keys) if (result := self.find(key)) is not None}
        for index, result in found.items():
            tell(index, result)
        missing = [index for index in range(len(keys)) if index not in found]
        for index, result in zip(missing, work(missing) if missing else (), strict=True):
            self.add(keys[index], result)
            found[index] = result
        return [found[index] for index in range(len(keys))]

    def add(self, key: bytes, result: Result) -> None:
        """Remember a result; a reply that was stopped before its end is none."""
        if isinstance(result, Generation) and result.finish_reason == "cancelled":
            return
        with self._lock:
            if self._closed or _size(result) > self._limit:
                return
            if key in self._known:
                self._bytes -= _size(self._known.pop(key))
            self._known[key] = result
            self._bytes += _size(result)
            while self._bytes > self._limit:
                self._bytes -= _size(self._known.popitem(last=False)[1])

    def close(self) -> None:
        """Forget everything and remember nothing any more."""
        with self._lock:
            self._closed = True
            self._known.clear()
            self._bytes = 0


def reply_key(request: GenerationRequest, steering: Steering | None) -> bytes:
    """What decides a reply, as a digest."""
    values = [(part.name, getattr(request, part.name)) for part in fields(request) if part.name != "schema"]
    schema = None if request.schema is None else json.dumps(request.schema)  # its order may decide, so it is kept
    return _digest((values, schema, steering))


def likelihood_key(prompt: Prompt, target: str) -> bytes:
    """What decides a likelihood, as a digest."""
    return _digest((prompt, target))


def renumbered(tell: Callable[..., None] | None, numbers: Sequence[int]) -> Callable[..., None] | None:
    """A callback of a part of the requests (``numbers``) that speaks of their places among all."""
    return None if tell is None else lambda index, *more: tell(numbers[index], *more)


def _digest(values: object) -> bytes:
    """SHA-256 over the values as Python writes them, which tells all different ones of these types apart."""
    return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).digest()


def _again(result: Result) -> Result:
    own = result.cost
    cost = Cost(
        llm_calls=own.llm_calls,
        prompt_tokens=own.prompt_tokens,
        completion_tokens=own.completion_tokens,
        cached_tokens=own.prompt_tokens,
        remembered_calls=own.llm_calls,
    )
    if isinstance(result, Generation):
        return result.model_copy(update={"cost": cost})
    return Likelihood(result.logprob, result.tokens, cost)


def _size(result: Generation | Likelihood) -> int:
    return _ENTRY + (sys.getsizeof(result.text) if isinstance(result, Generation) else 0)
