"""A backend without a model: replies from a script, or read off the prompt by counting shared words.

It answers at once and always the same, so it serves tests and work on the screen. Tokens are words between spaces.
What it returns is a function of the prompt alone: nothing is random, and it understands nothing.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdqa.backends.base import (
    AttendingRows,
    Attention,
    Capability,
    GenerationRequest,
    Likelihood,
    Steering,
    TextCallback,
)
from mdqa.backends.scripted_replies import WORD, Reading, extractive_reply
from mdqa.cancellation import CancelToken
from mdqa.errors import ModelError, PromptTooLong
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import AttentionMap, Cost, Generation, Head, TokenHeat

Script = Sequence[str] | Callable[[GenerationRequest], str]

KNOWN_WORD, NEW_WORD = -0.5, -4.0
"""Log-probability of a word that stands before the target, and of one that does not."""

_TOKEN = re.compile(r"\S+")
_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True)
class WordPrefix:
    """What an earlier pass leaves for later ones: its words and how many layers they went through."""

    words: tuple[str, ...]
    layers: int


class ScriptedBackend:
    """A deterministic backend with every capability.

    Args:
        replies: None (extract from the prompt), the replies in the order in which they are asked for, or a function
            of the request. A list that is used up raises ModelError.
        model: name reported as the model.
        window: longest prompt plus reply, in words.
        layers, heads: shape of the attention maps.
        delay_per_token: seconds to wait before each written word, to have time to press Stop.
    """

    name = "scripted"
    capabilities: frozenset[Capability] = frozenset(("generate", "structured", "likelihood", "attention", "steering"))

    def __init__(
        self,
        replies: Script | None = None,
        model: str = "scripted",
        *,
        window: int = 8192,
        layers: int = 4,
        heads: int = 4,
        delay_per_token: float = 0.0,
    ) -> None:
        self.model, self.window, self.layers, self.heads = model, window, layers, heads
        self._replies = replies
        self._delay = delay_per_token
        self._used = 0
        self._lock = threading.Lock()

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        *,
        cancel: CancelToken,
        on_text: TextCallback | None = None,
        on_done: Callable[[int], None] | None = None,
        prefix: WordPrefix | None = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """One reply per request, written word by word. Requests of a batch share their common beginnings."""
        if steering is not None and len(requests) != 1:
            raise ModelError(f"steering needs exactly one request, got {len(requests)}")
        earlier = [prefix] if prefix else []
        generations: list[Generation] = []
        for index, request in enumerate(requests):
            cancel.check()
            began = time.perf_counter()
            words = self._words(request.prompt, reserved=request.max_new_tokens)
            text, finish = _limited(self._reply(request, steering), request)
            for piece in _PIECE.findall(text):
                cancel.check()
                if self._delay:
                    time.sleep(self._delay)
                if on_text:
                    on_text(index, piece)
            cancel.check()
            cost = self._cost(words, earlier, self.layers, began, completion=len(text.split()))
            earlier.append(WordPrefix(words, self.layers))
            generations.append(Generation(text=text, finish_reason=finish, cost=cost, seed=request.seed))
            if on_done:
                on_done(index)
        return generations

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """KNOWN_WORD for each target word that stands before the target, NEW_WORD for each other one."""
        results = []
        for index, prompt in enumerate(prompts):
            cancel.check()
            began = time.perf_counter()
            words = self._words(prompt)
            before, text = _split_at(prompt, target)
            target_words = WORD.findall(text.lower()) or text.split()
            if not target_words:
                raise ModelError(f"the prompt has no {target} to score")
            known = set(WORD.findall(before.lower()))
            logprob = sum(KNOWN_WORD if word in known else NEW_WORD for word in target_words)
            results.append(Likelihood(logprob, len(target_words), self._cost(words, (), self.layers, began)))
            if on_done:
                on_done(index)
        return results

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
        prefix: WordPrefix | None = None,
        keep_prefix: bool = False,
    ) -> Attention:
        """Attention made from word overlap and position; deeper layers and later heads look more at the overlap.

        ``rows`` makes no difference beyond this: without a question only the ``last`` row can attend.
        """
        cancel.check()
        began = time.perf_counter()
        words = self._words(prompt)
        reading = Reading.of(prompt)
        run_layers = self.layers if until_layer is None else until_layer + 1
        if not 0 < run_layers <= self.layers:
            raise ModelError(f"until_layer={until_layer} is not a layer of a model with {self.layers} layers")
        if rows != "last" and not reading.has_question:
            raise ModelError("the prompt marks no question whose attention could be shown")
        for layer, head in retrieval_heads:
            if not (0 <= layer < run_layers and 0 <= head < self.heads):
                raise ModelError(f"head {layer}-{head} is not among {run_layers} layers of {self.heads} heads")
        mass = self._mass(reading, run_layers)
        heat = _heat(reading, mass, tuple(retrieval_heads)) if retrieval_heads else None
        tokens = tuple(max(len(text.split()), 1) for text in reading.texts)
        if pool == "mean":
            mass = mass / np.array(tokens, dtype=np.float32)
        attention_map = AttentionMap(
            stage=stage,
            title=title,
            documents=prompt.document_ids,
            mass=mass,
            retrieval_heads=tuple(retrieval_heads),
            model_layers=self.layers,
            pool=pool,
            heat=heat,
        )
        cost = self._cost(words, [prefix] if prefix else [], run_layers, began)
        return Attention(attention_map, cost, WordPrefix(words, run_layers) if keep_prefix else None, tokens)

    def render(self, prompt: Prompt) -> str:
        """Turns under their role in brackets, then the begun reply."""
        turns = [f"[{turn.role}]\n{turn.text}\n" for turn in prompt.turns]
        return "".join(turns) + f"[assistant]\n{prompt.reply}"

    def count_tokens(self, text: str) -> int:
        """Words between spaces."""
        return len(text.split())

    def close(self) -> None:
        """Nothing to free."""

    def _words(self, prompt: Prompt, reserved: int = 0) -> tuple[str, ...]:
        words = tuple(self.render(prompt).split())
        if len(words) + reserved > self.window:
            raise PromptTooLong(len(words), self.window, reserved=reserved)
        return words

    def _reply(self, request: GenerationRequest, steering: Steering | None) -> str:
        if self._replies is None:
            return extractive_reply(request, steering)
        if callable(self._replies):
            return self._replies(request)
        with self._lock:
            index, self._used = self._used, self._used + 1
        if index >= len(self._replies):
            raise ModelError(f"the script has {len(self._replies)} replies and one more was asked for")
        return self._replies[index]

    def _cost(
        self, words: tuple[str, ...], earlier: Sequence[WordPrefix], layers: int, began: float, completion: int = 0
    ) -> Cost:
        """Tokens sent, reused and computed. The last word is always computed, as a model would have to."""
        shared = [(min(_common(words, prefix.words), len(words) - 1), prefix.layers) for prefix in earlier]
        cached, cached_layers = max(shared, default=(0, self.layers))
        missing = max(layers - cached_layers, 0)  # layers that the earlier pass did not run
        computed = ((len(words) - cached) * layers + cached * missing) / self.layers
        return Cost(
            llm_calls=1,
            prompt_tokens=len(words),
            completion_tokens=completion,
            cached_tokens=cached,
            prefill_tokens_computed=math.ceil(computed),
            seconds=time.perf_counter() - began,
        )

    def _mass(self, reading: Reading, run_layers: int) -> np.ndarray:
        """(layers, heads, documents): per head a share of 1 that is split by overlap and by position."""
        count = len(reading.texts)
        content = np.array(reading.overlaps, dtype=np.float64) + 0.05  # (D,)
        position = 1.0 / np.arange(count, 0, -1)  # (D,) later documents are nearer to the question
        mass = np.empty((run_layers, self.heads, count), dtype=np.float32)
        for layer in range(run_layers):
            sharp = content ** (0.5 + 1.5 * (layer + 1) / self.layers)
            for head in range(self.heads):
                mix = (head + 1) / (self.heads + 1)
                place = position if (layer + head) % 2 else position[::-1]
                share = mix * sharp / sharp.sum() + (1 - mix) * place / place.sum()
                mass[layer, head] = (0.9 - 0.6 * mix) * share
        return mass


def _limited(text: str, request: GenerationRequest) -> tuple[str, Literal["stop", "length"]]:
    """The reply up to the first stop string and the allowed number of words."""
    for stop in request.stop:
        text = text.split(stop, 1)[0] if stop else text
    tokens = list(_TOKEN.finditer(text))
    if len(tokens) <= request.max_new_tokens:
        return text, "stop"
    return text[: tokens[request.max_new_tokens - 1].end()] if request.max_new_tokens else "", "length"


def _split_at(prompt: Prompt, target: SegmentKind | Literal["reply"]) -> tuple[str, str]:
    """Text before the first segment of the wanted kind (or the begun reply), and that segment's text."""
    before: list[str] = []
    for segment in (segment for turn in prompt.turns for segment in turn.segments):
        if segment.kind == target:
            return " ".join(before), segment.text
        before.append(segment.text)
    return " ".join(before), prompt.reply if target == "reply" else ""


def _common(first: Iterable[str], second: Iterable[str]) -> int:
    """Length of the common beginning."""
    count = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        count += 1
    return count


def _heat(reading: Reading, mass: np.ndarray, heads: tuple[Head, ...]) -> TokenHeat:
    """Each document's mass spread over its words, those of the question counting three times."""
    documents: list[int] = []
    spans: list[tuple[int, int]] = []
    shares: list[float] = []
    for index, text in enumerate(reading.texts):
        tokens = list(_TOKEN.finditer(text))
        weights = [3.0 if set(WORD.findall(token[0].lower())) & reading.question else 1.0 for token in tokens]
        documents += [index] * len(tokens)
        spans += [token.span() for token in tokens]
        shares += [weight / sum(weights) for weight in weights]
    per_document = np.stack([mass[layer, head] for layer, head in heads])  # (H, D)
    weights_by_head = per_document[:, documents] * np.array(shares, dtype=np.float32)  # (H, T)
    return TokenHeat(
        heads, reading.texts, np.array(documents, dtype=np.int32), np.array(spans, dtype=np.int32), weights_by_head
    )
