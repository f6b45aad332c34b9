"""Loading a model with transformers, from a folder or from Hugging Face, and saying in words what went wrong.

Nothing is run that a model's author supplied (``trust_remote_code`` is off), no weight is left at random, and a model
that does not fit into memory is refused before it is fetched.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, OfflineModeIsEnabled
from huggingface_hub.errors import RepositoryNotFoundError as NotFoundError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils.logging import disable_progress_bar

from mdqa.attention import capture
from mdqa.backends.hf import TransformersBackend
from mdqa.backends.one_at_a_time import LOADING
from mdqa.backends.precision import choose_device, choose_dtype
from mdqa.errors import MdqaError, ModelError

T = TypeVar("T")
_ANOTHER = "Choose another model with --model or MDQA_MODEL; `python -m mdqa models` lists some with what they need."


@dataclass(frozen=True)
class Files:
    """Where a model's files come from: a folder or a Hugging Face id, and the name that messages use.

    ``local``: only what is on this machine. Asking Hugging Face for news of files that are already here costs half a
    minute without network, and could change a model between two runs of a study.
    """

    source: str
    name: str
    local: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What every ``from_pretrained`` is given: never run an author's code."""
        return {"trust_remote_code": False, "local_files_only": self.local}


def load_pretrained(
    source: str,
    *,
    model_name: str,
    device: str = "auto",
    dtype: str = "auto",
    progress: Callable[[str, float | None], None],
) -> TransformersBackend:
    """The backend for a folder or a Hugging Face id, in evaluation mode and with attention that can be seen.

    ``model_name`` is what is shown and recorded. ModelError for everything that a person can run into with a model.
    """
    place = choose_device(device)
    number, reason = choose_dtype(dtype, place)
    progress(f"Loading {model_name} ({reason})", None)
    capture.register()
    disable_progress_bar()  # type: ignore[no-untyped-call]  # the steps are told through ``progress``
    with LOADING, _explained(model_name):
        try:
            local = is_here(source)
            model, tokenizer = _load(Files(source, model_name, local), number, place, progress)
        except OSError:
            if not local or Path(source).is_dir():
                raise
            # The cache holds only a part, for example after a download that was broken off.
            model, tokenizer = _load(Files(source, model_name), number, place, progress)
    progress(f"{model_name} is ready", 1.0)
    return TransformersBackend(model, tokenizer, model_name=model_name, device=place, dtype_reason=reason)


def is_here(source: str) -> bool:
    """Whether the source is a folder, or a Hugging Face id of which at least the configuration is cached."""
    return Path(source).is_dir() or isinstance(try_to_load_from_cache(source, "config.json"), str)


def _load(
    files: Files, dtype: torch.dtype, device: str, progress: Callable[[str, float | None], None]
) -> tuple[Any, Any]:
    config = read_config(files)
    tokenizer = read_tokenizer(files)
    need = weight_bytes(config, dtype)
    refuse_if_too_large(files.name, need, free_bytes(device), device)
    where = "" if files.local else ", fetched first if they are not here"
    progress(f"Loading the weights of {files.name} ({need / 1e9:.1f} GB{where})", None)
    return with_memory_errors(files.name, lambda: read_weights(files, config, dtype, device)), tokenizer


def read_config(files: Files) -> PreTrainedConfig:
    """The configuration, if it is one of a decoder-only model that transformers knows without foreign code."""
    raw, _ = PreTrainedConfig.get_config_dict(files.source, local_files_only=files.local)
    kind = raw.get("model_type", "")
    if not kind:
        raise ModelError(f"{files.name} has no config.json with a model_type: not a transformers model. {_ANOTHER}")
    if kind not in CONFIG_MAPPING:
        code = " It brings Python code of its own, which is not run here for safety." if "auto_map" in raw else ""
        raise ModelError(f"{files.name} is of type {kind!r}, which transformers does not know.{code} {_ANOTHER}")
    decoder = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)
    made_for = raw.get("architectures") or []
    fits = not made_for or any(a == decoder or a.endswith("ForCausalLM") for a in made_for)
    if decoder is None or raw.get("is_encoder_decoder") or not fits:
        what = ", ".join(made_for) or kind
        raise ModelError(f"{files.name} ({what}) is not a decoder-only model that continues a text. {_ANOTHER}")
    return AutoConfig.from_pretrained(files.source, **files.options)


def read_tokenizer(files: Files) -> Any:
    """The tokenizer; it must be a fast one, since documents are found in the prompt by its character offsets."""
    tokenizer: Any = AutoTokenizer.from_pretrained(files.source, **files.options)
    if not tokenizer.is_fast or not len(tokenizer):
        raise ModelError(f"{files.name} has no tokenizer.json (a fast tokenizer that gives places in text). {_ANOTHER}")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # padding is masked, so any token will do
    return tokenizer


def weight_bytes(config: PreTrainedConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights in this format, counted on a model without memory."""
    auto: Any = AutoModelForCausalLM  # its methods carry no types
    with torch.device("meta"):
        model = auto.from_config(deepcopy(config), trust_remote_code=False)
    return sum(p.numel() for p in model.parameters()) * dtype.itemsize


def free_bytes(device: str) -> int | None:
    """Free memory of the device, or None where it cannot be asked."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return None
    kilobytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kilobytes[0]) * 1024 if kilobytes else None


def refuse_if_too_large(name: str, need: int, free: int | None, device: str) -> None:
    """ModelError with both numbers if the weights alone do not fit."""
    if free is not None and need > free:
        raise ModelError(
            f"{name} needs {need / 1e9:.1f} GB for its weights, but {device} has {free / 1e9:.1f} GB free. "
            f"Close other programs, use --dtype bfloat16, or take a smaller model. {_ANOTHER}"
        )


def read_weights(files: Files, config: PreTrainedConfig, dtype: torch.dtype, device: str) -> Any:
    """The model with every weight read from its files, on the device."""
    auto: Any = AutoModelForCausalLM
    straight = {"device_map": {"": device}} if device.startswith("cuda") else {}  # not through the main memory
    model, report = auto.from_pretrained(
        files.source,
        config=config,
        dtype=dtype,
        attn_implementation=capture.IMPLEMENTATION,
        output_loading_info=True,
        **files.options,
        **straight,
    )
    wrong = sorted(str(key) for key in [*report["missing_keys"], *report["mismatched_keys"]])
    if wrong:
        raise ModelError(
            f"The files of {files.name} lack {len(wrong)} of its weights (for example {wrong[0]}), which would be left "
            f"at random. The model is incomplete or damaged: fetch it again. {_ANOTHER}"
        )
    if not model._supports_attention_backend:
        raise ModelError(_unseen(files.name))
    return model.eval() if straight else model.to(device).eval()


def with_memory_errors(name: str, work: Callable[[], T]) -> T:
    """Run ``work``; when memory runs out, give it back and say so as a ModelError."""
    try:
        return work()
    except (MemoryError, torch.OutOfMemoryError):
        pass
    except RuntimeError as error:  # what PyTorch raises for the main memory
        if "can't allocate memory" not in str(error):
            raise
    # Only here, outside the handler, are the tensors free that the exception's frames held.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    raise ModelError(
        f"Memory ran out while {name} was loaded. Close other programs or take a smaller model. {_ANOTHER}"
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn whatever foreign files and libraries raise into a ModelError that says what to do."""
    try:
        yield
    except MdqaError:
        raise
    except Exception as error:
        raise ModelError(explain(name, error)) from error


def explain(name: str, error: BaseException) -> str:
    """In words why a model could not be loaded, from the exception and those it came from."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    text = " ".join(str(error).split())
    if any(isinstance(e, GatedRepoError) for e in chain):
        return (
            f"{name} is gated: accept its licence on https://huggingface.co/{name}, make an access token there, and "
            f"run `hf auth login` (or set HF_TOKEN). {_ANOTHER}"
        )
    if any(isinstance(e, NotFoundError) for e in chain):
        return (
            f"There is no model {name!r} on Hugging Face, or it is private (then run `hf auth login`), and no folder "
            f"of that name. {_ANOTHER}"
        )
    if any(isinstance(e, OfflineModeIsEnabled | LocalEntryNotFoundError | ConnectionError) for e in chain):
        return (
            f"{name} is not on this machine and Hugging Face cannot be reached. Check the network (and HF_HUB_OFFLINE, "
            "HTTPS_PROXY), give a folder that holds the model, or use the built-in model: --model builtin."
        )
    if "trust_remote_code" in text or "custom code" in text:
        return f"{name} needs Python code from its author, which is not run here for safety. {_ANOTHER}"
    if "scaled_dot_product_attention" in text:
        return _unseen(name)
    if any(isinstance(e, json.JSONDecodeError) for e in chain) or "valid JSON" in text:
        return f"A file of {name} is not valid JSON: {_cut(text)}. Fetch the model again. {_ANOTHER}"
    return f"{name} cannot be loaded: {_cut(text) or type(error).__name__} {_ANOTHER}"


def _unseen(name: str) -> str:
    return f"{name} is of a kind whose attention transformers does not let one see. {_ANOTHER}"


def _cut(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
