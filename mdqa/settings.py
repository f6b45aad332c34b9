"""Settings from the environment, read once when a program starts and passed on from there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mdqa.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """Where things are and what is used by default. Every field has a variable of the same name, MDQA_<NAME>."""

    model: str = ""
    device: str = "auto"
    dtype: str = "auto"
    database: Path = Path()
    cache: Path = Path()
    host: str = "127.0.0.1"
    port: int = 7860
    user: str = ""
    password: str = ""
    api_key: str = field(default="", repr=False)  # for servers that a person names on the command line
    max_documents: int = 200
    max_characters: int = 2_000_000
    queue: int = 32

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Settings from ``MDQA_*`` variables; ConfigError names a variable that cannot be read."""
        env = os.environ if environment is None else environment
        data = Path(env.get("XDG_DATA_HOME") or "~/.local/share") / "mdqa"
        cache = Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "mdqa"
        return cls(
            model=env.get("MDQA_MODEL", ""),
            device=env.get("MDQA_DEVICE", "auto"),
            dtype=env.get("MDQA_DTYPE", "auto"),
            database=_path(env, "MDQA_DATABASE", data / "mdqa.db"),
            cache=_path(env, "MDQA_CACHE", cache),
            host=env.get("MDQA_HOST", cls.host),
            port=_integer(env, "MDQA_PORT", cls.port, 1, 65535),
            user=env.get("MDQA_USER", ""),
            password=env.get("MDQA_PASSWORD", ""),
            api_key=env.get("MDQA_API_KEY", "").strip(),
            max_documents=_integer(env, "MDQA_MAX_DOCUMENTS", cls.max_documents, 1, 10_000),
            max_characters=_integer(env, "MDQA_MAX_CHARACTERS", cls.max_characters, 1_000, 1_000_000_000),
            queue=_integer(env, "MDQA_QUEUE", cls.queue, 1, 10_000),
        )


def _path(env: Mapping[str, str], name: str, default: Path) -> Path:
    path = Path(env.get(name) or default)
    try:
        return path.expanduser()
    except RuntimeError:  # no such user, or a user without a home, as in some containers
        raise ConfigError(f"{name}: {path} begins with a home folder that is not known; give a full path") from None


def _integer(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = env.get(name, str(default))
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is not a whole number") from None
    if not low <= value <= high:
        raise ConfigError(f"{name}={value} is not between {low} and {high}")
    return value
