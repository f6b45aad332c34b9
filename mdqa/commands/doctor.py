"""Say what works here and what does not: packages, device, model, database, disk, settings, sign-in.

Exit status 1 when something is broken that the program cannot do without. Nothing is changed, fetched or loaded.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from mdqa.commands.backup import contents
from mdqa.commands.database import storage_module
from mdqa.commands.options import add_database_argument
from mdqa.errors import ConfigError, MdqaError
from mdqa.settings import OF_THE_HOST, Settings
from mdqa.users import read_users, too_open

State = Literal["ok", "note", "bad"]

NEEDED = ("torch", "transformers", "sentence-transformers", "rank-bm25", "gradio", "plotly", "sqlite-utils", "pydantic")
OPTIONAL = {
    "vllm": "a GPU's throughput (backend vllm)",
    "ray": "evaluate --engine ray",
    "authlib": "signing in with Hugging Face accounts: pip install 'gradio[oauth]'",
    "datasets": "questions from hf:owner/name",
}
"""Packages that the program does without, and what they are for."""

LITTLE, TOO_LITTLE = 2 * 2**30, 200 * 2**20
"""Free bytes on a disk that are worth a note, and those that are too few to go on."""


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``bad``: the program cannot be used; ``note``: worth knowing."""

    part: str
    state: State
    text: str


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Report; 1 if something is bad."""
    found = list(findings(args.db))
    broken = any(finding.state == "bad" for finding in found)
    if args.json:
        print(json.dumps({"works": not broken, "findings": [asdict(finding) for finding in found]}, ensure_ascii=False))
        return int(broken)
    for finding in found:
        print(f"{finding.state:<5}{finding.part:<10}{finding.text}")
    print("something has to be mended first" if broken else "everything that is needed works", file=sys.stderr)
    return int(broken)


def findings(database: Path | None = None) -> Iterator[Finding]:
    """All checks in turn; what one of them cannot find out is a finding too."""
    yield from _safely("versions", _versions)
    try:
        settings = Settings.from_environment()
    except ConfigError as problem:
        yield Finding("settings", "bad", str(problem))
        return
    path = (database or settings.database).expanduser().absolute()
    for part, check in {
        "settings": _settings,
        "device": lambda: _device(settings),
        "model": lambda: _model(settings),
        "database": lambda: _database(path),
        "disk": lambda: _disk({"database": path.parent, "models": settings.cache.absolute()}),
        "sign-in": lambda: _sign_in(settings),
    }.items():
        yield from _safely(part, check)


def _safely(part: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as problem:  # a doctor who falls ill helps nobody
        yield Finding(part, "bad", f"cannot be checked: {problem or type(problem).__name__}")


def _versions() -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if good else "bad", f"{platform.python_version()} on {platform.platform()}")
    for name in NEEDED:
        try:
            yield Finding("package", "ok", f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding("package", "bad", f"{name} is missing; run: pip install -r requirements.txt")
    for name, use in OPTIONAL.items():
        there = importlib.util.find_spec(name) is not None
        yield Finding("package", "ok" if there else "note", f"{name}{'' if there else ' is not installed'}: for {use}")


def _settings() -> Iterator[Finding]:
    known = {f"MDQA_{field.name.upper()}" for field in fields(Settings) if field.metadata != OF_THE_HOST}
    given = sorted(name for name in os.environ if name.startswith("MDQA_"))
    for name in given:
        if name not in known:
            yield Finding("settings", "note", f"{name} is no setting and does nothing")
    used = [name for name in given if name in known]
    yield Finding("settings", "ok", f"from the environment: {', '.join(used) or 'none, all defaults'}")


def _device(settings: Settings) -> Iterator[Finding]:
    from mdqa.backends.precision import choose_device, choose_dtype  # noqa: PLC0415 (imports torch)

    device = choose_device(settings.device)
    yield Finding("device", "ok", choose_dtype(settings.dtype, device)[1])


def _model(settings: Settings) -> Iterator[Finding]:
    from mdqa.backends import embedded  # noqa: PLC0415 (imports torch)
    from mdqa.backends.catalog import BUILTIN, default_model  # noqa: PLC0415
    from mdqa.backends.loading import kind_of  # noqa: PLC0415
    from mdqa.backends.pretrained import is_here  # noqa: PLC0415

    name = settings.model or default_model()
    if kind_of(name) != "hf":
        yield Finding("model", "ok", name)
        return
    here = embedded.is_ready(settings.cache) if name == BUILTIN else is_here(name)
    yield Finding("model", "ok" if here else "note", f"{name} is {'here' if here else 'fetched when first used'}")


def _database(path: Path) -> Iterator[Finding]:
    if not path.exists():
        folder = next(parent for parent in path.parents if parent.exists())
        writable = os.access(folder, os.W_OK)
        words = "is made at the first start" if writable else f"cannot be made: {folder} may not be written"
        yield Finding("database", "ok" if writable else "bad", f"{path} {words}")
        return
    found = storage_module("backup").condition(path)
    if found.problem:
        yield Finding("database", "bad", f"{path}: {found.problem}; restore a backup: python -m mdqa restore")
        return
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        yield Finding("database", "bad", f"{path} or its folder may not be written")
    size = f"{found.bytes / 2**20:.1f} MiB"
    yield Finding("database", "ok", f"{path}: sound, {contents(found.counts)}, {size}")
    words = found.step if found.current else f"{found.step}; a newer one is made at the next start, back it up before"
    yield Finding("database", "ok" if found.current else "note", f"schema {words}")


def _disk(folders: dict[str, Path]) -> Iterator[Finding]:
    for use, folder in folders.items():
        place = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
        free = shutil.disk_usage(place).free
        state: State = "bad" if free < TOO_LITTLE else "note" if free < LITTLE else "ok"
        yield Finding("disk", state, f"{free / 2**30:.1f} GiB free for {use} ({place})")


def _sign_in(settings: Settings) -> Iterator[Finding]:
    if not settings.sign_in:
        here = settings.host in ("127.0.0.1", "localhost", "::1")
        words = "nobody has to sign in" + ("" if here else f", and {settings.host} can be reached by others")
        yield Finding("sign-in", "ok" if here else "note", words)
        return
    if settings.sign_in == "huggingface":
        admins = ", ".join(settings.admins)
        words = f"with Hugging Face accounts; admins: {admins or 'none, see MDQA_ADMINS'}"
        yield Finding("sign-in", "ok" if admins else "note", words)
        return
    try:
        people = len(read_users(settings.users)) if settings.users else 0
    except MdqaError as problem:
        yield Finding("sign-in", "bad", str(problem))
        return
    count = people + bool(settings.user)
    yield Finding("sign-in", "ok" if count else "bad", f"with name and password; {count} may sign in")
    if settings.users is not None and too_open(settings.users):
        yield Finding("sign-in", "note", f"others on this machine can read {settings.users}; run: chmod 600")
