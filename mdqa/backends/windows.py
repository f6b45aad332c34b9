"""How far back the layers of a model see, read off its configuration."""

from __future__ import annotations

from typing import Any

_PLAIN_LAYERS = {"full_attention", "sliding_attention"}


def layer_windows(config: Any) -> tuple[int | None, ...] | None:
    """Per layer its sliding window, None where it sees everything; None at all for a model with other layers."""
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        types = ["sliding_attention" if window else "full_attention"] * config.num_hidden_layers
    sharing: int = getattr(config, "num_kv_shared_layers", 0)
    if set(types) - _PLAIN_LAYERS or sharing:
        return None
    return tuple(int(window) if kind == "sliding_attention" and window else None for kind in types)


def smallest_window(config: Any) -> int | None:
    """Sliding window of the model's layers, None if every layer sees everything."""
    types = getattr(config, "layer_types", None)
    if types is not None and "sliding_attention" not in types:
        return None
    window = getattr(config, "sliding_window", None)
    return int(window) if window else None
