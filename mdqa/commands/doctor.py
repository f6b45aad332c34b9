"""Say what works here and what does not: packages, settings, device, models, database, snapshots, disk, sign-in.

Exit status 1 when something is broken that the program cannot do without. Nothing is changed, fetched or loaded; a
server is asked for its model, and whether the address of the page is free is tried.
"""

from __future__ import annotations

import argparse
import errno
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from mdqa.commands.backup import contents
from mdqa.commands.database import storage_module
from mdqa.commands.options import add_database_argument
from mdqa.errors import ConfigError, MdqaError, ModelError
from mdqa.ports import refusal
from mdqa.settings import OF_THE_HOST, Settings
from mdqa.users import NO_ADMIN, read_users, too_open, without_admin

State = Literal["ok", "note", "bad"]

NEEDED = (
    *("torch", "transformers", "accelerate", "sentence-transformers", "rank-bm25", "numpy", "scipy", "pydantic"),
    *("httpx", "openai", "filelock", "gradio", "plotly", "pillow", "sqlite-utils"),
)
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
    settings, wrong = _settings_without_faults(os.environ)
    yield from (Finding("settings", "bad", problem) for problem in wrong)
    path = (database or settings.database).expanduser().absolute()
    for part, check in {
        "settings": _settings,
        "device": lambda: _device(settings),
        "model": lambda: _models(settings),
        "database": lambda: _database(path),
        "snapshots": lambda: _snapshots(settings),
        "disk": lambda: _disk({"database": path.parent, "models": settings.cache.absolute()}),
        "address": lambda: _address(settings),
        "sign-in": lambda: _sign_in(settings),
    }.items():
        yield from _safely(part, check)


def _settings_without_faults(environment: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """What the rest is checked with, and what is wrong: a variable that cannot be read is told and left out."""
    left = dict(environment)
    wrong: list[str] = []
    while True:
        try:
            return Settings.from_environment(left), wrong
        except ConfigError as problem:
            wrong.append(str(problem))
        named = set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", wrong[-1])) & set(left)
        if not named:  # the home folder is not known
            return Settings(), wrong
        for name in named:
            del left[name]


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


def _models(settings: Settings) -> Iterator[Finding]:
    from mdqa.backends.base import SEPARATOR  # noqa: PLC0415 (imports torch)
    from mdqa.backends.catalog import default_model  # noqa: PLC0415

    first = settings.model.strip() or default_model()
    for model in dict.fromkeys((first, *settings.models)):
        for name in model.split(SEPARATOR):
            try:
                yield _model(name.strip(), settings)
            except MdqaError as problem:  # the page works without one that is only offered
                yield Finding("model", "bad" if model == first else "note", f"{name.strip()}: {problem}")


def _model(name: str, settings: Settings) -> Finding:
    """Whether a model is here, or its server answers; MdqaError where it cannot be had."""
    from mdqa.backends import embedded  # noqa: PLC0415 (imports torch)
    from mdqa.backends.catalog import BUILTIN  # noqa: PLC0415
    from mdqa.backends.loading import ENGINE, kind_of  # noqa: PLC0415
    from mdqa.backends.pretrained import is_here  # noqa: PLC0415
    from mdqa.backends.served import look_at  # noqa: PLC0415

    kind = kind_of(name)
    if kind == "scripted":
        return Finding("model", "ok", f"{name}: no model, for tests")
    if kind == "openai":
        before, _, rest = name.partition("://")
        wanted, _, scheme = before.rpartition("@")
        found = look_at(f"{scheme}://{rest}", model=wanted, key=settings.api_key)
        return Finding("model", "ok", f"{name} answers: {found.model}, a window of {found.window:,} tokens")
    source, engine = name.removeprefix(ENGINE), _engine(settings) if kind == "vllm" else ""
    if source.startswith(("/", ".", "~")) and not Path(source).expanduser().is_dir():
        raise ModelError("there is no such folder")
    here = embedded.is_ready(settings.cache) if source == BUILTIN else is_here(str(Path(source).expanduser()))
    return Finding(
        "model", "ok" if here else "note", f"{name} is {'here' if here else 'fetched when first used'}{engine}"
    )


def _engine(settings: Settings) -> str:
    """Where vLLM is; ConfigError where it is not."""
    python = settings.vllm_python or sys.executable
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    try:
        done = subprocess.run([python, "-c", look], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError) as problem:
        raise ConfigError(f"the Python {python} cannot be started ({problem}); see MDQA_VLLM_PYTHON") from None
    if done.returncode:
        raise ConfigError(f"the Python {python} has no vLLM; see requirements-vllm.txt and MDQA_VLLM_PYTHON")
    return f"; vLLM is in {python}"


def _database(path: Path) -> Iterator[Finding]:
    if path.is_dir():
        yield Finding("database", "bad", f"{path} is a folder; give the path of a file")
        return
    if not path.exists():
        folder = next(parent for parent in path.parents if parent.exists())
        writable = os.access(folder, os.W_OK)
        words = "is made at the first start" if writable else f"cannot be made: {folder} may not be written"
        yield Finding("database", "ok" if writable else "bad", f"{path} {words}")
        return
    found = storage_module("backup").condition(path)
    if found.empty:
        words = "is empty and filled at the next start; if it should hold something, restore a backup before that"
        yield Finding("database", "note", f"{path} {words}: python -m mdqa restore --input FILE")
        return
    if found.problem:
        way = "; stop the page and restore a backup: python -m mdqa restore --input FILE" if found.damaged else ""
        yield Finding("database", "bad", f"{path}: {found.problem}{way}")
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


def _snapshots(settings: Settings) -> Iterator[Finding]:
    if not settings.snapshots:
        words = "none, and this Space forgets everything when it restarts; set MDQA_SNAPSHOTS"
        yield Finding(
            "snapshots", "note" if settings.temporary else "ok", words if settings.temporary else "none wanted"
        )
        return
    place = storage_module("remotes").remote_of(settings.snapshots)
    if "://" in settings.snapshots:
        words = "the token is HF_TOKEN's" if os.environ.get("HF_TOKEN") else "there is no HF_TOKEN"
        yield Finding("snapshots", "note", f"{place.where} is not asked from here; {words}")
        return
    folder: Path = place.folder
    if not folder.exists():
        made = folder.parent.is_dir() and os.access(folder.parent, os.W_OK)
        words = "is made with the first one" if made else f"cannot be made in {folder.parent}; is the bucket mounted?"
        yield Finding("snapshots", "ok" if made else "bad", f"{folder} {words}")
        return
    read = storage_module("snapshots").Snapshot.read
    there = sorted(one for name in place.names() if (one := read(name)) is not None)
    newest = f", the newest of {there[-1].when:%Y-%m-%d %H:%M} UTC" if there else ""
    writable = os.access(folder, os.W_OK | os.X_OK)
    may = "" if writable else "; it may not be written, so that none can be added"
    yield Finding("snapshots", "ok" if writable else "bad", f"{len(there)} in {folder}{newest}{may}")


def _address(settings: Settings) -> Iterator[Finding]:
    where = f"{settings.host}:{settings.port}"
    problem = refusal(settings.host, settings.port)
    if problem is None:
        yield Finding("address", "ok", f"{where} is free")
    elif problem.errno == errno.EADDRINUSE:
        words = "is in use, perhaps by the page itself; a second one needs another MDQA_PORT"
        yield Finding("address", "note", f"{where} {words}")
    else:
        words = f"cannot listen on {where} ({problem.strerror or problem}); see MDQA_HOST, MDQA_PORT"
        yield Finding("address", "bad", words)


def _sign_in(settings: Settings) -> Iterator[Finding]:
    if not settings.sign_in:
        here = settings.host in ("127.0.0.1", "localhost", "::1")
        words = "nobody has to sign in" + ("" if here else f", and {settings.host} can be reached by others")
        yield Finding("sign-in", "ok" if here else "note", words)
        return
    if settings.sign_in == "huggingface":
        if importlib.util.find_spec("authlib") is None or importlib.util.find_spec("itsdangerous") is None:
            yield Finding("sign-in", "bad", "with Hugging Face accounts needs: pip install 'gradio[oauth]'")
        admins = ", ".join(settings.admins)
        words = f"with Hugging Face accounts; admins: {admins or 'none, see MDQA_ADMINS'}"
        yield Finding("sign-in", "ok" if admins else "note", words)
        return
    try:
        people = read_users(settings.users) if settings.users else {}
    except MdqaError as problem:
        yield Finding("sign-in", "bad", str(problem))
        return
    count = len(people) + bool(settings.user)
    yield Finding("sign-in", "ok" if count else "bad", f"with name and password; {count} may sign in")
    if count and without_admin(settings.user, people):
        yield Finding("sign-in", "note", NO_ADMIN)
    if settings.users is not None and too_open(settings.users):
        yield Finding("sign-in", "note", f"others on this machine can read {settings.users}; run: chmod 600")
