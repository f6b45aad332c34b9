"""The attention of all heads for many questions, each pass made once.

What is kept of a pass is the sum over each document's tokens and how many there are: from these the mean follows, and
with a second pass the content-free calibration, so that all ways of scoring share their passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdqa.attention.contrast import CONTENT_FREE, contrasted
from mdqa.backends.base import InspectableBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.cafe.attending import prompt
from mdqa.methods.cafe.profile import Scoring
from mdqa.passes import Passes
from mdqa.records import Question


@dataclass(frozen=True)
class Measuring:
    """Attention passes of one model under one way of scoring; ``passes`` keeps what is finished."""

    backend: InspectableBackend
    scoring: Scoring
    cancel: CancelToken
    passes: Passes | None = None

    def mass(self, item: Question, ids: Sequence[str]) -> np.ndarray:
        """Attention mass (L, H, D) of all heads on the question's documents ``ids``, in this order."""
        asked, tokens, prefix = self._pass(item, ids, item.question)
        mass = asked
        if self.scoring.calibration == "content_free":
            mass = contrasted(asked, self._pass(item, ids, CONTENT_FREE, prefix)[0])
        return mass / tokens if self.scoring.pool == "mean" else mass

    def check_length(self, item: Question) -> None:
        """InputError if the question with all its documents does not fit into the model's window."""
        tokens = self.backend.count_tokens(self.backend.render(prompt(item, item.document_ids)))
        if tokens > self.backend.window:
            raise InputError(
                f"the prompt has {tokens:,} tokens, but the model's window holds {self.backend.window:,}; leave this "
                "question out or give it fewer documents",
                place=f"question {item.id!r}",
            )

    def _pass(
        self, item: Question, ids: Sequence[str], question: str, prefix: Any = None
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Summed mass (L, H, D), tokens per document (D,), and keys and values where the pass was made just now."""
        asked = prompt(item, ids, question)
        key = Passes.key(self.backend.model, self.scoring.rows, self.backend.render(asked))
        found = self.passes.get(key) if self.passes else None
        if found is not None and {"mass", "tokens"} <= set(found):
            return found["mass"], found["tokens"], None
        attention = self.backend.attend(
            asked,
            stage="calibration",
            title="Calibration",
            cancel=self.cancel,
            rows=self.scoring.rows,
            prefix=prefix,
            keep_prefix=self.scoring.calibration == "content_free" and question != CONTENT_FREE,
        )
        tokens = np.array(attention.document_tokens, dtype=np.float32)
        if self.passes:
            self.passes.put(key, {"mass": attention.map.mass, "tokens": tokens})
        return attention.map.mass, tokens, attention.prefix
