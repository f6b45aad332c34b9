"""Loading a model of sentence-transformers, with errors that say what was named and what else could be."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from mdqa.backends.one_at_a_time import LOADING
from mdqa.errors import MissingDependency, ModelError

Kind = Literal["SentenceTransformer", "CrossEncoder"]

_WORDS = {
    "SentenceTransformer": ("dense retrieval", "sentence encoder"),
    "CrossEncoder": ("reranking with a cross-encoder", "cross-encoder"),
}


def load_model(kind: Kind, model: str | Path, *, device: str, local_only: bool) -> Any:
    """The model in this folder, or of this Hugging Face id, on a device; code of the model's own is not run.

    With ``local_only`` an id must be in the local cache already. Raises MissingDependency without
    sentence-transformers and ModelError for a model that cannot be loaded.
    """
    feature, what = _WORDS[kind]
    try:
        library = import_module("sentence_transformers")
    except ImportError:
        raise MissingDependency(feature, "sentence-transformers") from None
    try:
        with LOADING:
            return getattr(library, kind)(str(model), device=device, local_files_only=local_only)
    except Exception as error:  # the library lets through whatever transformers, torch or the hub raise
        way_out = "download the model first" if local_only else "a Hugging Face id while there is a network"
        article = "a sentence-transformers model" if kind == "SentenceTransformer" else "a cross-encoder"
        raise ModelError(
            f"the {what} {str(model)!r} cannot be loaded on {device!r} ({type(error).__name__}: "
            f"{str(error).partition(chr(10))[0]}). Give a folder with {article}, or {way_out}."
        ) from None
