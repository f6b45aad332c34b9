"""The file of people who may sign in: name, role, hash of the password. ``python -m mdqa users`` maintains it.

A JSON file: ``{"users": [{"name": "ann", "role": "annotator", "password": "scrypt$16384$8$1$<salt>$<hash>"}]}``.
Passwords are kept as scrypt hashes (RFC 7914) with a salt each, so the file alone signs nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from mdqa.errors import ConfigError, InputError, OutputError

Role = Literal["analyst", "annotator", "admin"]
"""Admins may everything; analysts see runs and start them; annotators judge what is put before them."""

ROLES: tuple[Role, ...] = get_args(Role)
NO_ADMIN = (
    "nobody who may sign in is an admin, so nobody can do what an admin does; give somebody the role with: "
    "python -m mdqa users role NAME --role admin"
)
MAX_NAME = 100
MIN_PASSWORD = 8
MAX_PASSWORD = 1_000
COST, BLOCK, PARALLEL = 2**14, 8, 1
"""Scrypt's n, r and p for new passwords: 16 MB and some hundredths of a second a guess."""
LIMITS = 2**17, 16, 4
"""The same at most; beyond them a file is refused, so that a hash cannot take the server's memory."""


@dataclass(frozen=True)
class User:
    """One line of the file. ``password``: ``scrypt$n$r$p$salt$hash``, salt and hash in hexadecimal digits."""

    name: str
    role: Role
    password: str


def clean_name(text: str) -> str:
    """The name as it is compared and stored: composed characters (NFC), single spaces.

    InputError for an empty or long name, or one with characters that cannot be seen or stored.
    """
    name = " ".join(unicodedata.normalize("NFC", text[: 4 * MAX_NAME]).split())
    if not 1 <= len(name) <= MAX_NAME or len(text) > 4 * MAX_NAME:
        raise InputError(f"a name has 1 to {MAX_NAME} characters", place="name")
    if any(unicodedata.category(c)[0] == "C" for c in name):
        raise InputError(f"{name!a} has characters that cannot be seen; leave them out", place="name")
    return name


def hashed(password: str) -> str:
    """The password as the file keeps it, with a new salt. InputError where it is too short or too long."""
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise InputError(
            f"it has {len(password)} characters; it needs {MIN_PASSWORD} to {MAX_PASSWORD}", place="password"
        )
    salt = secrets.token_bytes(16)
    digest = _scrypt(password, salt, COST, BLOCK, PARALLEL)
    return f"scrypt${COST}${BLOCK}${PARALLEL}${salt.hex()}${digest.hex()}"


def matches(kept: str, password: str) -> bool:
    """Whether this is the password that was hashed; compared in constant time."""
    _, cost, block, parallel, salt, digest = kept.split("$")
    found = _scrypt(password[:MAX_PASSWORD], bytes.fromhex(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(found.hex(), digest) and len(password) <= MAX_PASSWORD


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    data = unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")
    memory = 132 * block * (cost + parallel)  # a little more than the 128 r (n + p) that it takes
    return hashlib.scrypt(data, salt=salt, n=cost, r=block, p=parallel, maxmem=memory + 2**20, dklen=32)


def read_users(path: Path) -> Mapping[str, User]:
    """The people of a file by name, read again only when the file has changed.

    ConfigError: there is no such file, it cannot be read, or an entry is wrong; the text says which.
    """
    try:
        stat = path.stat()
    except OSError as problem:
        raise ConfigError(
            f"the users file {path} cannot be read ({problem.strerror}); add somebody with: python -m mdqa users add"
        ) from None
    return _read(path, stat.st_mtime_ns, stat.st_size, stat.st_ino)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int, number: int) -> Mapping[str, User]:
    """The file in the state that these figures tell from others."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise ConfigError(f"the users file {path} cannot be read ({problem.strerror})") from None
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"the users file {path} is no JSON: {problem}") from None
    entries = content.get("users") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(f'the users file {path} has no list "users"')
    users: dict[str, User] = {}
    for number_, entry in enumerate(entries, 1):
        try:
            user = _user(entry)
        except (InputError, ValueError) as problem:
            raise ConfigError(f"the users file {path}, entry {number_}: {problem}") from None
        if user.name in users:
            raise ConfigError(f"the users file {path}, entry {number_}: {user.name!r} is in it twice")
        users[user.name] = user
    return users


def _user(entry: Any) -> User:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("name", "role", "password")):
        raise ValueError("it needs the texts name, role and password")
    if entry["role"] not in ROLES:
        raise ValueError(f"there is no role {entry['role']!r}; there is: {', '.join(ROLES)}")
    parts = entry["password"].split("$")
    try:
        kind, cost, block, parallel, salt, digest = parts
        numbers = int(cost), int(block), int(parallel)
        sound = kind == "scrypt" and len(bytes.fromhex(salt)) >= 8 and len(bytes.fromhex(digest)) == 32
    except ValueError:
        sound = False
    within = sound and numbers[0] >= 2 and all(1 <= n <= most for n, most in zip(numbers, LIMITS, strict=True))
    if not within or numbers[0] & (numbers[0] - 1):  # scrypt's n is a power of two
        raise ValueError("the password is no scrypt hash; set it with: python -m mdqa users password")
    return User(clean_name(entry["name"]), entry["role"], entry["password"])


def write_users(path: Path, users: Iterable[User]) -> None:
    """Replace the file in one step; only its owner may read it. OutputError where it cannot be written."""
    rows = [{"name": user.name, "role": user.role, "password": user.password} for user in users]
    text = json.dumps({"users": rows}, ensure_ascii=False, indent=1) + "\n"
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
        new = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as problem:
        raise OutputError(str(path), problem) from None


def without_admin(owner: str, users: Mapping[str, User]) -> bool:
    """Whether nobody who may sign in is an admin. ``owner``: MDQA_USER, who always is one; empty for nobody."""
    return not owner and all(user.role != "admin" for user in users.values())


def too_open(path: Path) -> bool:
    """Whether others than its owner may read or write the file (where the system knows such a thing)."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)
