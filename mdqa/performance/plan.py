"""What a benchmark is given. A benchmark is a function from this to figures, one file each, listed in the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mdqa.cancellation import CancelToken
from mdqa.methods.base import Tools
from mdqa.performance.cases import Case
from mdqa.performance.measuring import Measured, Meter, Progress, Variant, measure, silent
from mdqa.records import Profile, Question


@dataclass(frozen=True)
class Plan:
    """A benchmark's work: on what, with which tools, how it is watched.

    ``find_profile``: the calibration profile of a method, None where there is none.
    """

    tools: Tools
    cases: tuple[Case, ...]
    meter: Meter
    seed: int = 0
    find_profile: Callable[[str], Profile | None] = lambda method: None
    cancel: CancelToken = field(default_factory=CancelToken)
    progress: Progress = silent

    def measure(self, case: Case, make: Callable[[Question], Sequence[Variant]]) -> Measured:
        """Rounds over a case's questions; ``make`` gives the variants for one question."""

        def progress(done: int, total: int, text: str) -> None:
            self.progress(done, total, f"{case.name}: {text}" if text else case.name)

        def variants(number: int) -> Sequence[Variant]:
            return make(case.item(number))

        return measure(variants, case.rounds, self.meter, cancel=self.cancel, progress=progress)
