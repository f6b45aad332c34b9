"""Which process works on a run, and whether it is still there.

A process id alone is not enough: ids are used again, after a restart of a container even at once. So an owner is
the host, the process id and the moment the process started.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PS_SECONDS = 5.0


@dataclass(frozen=True)
class Owner:
    """A process: ``host`` name, ``pid``, and ``started``, an opaque text that differs when a process id is reused."""

    host: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, process_start(pid) or "")

    def alive(self) -> bool | None:
        """Whether the process still runs; None where it ran on another host and cannot be asked."""
        if self.host != socket.gethostname():
            return None
        return process_start(self.pid) == self.started


def process_start(pid: int) -> str | None:
    """When the process started, in the platform's own terms; None if there is no such process.

    Linux: boot id and clock ticks since boot (``/proc``); Windows: creation time; elsewhere what ``ps`` prints.
    """
    if sys.platform == "win32":
        return _windows_start(pid)
    if Path("/proc/self/stat").exists():
        return _linux_start(pid)
    return _ps_start(pid)


def _linux_start(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The command's name, the second field, may hold spaces and brackets: count from the last bracket on.
    state, *fields = stat.rpartition(")")[2].split()
    # A zombie was killed but nobody has asked for its exit status yet; it does no more work.
    return None if state in "ZX" else f"{boot}:{fields[18]}"


def _ps_start(pid: int) -> str | None:
    try:
        done = subprocess.run(
            ["ps", "-o", "state=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PS_SECONDS,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )
    except (OSError, subprocess.SubprocessError):
        return _exists(pid)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


def _exists(pid: int) -> str | None:
    """Without ``ps`` all that can be told is whether the id is in use: an empty text, or None."""
    try:
        os.kill(pid, 0)  # signal 0 asks and sends nothing; never reached on Windows, where it would end the process
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    def _windows_start(pid: int) -> str | None:
        query_limited_information, still_active = 0x1000, 259
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        handle = kernel.OpenProcess(query_limited_information, False, pid)
        if not handle:
            return None
        try:
            code, times = wintypes.DWORD(), [wintypes.FILETIME() for _ in range(4)]
            kernel.GetExitCodeProcess(wintypes.HANDLE(handle), ctypes.byref(code))
            kernel.GetProcessTimes(wintypes.HANDLE(handle), *(ctypes.byref(time) for time in times))
        finally:
            kernel.CloseHandle(wintypes.HANDLE(handle))
        if code.value != still_active:
            return None
        return f"{times[0].dwHighDateTime}:{times[0].dwLowDateTime}"
