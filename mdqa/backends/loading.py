"""From a name to a backend that is ready: a model of transformers, an engine of vLLM, a server, or two as one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from mdqa.backends import embedded
from mdqa.backends.base import SEPARATOR, Backend, Capability
from mdqa.backends.catalog import BUILTIN, MODELS, default_model
from mdqa.backends.composed import ComposedBackend
from mdqa.errors import ConfigError, ModelError
from mdqa.registry import BACKENDS, load

__all__ = ["default_model", "load_backend"]

SCRIPTED = "scripted"
ENGINE = "vllm:"
"""Before a model's name: it runs in an engine of vLLM."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_KINDS = (
    f"'{BUILTIN}', a Hugging Face id such as {MODELS[2].id}, a folder that holds a model, '{ENGINE}' before any of "
    f"these for vLLM, the address of a server such as http://HOST:PORT/v1, or '{SCRIPTED}'"
)


@dataclass(frozen=True)
class Loading:
    """How models are loaded. ``api_key``: for servers. ``vllm_python``, ``vllm_arguments``: see ``mdqa.settings``."""

    cache: Path
    device: str = "auto"
    dtype: str = "auto"
    api_key: str = field(default="", repr=False)
    vllm_python: str = ""
    vllm_arguments: str = ""
    progress: embedded.Progress = embedded.silent


def load_backend(
    model: str,
    *,
    backend: str = "auto",
    device: str = "auto",
    dtype: str = "auto",
    cache: Path,
    api_key: str = "",
    vllm_python: str = "",
    vllm_arguments: str = "",
    progress: embedded.Progress = embedded.silent,
) -> Backend:
    """Load a model and return its backend.

    Args:
        model: ``builtin``, a Hugging Face id, a local folder or ``scripted``; ``vllm:`` before a name for an engine;
            ``http://HOST:PORT/v1`` or ``NAME@http://HOST:PORT/v1`` for a server. ``A + B``: A writes, B (through
            transformers) shows attention and gives likelihoods. Empty for :func:`default_model`.
        backend: ``hf``, ``vllm``, ``openai`` or ``scripted``; ``auto`` follows from the model.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        cache: folder for the built-in model (Hugging Face's own cache keeps the others).
        api_key: sent to servers; empty for none.
        vllm_python: the interpreter that has vLLM; empty for this one.
        vllm_arguments: more options of ``vllm serve``.
        progress: told what is being done, with the finished fraction or None.

    Raises:
        ModelError: the model cannot be found, fetched, loaded or used; the text says what to do.
        ConfigError: unknown backend, device or number format.
        MissingDependency: a package is not installed.
    """
    name = model.strip() or default_model()
    if backend != "auto" and backend not in BACKENDS:
        raise ConfigError(f"unknown backend {backend!r}; there is: auto, {', '.join(BACKENDS)}")
    loading = Loading(cache, device, dtype, api_key, vllm_python, vllm_arguments, progress)
    writer, plus, inspector = name.partition(SEPARATOR)
    if not plus:
        return _load(name, backend, loading)
    # the second one first: it fails sooner where it cannot be had, and an engine takes what memory is left
    second = _load(inspector.strip(), "auto", loading)
    try:
        return ComposedBackend(_load(writer.strip(), backend, loading), second)
    except BaseException:
        second.close()
        raise


def kind_of(model: str, backend: str = "auto") -> str:
    """The backend that a model's name leads to; ConfigError where it does not go with the one that was asked for."""
    if model == SCRIPTED:
        found = SCRIPTED
    elif model.startswith(ENGINE):
        found = "vllm"
    elif "://" in model:
        found = "openai"
    else:
        found = "vllm" if backend == "vllm" else "hf"
    if backend not in ("auto", found):
        needed = {SCRIPTED: f"model '{SCRIPTED}'", "openai": "the address of a server", "hf": "a model's name"}
        raise ConfigError(
            f"model {model!r} does not go with backend {backend!r}, which needs {needed.get(backend, 'another model')}"
        )
    return found


def capabilities_by_name(model: str) -> tuple[Capability, ...]:
    """What a model can do as far as its name says, before it is loaded."""
    writer, plus, inspector = model.partition(SEPARATOR)
    if plus:
        same = writer.strip().removeprefix(ENGINE) == inspector.strip()
        shown: tuple[Capability, ...] = ("likelihood", "attention")
        return ("generate", "structured", *shown, *(("steering",) if same else ()))
    if "://" in model or model.startswith(ENGINE):
        return ("generate", "structured", "likelihood") if model.startswith(ENGINE) else ("generate", "structured")
    return ("generate", "structured", "likelihood", "attention", "steering")


def recorded_name(model: str) -> str:
    """The ``model`` of the backend that this name leads to, by which runs and profiles know it."""
    writer, plus, inspector = model.partition(SEPARATOR)
    writer, inspector = writer.strip().removeprefix(ENGINE), inspector.strip()
    return f"{writer}{SEPARATOR}{inspector}" if plus and writer != inspector else writer


def shown_name(model: str) -> str:
    """A short name of a model that is in no catalog: a folder's last part; addresses and ids as they are."""
    return model if "://" in model or SEPARATOR in model else model.rstrip("/").rsplit("/", 1)[-1]


def _load(name: str, backend: str, loading: Loading) -> Backend:
    kind = kind_of(name, backend)
    if kind == SCRIPTED:
        return load(BACKENDS, SCRIPTED, "backend")()
    if kind == "openai":
        return _serve(name, loading)
    source, shown = _locate(name.removeprefix(ENGINE), loading.cache, loading.progress)
    if kind == "vllm":
        vllm = import_module("mdqa.backends.vllm")
        engine = vllm.Engine(
            source,
            dtype=loading.dtype,
            device=loading.device,
            python=loading.vllm_python,
            arguments=loading.vllm_arguments,
        )
        backend_: Backend = vllm.VLLMBackend(engine, model=shown, progress=loading.progress)
        return backend_
    pretrained = import_module("mdqa.backends.pretrained")  # brings PyTorch: seconds that other commands need not wait
    return pretrained.load_pretrained(
        source, model_name=shown, device=loading.device, dtype=loading.dtype, progress=loading.progress
    )


def _serve(name: str, loading: Loading) -> Backend:
    """The backend of a server: ``http://HOST/v1`` or ``NAME@http://HOST/v1``."""
    before, _, rest = name.partition("://")
    wanted, at, scheme = before.rpartition("@")
    url = f"{scheme}://{rest}"
    served = import_module("mdqa.backends.served")
    loading.progress(f"Asking {url}", None)
    found = served.look_at(url, model=wanted if at else "", key=loading.api_key)
    openai = import_module("mdqa.backends.openai")
    backend: Backend = openai.OpenAIBackend(
        found, model=name, key=loading.api_key, tokenizer=served.tokenizer_of(found)
    )
    loading.progress(f"{name} is ready", 1.0)
    return backend


def _locate(name: str, cache: Path, progress: embedded.Progress) -> tuple[str, str]:
    """What transformers is given, and the name that is shown and recorded."""
    if name == BUILTIN:
        return str(embedded.ensure_model(cache, progress=progress)), BUILTIN
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
