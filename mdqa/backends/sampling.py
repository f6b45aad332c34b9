"""Choosing the next token, one row of a batch at a time: greedy or nucleus, with a seed and a grammar per request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mdqa.errors import ConfigError


class Sampler:
    """Draws one request's tokens. Temperature 0 takes the most likely; otherwise nucleus sampling with its own seed.

    The generator belongs to the request, so a reply does not depend on what else is in the batch.
    """

    def __init__(self, *, temperature: float, top_p: float, seed: int, grammar: Grammar | None) -> None:
        if temperature < 0 or not 0 < top_p <= 1:
            raise ConfigError(f"temperature {temperature} must be >= 0 and top_p {top_p} within (0, 1]")
        self.temperature, self.top_p, self.grammar = temperature, top_p, grammar
        self._generator = torch.Generator().manual_seed(seed)

    def next_token(self, logits: Tensor) -> int:
        """The next token from logits (V,)."""
        logits = logits.float().cpu()
        if self.grammar is not None:
            self.grammar.restrict(logits)
        if self.temperature == 0:
            token = int(logits.argmax())
        else:
            probabilities = torch.softmax(logits / self.temperature, dim=-1)
            if self.top_p < 1:
                ordered, order = probabilities.sort(descending=True)
                beyond = ordered.cumsum(-1) - ordered >= self.top_p
                probabilities[order[beyond]] = 0
            token = int(torch.multinomial(probabilities, 1, generator=self._generator))
        if self.grammar is not None:
            self.grammar.accept(token)
        return token


class GrammarCompiler:
    """Turns JSON schemas into token grammars for one tokenizer (llguidance)."""

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        import llguidance.hf  # noqa: PLC0415 - only when a schema is used

        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)

    def compile(self, schema: Mapping[str, Any]) -> Grammar:
        """A fresh grammar for one reply; ConfigError if the schema cannot be used."""
        from llguidance import LLMatcher  # noqa: PLC0415

        grammar = LLMatcher.grammar_from_json_schema(
            json.dumps(schema), overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        )
        matcher = LLMatcher(self._tokenizer, grammar)
        if matcher.is_error():
            raise ConfigError(f"unusable JSON schema: {matcher.get_error()}")
        return Grammar(matcher)


class Grammar:
    """The state of one constrained reply."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    @property
    def complete(self) -> bool:
        """Whether the reply is finished and nothing may follow."""
        return bool(self._matcher.is_stopped())

    def restrict(self, logits: Tensor) -> None:
        """Set the logits (V,) of forbidden tokens to minus infinity, in place."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(bits, bitorder="little")[: len(logits)].astype(bool)
        logits[torch.from_numpy(~allowed)] = float("-inf")

    def accept(self, token: int) -> None:
        """Go on with this token."""
        self._matcher.consume_token(token)
