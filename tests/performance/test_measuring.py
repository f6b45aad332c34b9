"""Measuring: the order of the rounds, and a meter that really sees memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ModelError
from mdqa.performance.measuring import (
    CudaMemory,
    NoMemory,
    ProcessMemory,
    Sample,
    Variant,
    is_shortage,
    measure,
    meter_for,
)

NOTHING = NoMemory("not asked for")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process reset its peak")


def recorder(log: list[str], *names: str) -> list[Variant]:
    return [Variant(name, lambda name=name: log.append(name)) for name in names]


def test_variants_run_in_turn_after_a_round_that_does_not_count() -> None:
    log: list[str] = []
    measured = measure(lambda number: recorder(log, "A", "B", "C"), 2, NOTHING)
    assert "".join(log) == "ABC" * 3
    assert {name: len(samples) for name, samples in measured.samples.items()} == {"A": 2, "B": 2, "C": 2}
    assert measured.failed == {}


def test_every_round_has_its_own_work_and_the_first_is_used_for_the_warm_up() -> None:
    asked: list[int] = []

    def make(number: int) -> list[Variant]:
        asked.append(number)
        return [Variant("A", lambda: number)]

    measured = measure(make, 3, NOTHING)
    assert asked == [0, 0, 1, 2]
    assert [sample.outcome for sample in measured.samples["A"]] == [0, 1, 2]


def test_progress_counts_every_run_and_ends_full() -> None:
    seen: list[tuple[int, int, str]] = []
    measure(lambda number: recorder([], "A", "B"), 2, NOTHING, progress=lambda *step: seen.append(step))
    assert [done for done, _, _ in seen] == list(range(7))
    assert {total for _, total, _ in seen} == {6}
    assert [text for _, _, text in seen] == ["A", "B"] * 3 + [""]


def test_what_is_around_a_variant_is_left_even_when_it_fails() -> None:
    log: list[str] = []

    @contextmanager
    def around() -> Iterator[None]:
        log.append("in")
        try:
            yield
        finally:
            log.append("out")

    def fail() -> None:
        raise ValueError("a fault, not a shortage")

    with pytest.raises(ValueError, match="a fault"):
        measure(lambda number: [Variant("A", fail, around)], 1, NOTHING)
    assert log == ["in", "out"]


def test_a_variant_that_runs_out_of_memory_is_dropped_and_the_others_go_on() -> None:
    log: list[str] = []
    hungry = Variant("hungry", lambda: torch.empty(1 << 46, dtype=torch.uint8))
    measured = measure(lambda number: [*recorder(log, "A"), hungry, *recorder(log, "B")], 2, NOTHING)
    assert "".join(log) == "AB" * 3
    assert set(measured.samples) == {"A", "B"}
    assert measured.failed["hungry"].startswith("ran out of memory: ")


def test_memory_that_runs_out_in_a_later_round_takes_the_samples_along() -> None:
    def make(number: int) -> list[Variant]:
        return [Variant("A", lambda: bytearray(1 << 62) if number else None)]

    measured = measure(make, 3, NOTHING)
    assert measured.samples == {}
    assert set(measured.failed) == {"A"}


def test_shortages_are_told_from_other_faults() -> None:
    assert is_shortage(MemoryError())
    assert is_shortage(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"))
    assert is_shortage(ModelError("there is not enough memory on cuda for 1 prompt(s)"))
    assert not is_shortage(RuntimeError("shapes cannot be multiplied"))


def test_a_stop_is_seen_between_two_runs() -> None:
    cancel, log = CancelToken(), []
    variants = [Variant("A", cancel.cancel), *recorder(log, "B")]
    with pytest.raises(Cancelled):
        measure(lambda number: variants, 5, NOTHING, cancel=cancel)
    assert log == []


def test_added_memory_is_the_peak_above_what_was_there() -> None:
    assert Sample(1, 1, before=300, peak=1000).added == 700
    assert Sample(1, 1, before=1000, peak=996).added == 0  # the kernel counts pages in batches
    assert Sample(1, 1, before=None, peak=None).added is None


@linux
@pytest.mark.parametrize("repeat", range(3))
def test_the_process_meter_sees_200_megabytes_come_and_go(repeat: int) -> None:
    """Three times over: an earlier peak does not hide a later one."""
    meter = ProcessMemory()
    assert meter.works()
    size = 200_000_000

    def big() -> None:
        np.ones(size, dtype=np.uint8)

    measured = measure(lambda number: [Variant("big", big), Variant("small", lambda: None)], 1, meter)
    [large], [little] = measured.samples["big"], measured.samples["small"]
    assert large.added is not None
    assert little.added is not None
    assert 0.98 * size <= large.added <= 1.1 * size  # the kernel counts pages in batches
    assert little.added < 20_000_000
    assert large.before is not None
    assert large.before > 10_000_000  # Python and numpy themselves


SETTLING = """
from mdqa.performance.measuring import ProcessMemory
meter = ProcessMemory()
meter.settle()
before = meter.start()
blocks = [bytearray(60_000) for _ in range(2000)]  # each too small for a mapping of its own
after = meter.peak()
del blocks
meter.settle()
print(before, after, meter.start())
"""


@linux
def test_settling_gives_freed_memory_back() -> None:
    """In a process of its own: one that has worked before has free memory that is resident and is used again."""
    done = subprocess.run([sys.executable, "-c", SETTLING], capture_output=True, text=True, check=True)
    before, after, left = map(int, done.stdout.split())
    assert after - before > 100_000_000
    assert left - before < 20_000_000


def test_a_meter_for_every_device() -> None:
    assert isinstance(meter_for("cpu"), ProcessMemory if sys.platform == "linux" else NoMemory)
    apple = meter_for("mps")
    assert apple.source.startswith("unavailable")
    assert (apple.start(), apple.peak()) == (None, None)


@pytest.mark.gpu
def test_the_cuda_meter_sees_200_megabytes() -> None:
    meter = meter_for("cuda")
    assert isinstance(meter, CudaMemory)
    gc.collect()
    work = Variant("big", lambda: torch.empty(200_000_000, dtype=torch.uint8, device="cuda").fill_(1).sum().item())
    [sample] = measure(lambda number: [work], 1, meter).samples["big"]
    assert sample.added is not None
    assert 200_000_000 <= sample.added < 230_000_000
