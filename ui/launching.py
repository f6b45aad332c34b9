"""How the page is served: command-line options over the environment, and Gradio's switches."""

from __future__ import annotations

import argparse
import errno
import logging
import signal
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mdqa.errors import ConfigError
from mdqa.settings import Settings

MAX_UPLOAD = "64mb"


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Settings from MDQA_* variables with what the command line says instead; ConfigError names a bad variable."""
    given = Settings.from_environment()
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


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and 65535")
    return int(text)


def check_address(settings: Settings) -> None:
    """Raise ConfigError if this machine cannot listen on the settings' host and port, before anything is loaded."""
    where = f"{settings.host}:{settings.port}"
    try:
        kind, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {settings.port} is in use, perhaps by this program running already; stop that or choose another "
                "port with --port"
            ) from None
        reason = problem.strerror or problem
        raise ConfigError(f"cannot listen on {where} ({reason}); choose another --host or --port") from None


def start_log() -> None:
    """Messages of ours, time first, on standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("mdqa").setLevel(logging.INFO)


def stop_on_terminate() -> None:
    """Let SIGTERM (a container that is stopped) end the program as Ctrl+C does, with the work stored."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def launch_options(settings: Settings) -> dict[str, Any]:
    """Gradio's switches: nothing public, nothing recorded in the browser, no fault's text on the page."""
    database = settings.database.expanduser().absolute()
    return {
        "server_name": settings.host,
        "server_port": settings.port,
        "auth": (settings.user, settings.password) if settings.user and settings.password else None,
        "blocked_paths": [str(database) + end for end in ("", "-wal", "-shm")],
        "max_file_size": MAX_UPLOAD,
        "run_history": False,
        "ssr_mode": False,
        "show_error": False,
        "share": False,
        "enable_monitoring": False,
        "strict_cors": True,
        "mcp_server": False,
        "footer_links": [],
        "quiet": True,
    }
