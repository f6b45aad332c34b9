"""Reranking with a cross-encoder: a model that reads the question and one document together and gives one number.

None comes with the program. Any that sentence-transformers loads as ``CrossEncoder`` without code of its own works,
named by folder or Hugging Face id (DuQUAD's paper names no version of its reranker). Scores are the model's raw
output: a sigmoid would change no ranking, but in float32 it makes all very relevant documents equal.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mdqa.errors import ModelError
from mdqa.records import Document
from mdqa.retrieval.base import PairScorer, full_text
from mdqa.retrieval.loading import load_model

EXAMPLES = ("cross-encoder/ms-marco-MiniLM-L6-v2", "BAAI/bge-reranker-v2-m3")
"""Models to name, the small one first."""

BATCH = 16


class CrossEncoder:
    """A cross-encoder of sentence-transformers. Pairs longer than ``max_tokens`` are read up to there.

    Args:
        model: a folder or a Hugging Face id; an id must be in the local cache already unless ``local_only`` is off.
        device: where it runs.
        name: how it is called in results; by default the model.

    Raises MissingDependency without sentence-transformers, and ModelError for a model that cannot be loaded or that
    gives more than one number per pair.
    """

    def __init__(self, model: str | Path, *, device: str = "cpu", name: str = "", local_only: bool = True) -> None:
        self.name = name or str(model)
        self._model = load_model("CrossEncoder", model, device=device, local_only=local_only)
        if self._model.num_labels != 1:
            raise ModelError(
                f"the cross-encoder {self.name!r} gives {self._model.num_labels} numbers per pair, a reranker gives "
                f"one. Name a reranker, for example {EXAMPLES[0]}."
            )
        self.max_tokens = int(self._model.max_seq_length or sys.maxsize)
        self._raw = import_module("torch").nn.Identity()
        self._lock = threading.Lock()  # fast tokenizers cannot be used from two threads at once

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The model's raw output for the question with every text, in batches; ModelError if one is not finite."""
        if not texts:
            return []
        with self._lock:
            numbers = self._model.predict(
                [(question, text) for text in texts],
                batch_size=BATCH,
                activation_fn=self._raw,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        scores = [float(number) for number in numbers]
        for place, score in enumerate(scores, 1):
            if not math.isfinite(score):
                raise ModelError(
                    f"the cross-encoder {self.name!r} gives {score} for text {place} of {len(scores)}. "
                    "Run it in float32, or name another one."
                )
        return scores

    def truncated(self, question: str, texts: Sequence[str]) -> list[bool]:
        """For every text, whether it and the question are together longer than ``max_tokens``."""
        if not texts:
            return []
        with self._lock:
            pairs = self._model.tokenizer([question] * len(texts), list(texts), truncation=False, verbose=False)
        return [len(ids) > self.max_tokens for ids in pairs["input_ids"]]


class CrossEncoderRanker:
    """Ranks by what a cross-encoder says of the question and each document (title and text)."""

    name = "cross_encoder"

    def __init__(self, scorer: PairScorer) -> None:
        self.scorer = scorer

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """The cross-encoder's scores, in the order of the documents."""
        return self.scorer.score(question, [full_text(document) for document in documents])
