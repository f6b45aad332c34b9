"""Measuring variants of one computation side by side: time and peak memory, in turn, in one process.

The variants of a comparison are run one after the other, again and again (A B C A B C ...), after a round that is
thrown away. What slows the machine down meets all of them, and a ratio is taken within each round before anything is
averaged. Before every variant, garbage is collected and freed memory goes back to the system, since a peak that an
earlier variant left behind would otherwise hide the next one's.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mdqa.cancellation import CancelToken
from mdqa.errors import ModelError

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")

Progress = Callable[[int, int, str], None]
"""Told how many of how many runs are done, and the name of the one that comes next."""


def silent(done: int, total: int, text: str) -> None:
    """A progress callback that says nothing."""


@dataclass(frozen=True)
class Variant:
    """One way to do the work. ``around`` is entered before the clock starts and left after it stopped."""

    name: str
    work: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Sample:
    """One run of a variant: wall and processor seconds, bytes in use before it and at its peak, what it returned."""

    seconds: float
    processor_seconds: float
    before: int | None
    peak: int | None
    outcome: Any = None

    @property
    def added(self) -> int | None:
        """Bytes at the peak above what was in use before."""
        return None if self.peak is None or self.before is None else max(self.peak - self.before, 0)


@dataclass
class Measured:
    """Samples per variant, the same number each and in the order of the rounds; why a variant has none."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Meter(Protocol):
    """Reads the memory in use and its peak. ``source`` says how, or why it cannot; then both numbers are None."""

    source: str

    def settle(self) -> None:
        """Free what can be freed, so that the next run starts from the same state as the others."""
        ...

    def start(self) -> int | None:
        """Forget earlier peaks; bytes in use now."""
        ...

    def wait(self) -> None:
        """Return when all work that was handed to the device is done."""
        ...

    def peak(self) -> int | None:
        """Highest number of bytes in use since ``start``."""
        ...


class ProcessMemory:
    """The resident memory of this process (Linux): the peak can be reset through ``/proc/self/clear_refs``."""

    source = "resident memory of the process (VmHWM)"

    def settle(self) -> None:
        """Collect garbage and hand freed memory back to the system (where the C library is glibc)."""
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # else freed blocks stay resident and blur the peak
        if trim is not None:
            trim(0)

    def start(self) -> int | None:
        """Set the peak back to what is resident now."""
        CLEAR_REFS.write_text("5", encoding="ascii")
        return self.peak()

    def wait(self) -> None:
        """Nothing to wait for: work on the CPU is done when it returns."""

    def peak(self) -> int | None:
        """The kernel's high-water mark."""
        found = re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(encoding="ascii"), re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    def works(self) -> bool:
        """Whether this system lets a process reset and read its peak."""
        try:
            return self.start() is not None
        except OSError:
            return False


class CudaMemory:
    """Memory that PyTorch has allocated on one CUDA device; what it only keeps in reserve is not counted."""

    source = "memory allocated by PyTorch on the device"

    def __init__(self, device: str) -> None:
        from torch import cuda  # noqa: PLC0415 - heavy

        self._cuda, self._device = cuda, device

    def settle(self) -> None:
        """Collect garbage and let the device finish."""
        gc.collect()
        self.wait()

    def start(self) -> int | None:
        """Reset PyTorch's peak."""
        self._cuda.reset_peak_memory_stats(self._device)
        return int(self._cuda.memory_allocated(self._device))

    def wait(self) -> None:
        """Wait for the device's queue."""
        self._cuda.synchronize(self._device)

    def peak(self) -> int | None:
        """PyTorch's own peak."""
        return int(self._cuda.max_memory_allocated(self._device))


class NoMemory:
    """Stands where the peak cannot be read; nothing is made up."""

    def __init__(self, reason: str) -> None:
        self.source = f"unavailable: {reason}"

    def settle(self) -> None:
        """Collect garbage."""
        gc.collect()

    def start(self) -> int | None:
        """Not known."""
        return None

    def wait(self) -> None:
        """Nothing is waited for."""

    def peak(self) -> int | None:
        """Not known."""
        return None


def meter_for(device: str) -> Meter:
    """The meter of a device: PyTorch's statistics on CUDA, the process's high-water mark on a Linux CPU, else none."""
    if device.startswith("cuda"):
        return CudaMemory(device)
    if device != "cpu":
        return NoMemory(f"no peak can be read on {device}")
    if sys.platform != "linux":
        return NoMemory(f"{sys.platform} does not let a process reset its peak")
    process = ProcessMemory()
    return process if process.works() else NoMemory("/proc/self/clear_refs or VmHWM cannot be used here")


def measure(
    make: Callable[[int], Sequence[Variant]],
    rounds: int,
    meter: Meter,
    *,
    cancel: CancelToken | None = None,
    progress: Progress = silent,
) -> Measured:
    """Run the variants of every round in turn, after a round that is not counted.

    ``make`` gives a round's variants (the same names in every round); it is not timed. Memory that runs out in a
    variant is said in ``failed``, and the variant is left out from there on; everything else that goes wrong escapes.
    """
    cancel = cancel or CancelToken()
    measured = Measured()
    done = 0
    for number in range(-1, rounds):
        variants = make(max(number, 0))
        for variant in variants:
            cancel.check()
            progress(done, (rounds + 1) * len(variants), variant.name)
            done += 1
            if variant.name in measured.failed:
                continue
            sample = _sample(variant, meter, measured)
            if sample is not None and number >= 0:
                measured.samples.setdefault(variant.name, []).append(sample)
    progress(done, done, "")
    return measured


def _sample(variant: Variant, meter: Meter, measured: Measured) -> Sample | None:
    """One run; None if memory ran out, which drops the variant."""
    try:
        return _run(variant, meter)
    except (MemoryError, RuntimeError, ModelError) as error:
        if not is_shortage(error):
            raise
        measured.failed[variant.name] = f"ran out of memory: {' '.join(str(error).split())[:200]}"
        measured.samples.pop(variant.name, None)
    return None


def _run(variant: Variant, meter: Meter) -> Sample:
    meter.settle()
    with variant.around():
        before = meter.start()
        processor, wall = time.process_time(), time.perf_counter()
        outcome = variant.work()
        meter.wait()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        return Sample(wall, processor, before, meter.peak(), outcome)


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that memory ran out (Python's, PyTorch's on CPU and CUDA, or the engine's)."""
    text = str(error)
    wordings = ("can't allocate memory", "out of memory", "not enough memory")
    return isinstance(error, MemoryError) or any(wording in text for wording in wordings)
