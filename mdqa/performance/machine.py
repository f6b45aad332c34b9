"""The machine and the model that figures belong to: numbers from elsewhere cannot be compared without this."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mdqa.backends.base import Backend
from mdqa.performance.measuring import Meter

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")


def facts(backend: Backend, meter: Meter) -> dict[str, Any]:
    """Facts as a JSON object. ``load`` is the number of programs that already wanted the processor (1 minute mean)."""
    import torch  # noqa: PLC0415 - heavy

    device = str(getattr(backend, "device", "cpu"))
    weights = getattr(backend, "pretrained", None)
    return {
        "model": backend.model,
        "backend": backend.name,
        "device": device,
        "device_name": torch.cuda.get_device_name(device) if device.startswith("cuda") else cpu_model(),
        "dtype": "" if weights is None else str(weights.dtype).removeprefix("torch."),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory_gb": total_memory_gb(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "memory_source": meter.source,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def cpu_model(cpuinfo: Path = CPUINFO) -> str:
    """The processor's name as the kernel gives it, else what Python knows."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory_gb(meminfo: Path = MEMINFO) -> float | None:
    """The machine's memory in GB (10^9 bytes), None where it is not told."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("MemTotal:")]
    return round(kilobytes[0] * 1024 / 1e9, 1) if kilobytes else None
