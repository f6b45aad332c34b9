"""How the page is served: command-line options over the environment, and Gradio's switches."""

from __future__ import annotations

import argparse
import errno
import importlib.util
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradio.utils import get_upload_folder
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware  # leaves event streams alone

from mdqa.errors import ConfigError
from mdqa.ports import is_loopback, refusal
from mdqa.settings import Settings
from mdqa.users import NO_ADMIN, clean_name, read_users, too_open, without_admin
from ui.logs import log
from ui.page import SESSIONS
from ui.shield import MAX_UPLOAD, Shield
from ui.signing_in import SignIn
from ui.views.signing_in import sign_in_message

NETWORKED = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "gluster", "lustre", "afs")
"""File systems without the locks and the shared memory that SQLite's write-ahead log needs."""


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Settings from MDQA_* variables with what the command line says instead; ConfigError names a bad variable."""
    given = placed(Settings.from_environment())
    parser = argparse.ArgumentParser(
        prog="app.py", description="Serve the page. Every option has a variable MDQA_<NAME>."
    )
    parser.add_argument("--model", default=given.model, help="builtin, a Hugging Face id or a folder")
    parser.add_argument("--device", default=given.device, help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument(
        "--dtype", default=given.dtype, help="auto, float32, bfloat16 or float16 (default: %(default)s)"
    )
    parser.add_argument("--host", default=given.host, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=given.port, help="port (default: %(default)s)")
    parser.add_argument("--database", type=Path, default=given.database, help="SQLite file (default: %(default)s)")
    options = vars(parser.parse_args(arguments))
    return replace(given, **options)


def placed(settings: Settings, environment: Mapping[str, str] | None = None) -> Settings:
    """On a Space whose home cannot be written: what nobody gave a place lies in the folder for temporary files."""
    env = os.environ if environment is None else environment
    if not settings.space:
        return settings
    spare = Path(tempfile.gettempdir()) / f"mdqa-{os.getuid()}"
    places = {"database": (settings.database.parent, "data/mdqa.db"), "cache": (settings.cache, "cache")}
    lost = {
        name: spare / beside
        for name, (folder, beside) in places.items()
        if not env.get(f"MDQA_{name.upper()}") and not _can_write(folder)
    }
    if lost:
        log.warning("%s cannot be written; using %s instead", settings.database.parent, spare)
        spare.mkdir(mode=0o700, exist_ok=True)
    return replace(settings, **lost)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def check_storage(settings: Settings) -> None:
    """Say in the log what the owner should know about where things are kept and computed."""
    kind = file_system(settings.database)
    if kind.startswith(NETWORKED):
        log.warning(
            "the database %s lies on a mount of the kind %s, where a database that is in use can be damaged; keep it "
            "on a local disk and name the mount in MDQA_SNAPSHOTS",
            *(settings.database, kind),
        )
    if settings.temporary:
        log.warning("this Space forgets everything when it restarts; set MDQA_SNAPSHOTS to keep it")
    if settings.zero_gpu:
        log.warning(
            "ZeroGPU lends a GPU for each run, for %d seconds at most (MDQA_GPU_SECONDS); calibrations have none and "
            "are computed on the processor",
            settings.gpu_seconds,
        )


def file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of file system that a path lies on; empty where that cannot be told."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    where = path.expanduser().absolute()
    parts = [line.split() for line in lines]
    found = [(Path(part[1].replace("\\040", " ")), part[2]) for part in parts if len(part) > 2]
    above = [(len(folder.parts), kind) for folder, kind in found if where.is_relative_to(folder)]
    deepest = max((depth for depth, _ in above), default=0)
    return next((kind for depth, kind in reversed(above) if depth == deepest), "")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and 65535")
    return int(text)


def check_address(settings: Settings) -> None:
    """Raise ConfigError if this machine cannot listen on the settings' host and port, before anything is loaded."""
    problem = refusal(settings.host, settings.port)
    if problem is None:
        return
    if problem.errno == errno.EADDRINUSE:
        raise ConfigError(
            f"port {settings.port} is in use, perhaps by this program running already; stop that or choose another "
            "port with --port"
        )
    where, reason = f"{settings.host}:{settings.port}", problem.strerror or problem
    raise ConfigError(f"cannot listen on {where} ({reason}); choose another --host or --port")


def check_people(settings: Settings) -> None:
    """Raise ConfigError where nobody could sign in; say in the log what the owner of the page should know."""
    if settings.user:
        clean_name(settings.user)
    if settings.users is not None:
        people = read_users(settings.users)
        if not people and not settings.user:
            raise ConfigError(f"the users file {settings.users} is empty; add somebody with: python -m mdqa users add")
        if without_admin(settings.user, people):
            log.warning(NO_ADMIN)
        if too_open(settings.users):
            log.warning("others on this machine can read %s; take that away with: chmod 600", settings.users)
    if settings.sign_in == "huggingface":
        if importlib.util.find_spec("authlib") is None or importlib.util.find_spec("itsdangerous") is None:
            raise ConfigError("signing in with Hugging Face needs two packages; run: pip install 'gradio[oauth]'")
        if not settings.admins:
            log.warning("nobody is named in MDQA_ADMINS, so nobody can do what an admin does")
    if not settings.sign_in and not is_loopback(settings.host):
        log.warning(
            "everybody who can reach %s:%d may use this page%s; set MDQA_USER and MDQA_PASSWORD, or MDQA_USERS",
            *(settings.host, settings.port, "" if settings.space else ", delete and export included"),
        )


def stop_on_terminate() -> None:
    """Let SIGTERM (a container that is stopped) end the program as Ctrl+C does, with the work stored."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end is on its way and must not be ended in its turn
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def events_at_once(settings: Settings) -> int:
    """Events that Gradio works on at a time: two who watch each run that may be in line, and 40 others.

    Whoever watches a run holds a place until it ends. Gradio's own 40 would leave none for Stop where 40 people watch.
    """
    return 40 + 2 * (settings.queue + 1)


def launch_options(settings: Settings) -> dict[str, Any]:
    """Gradio's switches: nothing public, nothing recorded in the browser, no fault's text on the page."""
    return {
        "server_name": settings.host,
        "server_port": settings.port,
        "auth": SignIn(settings).check if settings.sign_in == "password" else None,
        "auth_message": sign_in_message(),
        "app_kwargs": {
            "middleware": [Middleware(GZipMiddleware, minimum_size=2000), Middleware(Shield, settings=settings)]
        },
        "allowed_paths": [],
        "blocked_paths": blocked_paths(settings),
        "max_file_size": MAX_UPLOAD,
        "max_threads": events_at_once(settings),
        "state_session_capacity": SESSIONS,
        "run_history": False,
        "ssr_mode": False,
        "show_error": False,
        "share": False,
        # Skips one thing only: a look at the page that gives up after three seconds, which a busy machine needs longer
        # for. That the server answers was asked before, without a limit of time.
        "_frontend": False,
        "enable_monitoring": False,
        "strict_cors": True,
        "mcp_server": False,
        "pwa": False,
        "footer_links": [],
        "quiet": True,
    }


def blocked_paths(settings: Settings) -> list[str]:
    """What is never served: the database's folder, the users file, the folder of the snapshots.

    Where uploaded files lie below that folder (a database in the folder for temporary files), the database's own files.
    """
    database = settings.database.expanduser().absolute()
    files = [str(database) + end for end in ("", "-wal", "-shm", "-journal", ".before")]
    folder = database.parent.resolve()
    blocked = files if Path(get_upload_folder()).resolve().is_relative_to(folder) else [str(folder), *files]
    if settings.snapshots and "://" not in settings.snapshots:
        blocked.append(str(Path(settings.snapshots).expanduser().absolute()))
    return [*blocked, *([str(settings.users.absolute())] if settings.users else [])]
