"""From a name to a backend that is ready: the built-in model, a Hugging Face id, a local folder, or ``scripted``."""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from mdqa.backends import embedded
from mdqa.backends.base import Backend
from mdqa.backends.catalog import BUILTIN, MODELS, default_model
from mdqa.errors import ConfigError, ModelError
from mdqa.registry import BACKENDS, load

__all__ = ["default_model", "load_backend"]

SCRIPTED = "scripted"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_KINDS = f"'{BUILTIN}', a Hugging Face id such as {MODELS[2].id}, a folder that holds a model, or '{SCRIPTED}'"


def load_backend(
    model: str,
    *,
    backend: str = "auto",
    device: str = "auto",
    dtype: str = "auto",
    cache: Path,
    progress: embedded.Progress = embedded.silent,
) -> Backend:
    """Load a model and return its backend.

    Args:
        model: ``builtin``, a Hugging Face id, a local folder or ``scripted``; empty for :func:`default_model`.
        backend: ``hf`` or ``scripted``; ``auto`` follows from the model.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        cache: folder for the built-in model (Hugging Face's own cache keeps the others).
        progress: told what is being done, with the finished fraction or None.

    Raises:
        ModelError: the model cannot be found, fetched, loaded or used; the text says what to do.
        ConfigError: unknown backend, device or number format.
        MissingDependency: a package is not installed.
    """
    name = model.strip() or default_model()
    if backend != "auto" and backend not in BACKENDS:
        raise ConfigError(f"unknown backend {backend!r}; there is: auto, {', '.join(BACKENDS)}")
    if SCRIPTED in (name, backend):
        if name != SCRIPTED or backend not in ("auto", SCRIPTED):
            raise ConfigError(f"model {name!r} does not go with backend {backend!r}: use '{SCRIPTED}' for both")
        return load(BACKENDS, SCRIPTED, "backend")()
    source, shown = _locate(name, cache, progress)
    pretrained = import_module("mdqa.backends.pretrained")  # brings PyTorch: seconds that other commands need not wait
    return pretrained.load_pretrained(source, model_name=shown, device=device, dtype=dtype, progress=progress)


def _locate(name: str, cache: Path, progress: embedded.Progress) -> tuple[str, str]:
    """What transformers is given, and the name that is shown and recorded."""
    if name == BUILTIN:
        return str(embedded.ensure_model(cache, progress=progress)), BUILTIN
    if "://" in name:
        raise ModelError(f"{name!r} is a web address. A model is {_KINDS}.")
    path = Path(name).expanduser()
    if path.is_dir():
        return str(path.resolve()), name
    if path.exists():
        raise ModelError(f"{name} is a file. Give the folder that holds config.json, the tokenizer and the weights.")
    if not _HUB_ID.fullmatch(name):
        raise ModelError(f"There is no folder {name!r}, and it is not a Hugging Face id. A model is {_KINDS}.")
    known = [BUILTIN, SCRIPTED, *(card.id for card in MODELS)]
    near = get_close_matches(name, known, n=1, cutoff=0.85)
    if "/" not in name and near:  # ids without an owner are rare, slips of the pen are not
        raise ModelError(f"There is no model {name!r}. Did you mean {near[0]!r}? A model is {_KINDS}.")
    return name, name
