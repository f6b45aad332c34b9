"""What many people saw of their runs beside what is stored of them, as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mdqa.errors import ModelError
from mdqa.performance.figures import MEGABYTE, Figure, Goal, percentile, skipped

GROWTH = 1.05
"""Resident memory at the end is at most so many times what it was."""


@dataclass(frozen=True)
class Asked:
    """A run as the person saw it; seconds since the epoch. ``stopped``: when Stop was pressed, None if it was not."""

    run: str
    pressed: float
    seen: float
    drawn: float
    stopped: float | None = None


@dataclass(frozen=True)
class Kept:
    """A run as it is stored, in the order of asking. ``begun`` is None where it ended while it waited."""

    run: str
    status: str
    begun: float | None
    ended: float


@dataclass(frozen=True)
class Memory:
    """Resident memory in bytes after so many runs, while nothing is going on."""

    runs: int
    resident: int


def kept_runs(store: Any) -> list[Kept]:
    """The runs in the order in which they were put in line, which is the order of their rows: each is written then."""
    with store.read() as db:
        rows = list(db.execute("select id, status, created, coalesce(finished, updated) from runs order by rowid"))
    kept = []
    for run, status, created, ended in rows:
        worked = status != "cancelled" or bool(store.runs.get(run).backend)
        kept.append(Kept(run, status, _moment(created) if worked else None, _moment(ended)))
    return kept


def _moment(text: str) -> float:
    """A stored time (ISO, with its zone) in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def times(asked: Sequence[Asked], kept: Sequence[Kept], people: int) -> Iterator[Figure]:
    """What a person waits for, over the runs that nobody stopped."""
    begun = {one.run: one.begun for one in kept if one.status == "ok"}
    whole = [one for one in asked if one.run in begun]
    if not whole:
        raise ModelError("no run came to its end")
    crowded = f"{people} people at once"
    kinds = {
        "first_sign": ([one.seen - one.pressed for one in whole], "until the page shows the run and its place in line"),
        "in_line": ([(begun[one.run] or 0) - one.pressed for one in whole], "until the work on it begins"),
        "result": ([one.drawn - one.pressed for one in whole], "until the result is drawn"),
    }
    for name, (values, note) in kinds.items():
        yield _share(f"{name}_p50", values, 50, f"{note}; {crowded}")
        yield _share(f"{name}_p95", values, 95, f"{note}; {crowded}")


def promises(asked: Sequence[Asked], kept: Sequence[Kept]) -> Iterator[Figure]:
    """What must hold: the order, and that every run is there once and has ended."""
    ended = [one.ended for one in kept if one.status == "ok"]
    late = sum(moment < max(ended[:place]) for place, moment in enumerate(ended) if place)
    share = {"baseline": float(len(ended)), "n": len(ended), "against": "runs that came to their end"}
    yield Figure("people.out_of_order", late, "runs", ratio=late / len(ended), goal=Goal(0), **share)  # type: ignore[arg-type]
    done = {one.run for one in kept if one.status in ("ok", "cancelled")}
    stored = sum(one.run in done for one in asked)
    against = {"baseline": float(len(asked)), "n": len(asked), "against": "asked for"}
    note = f"{sum(one.status == 'cancelled' for one in kept)} of them stopped"
    goal = Goal(1, at_least=True)
    yield Figure("people.stored", stored, "runs", ratio=stored / len(asked), goal=goal, note=note, **against)  # type: ignore[arg-type]
    yield Figure("people.rows", len(kept), "runs", ratio=len(kept) / len(asked), goal=Goal(1), **against)  # type: ignore[arg-type]


def stops(asked: Sequence[Asked], kept: Sequence[Kept]) -> Iterator[Figure]:
    """From a press on Stop until the place in line is free, and until the next run begins where it was at work."""
    found = {one.run: one for one in kept if one.status == "cancelled"}
    seen = {one.run: one.seen for one in asked}
    begun = [(place, one.run, one.begun) for place, one in enumerate(kept) if one.begun is not None]
    places = {one.run: place for place, one in enumerate(kept)}
    freed, followed = [], []
    for one in asked:
        end = found.get(one.run)
        if end is None or one.stopped is None:
            continue
        if end.begun is None:
            freed.append(end.ended - one.stopped)
            continue
        after = next(((run, moment) for place, run, moment in begun if place > places[one.run]), None)
        if after is not None and seen.get(after[0], one.stopped) < one.stopped:
            followed.append(after[1] - one.stopped)
    late = sum(one.stopped is not None for one in asked) - len(freed) - len(followed)
    note = f"{late} more presses came when the run was done, or nobody was seen in line behind it"
    for name, values in (("stop_in_line", freed), ("stop_at_work", followed)):
        if values:
            yield _share(f"{name}_p95", values, 95, note)
        else:
            yield skipped(
                f"people.{name}_p95", "s", f"no run was stopped {name.removeprefix('stop_').replace('_', ' ')}"
            )


def growth(memory: Sequence[Memory]) -> Iterator[Figure]:
    """The program's memory between waves, beside what it was after the first one."""
    if len(memory) < 3:
        why = "this system does not tell another program's memory" if not memory else "too few waves"
        yield skipped("people.memory", "MB", why)
        return
    first, *later = memory
    yield _resident("people.memory_warm", first)
    for name, one in zip(("middle", "end") if len(later) == 2 else ("middle", "late", "end"), later, strict=True):
        figure = _resident(f"people.memory_{name}", one)
        yield replace(
            figure,
            baseline=first.resident / MEGABYTE,
            ratio=one.resident / first.resident,
            against=f"after {first.runs} runs",
            goal=Goal(GROWTH),
        )
    *_, late, end = later
    slope = (end.resident - late.resident) / (end.runs - late.runs)
    yield Figure("people.growth", slope / 1e3, "kB a run", n=end.runs - late.runs, note=f"after the first {late.runs}")


def _resident(name: str, one: Memory) -> Figure:
    return Figure(name, one.resident / MEGABYTE, "MB", n=1, note=f"after {one.runs} runs")


def _share(name: str, values: Sequence[float], percent: int, note: str) -> Figure:
    return Figure(
        f"people.{name}",
        percentile(values, percent),
        "s",
        low=min(values),
        high=max(values),
        n=len(values),
        note=note,
    )
