"""Checking metrics against recorded cases: what an official script gave for a prediction and its answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdqa.errors import ConfigError, InputError
from mdqa.scoring.answers import METRICS

TOLERANCE = 1e-9
"""Allowed difference; recorded values have ten decimals."""

_FIELDS = ("metric", "prediction", "answers", "expected")


@dataclass(frozen=True)
class Mismatch:
    """A case where our metric gives something else. ``line`` counts from 1."""

    line: int
    metric: str
    prediction: Any
    answers: Any
    expected: Any
    got: Any

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.metric}({self.prediction!r}, {self.answers!r}) is {self.got!r}, "
            f"expected {self.expected!r}"
        )


def check_cases(path: Path | str) -> Iterator[Mismatch]:
    """Compare every case of a JSON lines file (fields ``metric prediction answers expected``) with :data:`METRICS`.

    Raises InputError for a file or line that cannot be read and ConfigError for a metric that does not exist, both
    naming the line.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    mismatch = _check(line, number, str(path))
                    if mismatch:
                        yield mismatch
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path)) from None


def _check(line: str, number: int, path: str) -> Mismatch | None:
    place = f"{path}, line {number}"
    try:
        case = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", place=place) from None
    if not isinstance(case, dict):
        raise InputError("a case must be a JSON object", place=place)
    missing = [name for name in _FIELDS if name not in case]
    if missing:
        raise InputError(f"a case needs {', '.join(_FIELDS)}; missing: {', '.join(missing)}", place=place)
    metric, prediction, answers, expected = (case[name] for name in _FIELDS)
    if not isinstance(metric, str) or metric not in METRICS:
        raise ConfigError(f"{place}: unknown metric {metric!r}; there is: {', '.join(METRICS)}")
    if not isinstance(answers, list):
        raise InputError(f"must be a list, is {answers!r}", place=f"{place}, field 'answers'")
    try:
        got = METRICS[metric](prediction, answers)
    except (TypeError, AttributeError):
        raise InputError(f"{metric} cannot be computed of {prediction!r} and {answers!r}", place=place) from None
    return None if _equal(got, expected) else Mismatch(number, metric, prediction, answers, expected, got)


def _equal(got: Any, expected: Any) -> bool:
    if isinstance(got, str) or isinstance(expected, str):
        return bool(got == expected)
    try:
        return isinstance(expected, int | float) and math.isclose(got, expected, rel_tol=0.0, abs_tol=TOLERANCE)
    except OverflowError:  # a whole number beyond all floats
        return False
