"""What answers at an address: its model and window, whether it is vLLM, which takes token ids, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from mdqa.backends.addresses import check_address, check_key, key_problem, said, way_to
from mdqa.errors import ModelError

UNKNOWN_WINDOW = 32_768
"""Tokens assumed where a server does not say how long its window is; it refuses by itself what is too long."""

SECONDS = 10.0

WITHOUT: Mapping[str, str] = {
    "seed": "a sampled reply cannot be had again",
    "temperature": "it chooses how much chance is in a reply",
    "top_p": "it chooses how much chance is in a reply",
    "stop": "a reply may go on beyond its end",
    "response_format": "a reply need not have the wanted form",
    "stream_options": "tokens are estimated",
}
"""What some servers do not take, and what follows when it is not sent."""

_REFUSED = re.compile(
    r"unsupported|not support|unavailable|unknown|unrecogni[sz]ed|unexpected|extra|not permitted|not allowed"
)


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
    try:
        client = httpx.Client(timeout=SECONDS, headers=headers, **way_to(base))
    except (ImportError, ValueError) as error:
        raise ModelError(f"the proxy that the environment names cannot be used: {error}") from None
    with client:
        cards = _cards(client, base, key)
        found = _choose(cards, model, base)
        window = found.get("max_model_len")
        root = found.get("root")
        return Served(
            base,
            str(found["id"]),
            window if type(window) is int and window > 0 else UNKNOWN_WINDOW,
            _vllm_version(client, base) if found.get("owned_by") == "vllm" else "",
            root if isinstance(root, str) else "",
        )


class Refusals:
    """What a server was found not to take. Some models want another name for the limit, or nothing but the prompt."""

    def __init__(self) -> None:
        self._without: list[str] = []
        self._renamed = False

    def fit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request in a form that was not refused yet."""
        fitting = {name: value for name, value in body.items() if name not in self._without}
        if self._renamed and "max_tokens" in fitting:
            fitting["max_completion_tokens"] = fitting.pop("max_tokens")
        return fitting

    def learn(self, refusal: str, sent: Mapping[str, Any]) -> bool:
        """Whether a request that was refused in these words can be sent again in another form, by :meth:`fit`."""
        words = refusal.lower()
        if "max_tokens" in sent and "max_completion_tokens" in words and "instead" in words:
            self._renamed = True
            return True
        named = [name for name in WITHOUT if name in sent and re.search(rf"['\"`.]{name}\b|\b{name}['\"`]", words)]
        named = named or [name for name in WITHOUT if name in sent and "_" in name and name in words]
        if not named or not _REFUSED.search(words):
            return False
        self._without += [name for name in named[:1] if name not in self._without]
        return True

    def notices(self, url: str) -> list[str]:
        """What a person should know of requests that were changed."""
        return [f"The server {url} does not take {name!r}: {WITHOUT[name]}." for name in self._without]


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
        doubt = "is it running, and is the address right?"
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            doubt = "if you trust it, name the file with its certificate in SSL_CERT_FILE"
        raise ModelError(
            f"the server {base} cannot be reached ({type(error).__name__}: {said(str(error), key)}); {doubt}"
        ) from None
    if reply.status_code in (401, 403):
        raise ModelError(f"the server {base} {key_problem(key)} ({reply.status_code})")
    if reply.status_code == 429 or reply.status_code >= 500:
        raise ModelError(
            f"the server {base} replies {reply.status_code}: {said(reply.text, key)}; it may be busy or still starting"
        )
    if reply.has_redirect_location:
        raise ModelError(
            f"the server {base} sends on to {said(reply.headers['Location'], key)}; nothing was sent there: give the "
            "address itself, if you trust it"
        )
    try:
        data: Any = reply.json()
        cards = [card for card in data["data"] if isinstance(card, dict) and isinstance(card.get("id"), str)]
    except (ValueError, KeyError, TypeError, RecursionError):
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
