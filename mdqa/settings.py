"""Settings from the environment, read once when a program starts and passed on from there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mdqa.errors import ConfigError
from mdqa.users import ROLES, Role

SignIn = Literal["", "password", "huggingface"]
OF_THE_HOST = {"variable": False}
"""Marks fields that are read from variables of the host: a Space's SYSTEM, OAUTH_CLIENT_ID and SPACES_ZERO_GPU."""
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True)
class Settings:
    """Where things are and what is used by default.

    Every field has a variable of the same name, MDQA_<NAME>, except those that a host says (:data:`OF_THE_HOST`).
    """

    model: str = ""
    device: str = "auto"
    dtype: str = "auto"
    database: Path = Path()
    cache: Path = Path()
    host: str = "127.0.0.1"
    port: int = 7860
    user: str = ""
    password: str = field(default="", repr=False)
    users: Path | None = None  # the file of those who may sign in beside ``user``: see mdqa.users
    admins: tuple[
        str, ...
    ] = ()  # names of Hugging Face accounts, where people sign in with these; the Space's owner if none
    analysts: tuple[str, ...] = ()
    open_role: Role | None = None  # the role of other Hugging Face accounts; None: they are refused
    space: bool = field(default=False, metadata=OF_THE_HOST)  # a Hugging Face Space
    oauth: bool = field(default=False, metadata=OF_THE_HOST)  # ... whose people sign in with their accounts there
    zero_gpu: bool = field(default=False, metadata=OF_THE_HOST)  # ... that lends a GPU to single functions
    gpu_seconds: int = 300  # the longest time for which one run borrows that GPU
    snapshots: str = ""  # where snapshots of the database go: a folder, or hf://datasets/OWNER/NAME
    snapshot_minutes: int = 10
    log_level: str = "INFO"
    api_key: str = field(default="", repr=False)  # for servers that a person names on the command line
    models: tuple[str, ...] = ()  # more models that the page offers, servers among them
    vllm_python: str = ""  # the interpreter that has vLLM
    vllm_args: str = ""  # more options of its server
    max_documents: int = 200
    max_characters: int = 2_000_000
    queue: int = 32

    @property
    def sign_in(self) -> SignIn:
        """How people sign in; empty where they need not."""
        if (self.user and self.password) or self.users is not None:
            return "password"
        return "huggingface" if self.oauth else ""

    @property
    def temporary(self) -> bool:
        """Whether what is kept will be gone: the disk of a Space, apart from storage that it may have at /data."""
        return self.space and not self.snapshots and not self.database.is_relative_to("/data")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Settings from ``MDQA_*`` variables; ConfigError names a variable that cannot be read."""
        env = os.environ if environment is None else environment
        data = Path(env.get("XDG_DATA_HOME") or "~/.local/share") / "mdqa"
        cache = Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "mdqa"
        if bool(env.get("MDQA_USER")) is not bool(env.get("MDQA_PASSWORD")):
            raise ConfigError("MDQA_USER and MDQA_PASSWORD go together; set both or neither")
        space = env.get("SYSTEM") == "spaces"
        # Without the secret, the cookies of Gradio's session could be forged.
        oauth = space and bool(env.get("OAUTH_CLIENT_ID") and env.get("OAUTH_CLIENT_SECRET"))
        owner = env.get("SPACE_ID", "").partition("/")[0] if oauth else ""
        return cls(
            model=env.get("MDQA_MODEL", ""),
            device=env.get("MDQA_DEVICE", "auto"),
            dtype=env.get("MDQA_DTYPE", "auto"),
            database=_path(env, "MDQA_DATABASE", data / "mdqa.db"),
            cache=_path(env, "MDQA_CACHE", cache),
            # A Space is reached through its container's address, which it names by Gradio's own variables.
            host=env.get("MDQA_HOST") or (space and (env.get("GRADIO_SERVER_NAME") or "0.0.0.0")) or cls.host,
            port=_integer(
                env, "GRADIO_SERVER_PORT" if space and "MDQA_PORT" not in env else "MDQA_PORT", cls.port, 1, 65535
            ),
            user=env.get("MDQA_USER", ""),
            password=env.get("MDQA_PASSWORD", ""),
            users=_path(env, "MDQA_USERS", Path()) if env.get("MDQA_USERS") else None,
            admins=_names(env, "MDQA_ADMINS") or ((owner,) if owner else ()),  # a Space as it was pushed has its owner
            analysts=_names(env, "MDQA_ANALYSTS"),
            open_role=_role(env, "MDQA_OPEN_ROLE"),
            space=space,
            oauth=oauth,
            zero_gpu=space and env.get("SPACES_ZERO_GPU", "").lower() in ("1", "true"),
            gpu_seconds=_integer(env, "MDQA_GPU_SECONDS", cls.gpu_seconds, 1, 3600),
            snapshots=env.get("MDQA_SNAPSHOTS", "").strip(),
            snapshot_minutes=_integer(env, "MDQA_SNAPSHOT_MINUTES", cls.snapshot_minutes, 1, 1440),
            log_level=_one_of(env, "MDQA_LOG_LEVEL", cls.log_level, LOG_LEVELS),
            api_key=env.get("MDQA_API_KEY", "").strip(),
            models=_names(env, "MDQA_MODELS"),
            vllm_python=env.get("MDQA_VLLM_PYTHON", ""),
            vllm_args=env.get("MDQA_VLLM_ARGS", ""),
            max_documents=_integer(env, "MDQA_MAX_DOCUMENTS", cls.max_documents, 1, 10_000),
            max_characters=_integer(env, "MDQA_MAX_CHARACTERS", cls.max_characters, 1_000, 1_000_000_000),
            queue=_integer(env, "MDQA_QUEUE", cls.queue, 1, 10_000),
        )


def _names(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in env.get(name, "").split(",") if part.strip()))


def _one_of(env: Mapping[str, str], name: str, default: str, known: tuple[str, ...]) -> str:
    value = env.get(name) or default
    if value.upper() not in known:
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(known)}")
    return value.upper()


def _role(env: Mapping[str, str], name: str) -> Role | None:
    value = env.get(name, "").strip()
    if value and value not in ROLES[:2]:  # admins are named one by one
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(ROLES[:2])}; leave it out to refuse strangers")
    return value if value else None


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
