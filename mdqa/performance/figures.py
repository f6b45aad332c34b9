"""Figures: what a benchmark reports, one per line, with its spread and the ratio to what it is measured against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from mdqa.performance.measuring import Measured, Sample

MEGABYTE = 1e6

Quantity = Callable[[Sample], float | None]
"""What is read off a sample."""


@dataclass(frozen=True)
class Goal:
    """A bound on the ratio: at most ``limit``, or at least."""

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:.4g}"

    def met(self, ratio: float) -> bool:
        """Whether a ratio keeps to it."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit


@dataclass(frozen=True)
class Figure:
    """A measured number. ``value`` and ``baseline`` are medians over ``n`` rounds, ``low`` and ``high`` the extremes.

    ``ratio`` is the median of the rounds' own ratios (not the ratio of the medians), with its extremes. ``against``
    names the variant that the baseline is from. A figure that was not measured has no value, and ``note`` says why.
    """

    name: str
    value: float | None
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    n: int = 0
    tokens: int | None = None
    documents: int | None = None
    against: str = ""
    goal: Goal | None = None
    note: str = ""

    def to_row(self) -> dict[str, Any]:
        """The figure as a JSON object; ``goal`` as text and ``met`` beside it."""
        met = None if self.goal is None or self.ratio is None else self.goal.met(self.ratio)
        row = asdict(self)
        row["goal"] = None if self.goal is None else str(self.goal)
        note = row.pop("note")
        return {**row, "met": met, "note": note}


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that at least so many percent of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(-(-percent * len(ordered) // 100) - 1, 0)]


def alone(name: str, unit: str, values: Sequence[float], **more: Any) -> Figure:
    """A figure that is compared with nothing."""
    if not values:
        raise ValueError(f"figure {name!r} has no values")
    return Figure(name, median(values), unit, low=min(values), high=max(values), n=len(values), **more)


def compared(
    name: str, unit: str, values: Sequence[float], baselines: Sequence[float], against: str, **more: Any
) -> Figure:
    """A figure with its ratio to a baseline; both have one value per round.

    There is no ratio where a baseline is 0. ValueError if the numbers of rounds differ.
    """
    figure = alone(name, unit, values, baseline=median(baselines), against=against, **more)
    if not all(baselines):
        return figure
    ratios = [value / base for value, base in zip(values, baselines, strict=True)]
    return replace(figure, ratio=median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))


def skipped(name: str, unit: str, note: str, **more: Any) -> Figure:
    """A figure that was not measured, and why."""
    return Figure(name, None, unit, note=f"skipped: {note}", **more)


def seconds(sample: Sample) -> float | None:
    """Wall time."""
    return sample.seconds


def processor_seconds(sample: Sample) -> float | None:
    """Processor time of all threads: what wall time would be without other programs on the machine, times threads."""
    return sample.processor_seconds


def peak_memory(sample: Sample) -> float | None:
    """Peak of everything in use, the model included, in MB."""
    return None if sample.peak is None else sample.peak / MEGABYTE


def added_memory(sample: Sample) -> float | None:
    """Peak above what was in use before the run (the resident model), in MB."""
    return None if sample.added is None else sample.added / MEGABYTE


QUANTITIES: tuple[tuple[str, str, Quantity], ...] = (
    ("time", "s", seconds),
    ("processor_time", "s", processor_seconds),
    ("peak_memory", "MB", peak_memory),
    ("added_memory", "MB", added_memory),
)
"""The four quantities of every variant: name, unit, how it is read."""


def figures_of(
    measured: Measured,
    variant: str,
    against: str = "",
    *,
    goals: dict[str, Goal] | None = None,
    memory: str = "",
    note: str = "",
    **more: Any,
) -> list[Figure]:
    """The four figures of one variant, compared with another where ``against`` names one.

    ``goals``: bounds by quantity. ``memory``: why memory could not be read, where it could not.
    """
    found: list[Figure] = []
    for quantity, unit, read in QUANTITIES:
        name = f"{variant}.{quantity}"
        options = {"goal": (goals or {}).get(quantity), **more}
        missing = next((v for v in (variant, against) if v in measured.failed), None)
        if missing is not None:
            found.append(skipped(name, unit, f"{missing} {measured.failed[missing]}", **options))
            continue
        values = [read(sample) for sample in measured.samples[variant]]
        bases = [read(sample) for sample in measured.samples[against]] if against else []
        if None in values or None in bases:
            found.append(skipped(name, unit, memory or "not known", **options))
        elif against:
            found.append(compared(name, unit, _numbers(values), _numbers(bases), against, note=note, **options))
        else:
            found.append(alone(name, unit, _numbers(values), note=note, **options))
    return found


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def growth(name: str, figures: Sequence[Figure], goal: Goal | None = None) -> Figure:
    """How a ratio changes from the shortest to the longest prompt: the last ratio divided by the first."""
    known = sorted((f for f in figures if f.ratio is not None and f.tokens is not None), key=lambda f: f.tokens or 0)
    if len(known) < 2 or known[0].tokens == known[-1].tokens:
        return skipped(name, "ratio", "fewer than two lengths were measured", goal=goal)
    first, last = known[0], known[-1]
    assert first.ratio is not None
    assert last.ratio is not None
    return Figure(
        name,
        last.ratio,
        "ratio",
        baseline=first.ratio,
        ratio=last.ratio / first.ratio if first.ratio else None,
        n=min(first.n, last.n),
        tokens=last.tokens,
        against=f"the ratio at {first.tokens:,} tokens",
        goal=goal,
    )


def table(figures: Sequence[Figure]) -> str:
    """The figures as lines for people."""
    head = ("what", "tokens", "value", "against", "ratio", "goal", "")
    rows = [head, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def _cells(figure: Figure) -> tuple[str, ...]:
    row = figure.to_row()
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3f}"
    if figure.ratio_low is not None and figure.ratio_high is not None:
        ratio += f" ({figure.ratio_low:.3f} to {figure.ratio_high:.3f})"
    base = "" if figure.baseline is None else f"{_number(figure.baseline)} {figure.against}"
    verdict = {None: "", True: "met", False: "MISSED"}[row["met"]]
    value = "-" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
    tokens = "" if figure.tokens is None else f"{figure.tokens:,}"
    return (figure.name, tokens, value, base, ratio, row["goal"] or "", " ".join(filter(None, (verdict, figure.note))))


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
