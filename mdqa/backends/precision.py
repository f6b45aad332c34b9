"""Where a model runs and in which number format: by what the machine is good at, and said in words.

On a CPU bfloat16 is about three times as fast as float32 for long prompts where the processor multiplies it in
hardware (AMX-BF16 or AVX512-BF16), and much slower where it does not; so the processor's flags are asked and a short
timing has to agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import torch

from mdqa.errors import ConfigError

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_BF16_FLAGS = {"amx_bf16": "AMX-BF16", "avx512_bf16": "AVX512-BF16"}
_WORTH_IT = 1.2  # bfloat16 has to be this much faster in the timing


def choose_device(device: str = "auto") -> str:
    """The device to run on: ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.

    ``auto`` is the first CUDA device where there is one, else the CPU (Apple's ``mps`` only when it is named).
    ConfigError for a device that this machine does not have.
    """
    name = device.strip().lower()
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (index and not index.isdecimal()):
        raise ConfigError(f"unknown device {device!r}; there is: auto, cpu, cuda, cuda:N, mps")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}[kind]
    if int(index or 0) >= there:
        raise ConfigError(f"device {device!r}: this machine has {there} {kind} device(s) for PyTorch; try auto or cpu")
    return name


def choose_dtype(dtype: str, device: str) -> tuple[torch.dtype, str]:
    """The number format for a device and, in words, which was chosen and why. ConfigError for an unknown format."""
    name = dtype.strip().lower()
    if name in _DTYPES:
        return _DTYPES[name], f"{name} on {device}: chosen by hand"
    if name != "auto":
        raise ConfigError(f"unknown number format {dtype!r}; there is: auto, {', '.join(_DTYPES)}")
    if device.startswith("cuda"):
        major, minor = torch.cuda.get_device_capability(device)
        return cuda_dtype(major, minor, device)
    if device.startswith("mps"):
        return torch.float32, "float32 on mps: the other formats were not tested there"
    flags = bf16_flags()
    return cpu_dtype(flags, *time_matmul()) if flags else cpu_dtype(flags)


def cuda_dtype(major: int, minor: int, device: str = "cuda") -> tuple[torch.dtype, str]:
    """bfloat16 from compute capability 8.0 (Ampere) on, else float16."""
    if major >= 8:
        return torch.bfloat16, f"bfloat16 on {device}: compute capability {major}.{minor} has it in hardware"
    return torch.float16, f"float16 on {device}: compute capability {major}.{minor} is older than Ampere (8.0)"


def cpu_dtype(flags: Iterable[str], float32_ms: float = 0.0, bfloat16_ms: float = 0.0) -> tuple[torch.dtype, str]:
    """The format for a processor with these flags (of :func:`bf16_flags`) and these matrix product times."""
    units = " and ".join(flags)
    if not units:
        return torch.float32, "float32 on cpu: this processor has no bfloat16 units (AMX-BF16 or AVX512-BF16)"
    timing = f"{bfloat16_ms:.1f} ms for a matrix product against {float32_ms:.1f} ms in float32"
    if float32_ms >= _WORTH_IT * bfloat16_ms:
        return torch.bfloat16, f"bfloat16 on cpu: this processor has {units} ({timing})"
    return torch.float32, f"float32 on cpu: bfloat16 is not faster here although the processor has {units} ({timing})"


def bf16_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Names of the processor's bfloat16 units, read from the flags that the kernel lists; empty where it lists none."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return ()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    flags = set(line.partition(":")[2].split())
    return tuple(title for flag, title in _BF16_FLAGS.items() if flag in flags)


def time_matmul(rows: int = 512, repeats: int = 5) -> tuple[float, float]:
    """Milliseconds of a (rows, 1024) by (1024, 1024) product in float32 and in bfloat16: the best of ``repeats``."""
    times = []
    for dtype in (torch.float32, torch.bfloat16):
        left, right = torch.ones(rows, 1024, dtype=dtype), torch.ones(1024, 1024, dtype=dtype)
        torch.mm(left, right)  # the first call sets up the kernel
        best = float("inf")
        for _ in range(repeats):
            began = time.perf_counter()
            torch.mm(left, right)
            best = min(best, time.perf_counter() - began)
        times.append(best * 1000)
    return times[0], times[1]
