"""The model behind a comparison: the same weights with transformers' own attention, and what fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdqa.backends.base import Backend
from mdqa.errors import CapabilityError

if TYPE_CHECKING:
    from mdqa.backends.hf import TransformersBackend

CGROUP = Path("/sys/fs/cgroup")

MARGIN = 0.9
"""Share of the free memory that a variant may take; the rest is for what the estimate leaves out."""


def transformers_backend(backend: Backend) -> TransformersBackend:
    """The backend as one that runs through transformers; CapabilityError for any other."""
    from mdqa.backends.hf import TransformersBackend  # noqa: PLC0415 - heavy

    if not isinstance(backend, TransformersBackend):
        raise CapabilityError(
            f"the backend {backend.name!r} has no weights whose attention could be compared; choose a model that runs "
            "through transformers (builtin, a Hugging Face id or a folder)"
        )
    return backend


@contextmanager
def attention_of(model: Any, name: str) -> Iterator[None]:
    """The same weights with another attention implementation (``sdpa``, ``eager``); the model is restored after."""
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def eager_bytes(layers: int, heads: int, tokens: int, item_size: int) -> int:
    """Memory of an eager pass that returns its attention: all matrices, and one layer's three in float32."""
    matrix = heads * tokens * tokens
    return layers * matrix * item_size + 3 * matrix * 4


def lack_of_memory(need: int, free: int | None) -> str:
    """Why a variant is left out; empty if it fits or the free memory is not known."""
    if free is None or need <= MARGIN * free:
        return ""
    return f"would need {need / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"


def free_memory(device: str, cgroup: Path = CGROUP) -> int | None:
    """Free bytes of the device; on a CPU not more than the container leaves (control groups, version 2)."""
    from mdqa.backends.pretrained import free_bytes  # noqa: PLC0415 - heavy

    free = free_bytes(device)
    if device.startswith("cuda"):
        return free
    try:
        limit = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (cgroup / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return free
    if not limit.isdecimal():  # "max": no limit
        return free
    left = max(int(limit) - used + int(stat.get("inactive_file", 0)), 0)  # files that were only read give way
    return left if free is None else min(free, left)
