"""What answers at an address: which model, how long its window is, and whether it is vLLM, which takes token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from mdqa.backends.addresses import check_address, check_key, key_problem, said
from mdqa.errors import ModelError

UNKNOWN_WINDOW = 32_768
"""Tokens assumed where a server does not say how long its window is; it refuses by itself what is too long."""

SECONDS = 10.0


@dataclass(frozen=True)
class Served:
    """A model behind an address.

    ``model``: its name there. ``window``: longest prompt plus reply in tokens. ``vllm``: the engine's version, empty
    for another server. ``root``: where vLLM has the model from, a folder or a Hugging Face id.
    """

    url: str
    model: str
    window: int
    vllm: str = ""
    root: str = ""


def look_at(url: str, *, model: str = "", key: str = "") -> Served:
    """Ask a server what it has.

    Args:
        url: where its API begins, such as http://127.0.0.1:8000/v1.
        model: the name of the wanted model there; may be left out where the server has one only.
        key: the bearer token, or empty.

    Raises:
        ConfigError: an address that is none or holds a secret.
        ModelError: the server cannot be reached, refuses the key, or does not have the model.
    """
    check_address(url, "the model's server")
    check_key(key)
    base = url.rstrip("/")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(timeout=SECONDS, headers=headers) as client:
        cards = _cards(client, base, key)
        found = _choose(cards, model, base)
        window = found.get("max_model_len")
        root = found.get("root")
        return Served(
            base,
            str(found["id"]),
            window if isinstance(window, int) and window > 0 else UNKNOWN_WINDOW,
            _vllm_version(client, base) if found.get("owned_by") == "vllm" else "",
            root if isinstance(root, str) else "",
        )


def tokenizer_of(served: Served) -> Any:
    """The model's own tokenizer where this machine has it, else None.

    Only vLLM says where its model is from, and only vLLM takes token ids. Nothing is fetched: what a server says must
    not make this machine call somebody.
    """
    if not served.vllm or not served.root:
        return None
    from mdqa.backends.pretrained import Files, is_here, read_tokenizer  # noqa: PLC0415 (brings PyTorch)

    try:
        return read_tokenizer(Files(served.root, served.model, local=True)) if is_here(served.root) else None
    except (ModelError, OSError, ValueError):  # no fast tokenizer, or only a part of the files
        return None


def _cards(client: httpx.Client, base: str, key: str) -> list[dict[str, Any]]:
    try:
        reply = client.get(f"{base}/models")
    except httpx.TimeoutException:
        raise ModelError(f"the server {base} did not reply within {SECONDS:g} seconds; is it still starting?") from None
    except (httpx.RequestError, httpx.InvalidURL) as error:
        raise ModelError(
            f"the server {base} cannot be reached ({type(error).__name__}: {said(str(error), key)}); is it running, "
            "and is the address right?"
        ) from None
    if reply.status_code in (401, 403):
        raise ModelError(f"the server {base} {key_problem(key)} ({reply.status_code})")
    try:
        data: Any = reply.json()
        cards = [card for card in data["data"] if isinstance(card, dict) and isinstance(card.get("id"), str)]
    except (ValueError, KeyError, TypeError):
        raise ModelError(
            f"{base}/models replies {reply.status_code} and no list of models: {said(reply.text, key)}; the address "
            "must be that of an OpenAI-compatible API, which mostly ends in /v1"
        ) from None
    return cards


def _choose(cards: list[dict[str, Any]], model: str, base: str) -> dict[str, Any]:
    names = [card["id"] for card in cards]
    listed = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    if model:
        for card in cards:
            if card["id"] == model:
                return card
        raise ModelError(f"the server {base} does not have {model!r}; it has: {listed or 'none'}")
    if len(cards) != 1:
        raise ModelError(f"the server {base} has {len(cards)} models; name one as NAME@{base}. It has: {listed}")
    return cards[0]


def _vllm_version(client: httpx.Client, base: str) -> str:
    """The version of vLLM; "unknown" where a proxy before it does not pass that on."""
    try:
        reply = client.get(f"{base.removesuffix('/v1')}/version")
        return str(reply.json()["version"]) if reply.is_success else "unknown"
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return "unknown"
