"""The page as a program of its own (``python app.py``), for benchmarks that speak to it over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx

import mdqa
from mdqa.errors import ConfigError, ModelError
from mdqa.ports import free_port

START_SECONDS = 180
ROOT = Path(mdqa.__file__).resolve().parent.parent


class Site:
    """A server on a free port of this machine, with the scripted backend and a database of its own.

    ``users``: the file of those who sign in; without it nobody has to.
    """

    def __init__(self, folder: Path, database: Path, users: Path | None = None) -> None:
        if not (ROOT / "app.py").is_file():
            raise ConfigError(f"there is no app.py in {ROOT}; this benchmark needs the project's folder")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MDQA_")},
            "MDQA_MODEL": "scripted",
            "MDQA_DATABASE": str(database),
            **({"MDQA_USERS": str(users)} if users is not None else {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; ConfigError with the end of its log if it does not."""
        with self.log.open("ab") as log:
            command = [sys.executable, "app.py", "--port", str(self.port)]
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                httpx.get(f"{self.url}/", timeout=5, trust_env=False)
                return
            except httpx.HTTPError:
                time.sleep(0.2)
        self.stop()
        raise ConfigError(f"app.py did not start: {self._said()}")

    def check(self) -> None:
        """ModelError with the end of its log if it has ended by itself."""
        if self._process is None:
            return
        with suppress(subprocess.TimeoutExpired):  # its connections close a moment earlier
            status = self._process.wait(2)
            raise ModelError(f"app.py ended with status {status}: {self._said()}")

    def _said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def memory(self) -> int | None:
        """Bytes of its memory that are resident now; None where the system does not tell (all but Linux)."""
        if self._process is None:
            return None
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    def kill(self) -> None:
        """End it as a power cut would: SIGKILL, which no program can answer."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """End it as a container is stopped."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
