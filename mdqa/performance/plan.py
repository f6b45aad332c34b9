"""What a benchmark is given. A benchmark is a function from this to figures, one file each, listed in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.performance.cases import Case
from mdqa.performance.measuring import Measured, Meter, Progress, Variant, measure, silent
from mdqa.records import Profile, Question


def numbers(
    bench: str, options: Mapping[str, Any], limits: Mapping[str, tuple[type, float, float]], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Options that are numbers, by name: type, smallest and largest value each. ``others``: options that are not.

    Raises:
        ConfigError: an option does not exist, is no number or is out of its limits.
    """
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name in others:
            continue
        if name not in limits:
            raise ConfigError(f"bench {bench} has no option {name!r}; there is: {', '.join((*limits, *others))}")
        kind, low, high = limits[name]
        try:
            found[name] = kind(str(value))
        except ValueError:
            raise ConfigError(f"{name}={value!r} is no {'whole ' * (kind is int)}number") from None
        if not low <= found[name] <= high:
            raise ConfigError(f"{name}={value!r} is not between {low} and {high}")
    return found


def no_database(path: Path) -> AbstractContextManager[Any]:
    """Stands where a benchmark is given no way to a database."""
    raise ConfigError(f"this benchmark needs a database ({path}) and was given no way to open one")


@dataclass(frozen=True)
class Plan:
    """A benchmark's work: on what, with which tools, how it is watched.

    ``find_profile``: the calibration profile of a method, None where there is none. ``options``: of the method that is
    measured, by a benchmark that takes them. ``open_store``: opens a database (the core knows none itself).
    """

    tools: Tools
    cases: tuple[Case, ...]
    meter: Meter
    seed: int = 0
    find_profile: Callable[[str], Profile | None] = lambda method: None
    cancel: CancelToken = field(default_factory=CancelToken)
    progress: Progress = silent
    options: Mapping[str, Any] = field(default_factory=dict)
    open_store: Callable[[Path], AbstractContextManager[Any]] = no_database

    def refuse_options(self, name: str) -> None:
        """For a benchmark of fixed options; ConfigError if some were given."""
        if self.options:
            raise ConfigError(f"bench {name} measures with fixed options; leave out --set {', '.join(self.options)}")

    def measure(self, case: Case, make: Callable[[Question], Sequence[Variant]]) -> Measured:
        """Rounds over a case's questions; ``make`` gives the variants for one question."""

        def progress(done: int, total: int, text: str) -> None:
            self.progress(done, total, f"{case.name}: {text}" if text else case.name)

        def variants(number: int) -> Sequence[Variant]:
            return make(case.item(number))

        return measure(variants, case.rounds, self.meter, cancel=self.cancel, progress=progress)
