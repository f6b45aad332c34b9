"""Addresses of servers that a person names: plain http or https, and no secret in them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx

from mdqa.errors import ConfigError
from mdqa.ports import is_loopback


def check_address(url: str, what: str) -> None:
    """ConfigError unless this is a plain http or https address without a secret in it. ``what``: for the message."""
    try:
        parts = urlsplit(url)
        bad = parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 0) < 0
        bad = bad or not url.isprintable() or " " in url
        (parts.hostname or "").encode("idna")  # what no name of a host can be is a ValueError
    except ValueError:
        bad, parts = True, urlsplit("")
    if bad:
        raise ConfigError(f"the address of {what} must look like https://HOST/v1 or http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"the address of {what} must hold no name, password or query: options are stored with every result. "
            "A key belongs into the environment variable MDQA_API_KEY."
        )


def way_to(url: str) -> dict[str, Any]:
    """Options of an HTTP client for this address: what is on this machine is not looked for through a proxy.

    A proxy of the environment knows another "this machine", and would see the key and the documents.
    """
    if not is_loopback(urlsplit(url).hostname or ""):
        return {}
    # without the environment's certificates otherwise (SSL_CERT_FILE)
    trusted = {"verify": httpx.create_ssl_context()} if url.startswith("https") else {}
    return {"trust_env": False, **trusted}


def check_key(key: str) -> None:
    """ConfigError for a key with characters that no header can carry."""
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("MDQA_API_KEY holds characters that no key has, such as a line break")


def key_problem(key: str) -> str:
    """What a server that refuses to talk without the right key says, in our words: its own may repeat the key."""
    return "refuses the key in MDQA_API_KEY" if key else "wants a key; set MDQA_API_KEY"


def said(text: str, key: str) -> str:
    """The beginning of what a server said, on one line and without the key."""
    shown = " ".join(text.split())
    return (shown.replace(key, "***") if key else shown)[:300]
