"""What CAFE keeps per model: a score for every head, for each of its two stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from mdqa.attention.heads import top_heads
from mdqa.backends.base import AttendingRows
from mdqa.errors import ProfileError
from mdqa.methods.cafe.attending import Calibration, Pool
from mdqa.records import Head, Profile


@dataclass(frozen=True)
class StageHeads:
    """Head scores of one stage: mean over ``n`` samples of the evidence's share (eq. 2 divided by N), (L, H)."""

    scores: np.ndarray
    n: int

    def top(self, count: int) -> tuple[Head, ...]:
        """The best heads over all layers (eq. 3)."""
        return top_heads(self.scores, count)

    def to_json(self) -> dict[str, Any]:
        """JSON form; scores with six decimals."""
        return {"n": self.n, "scores": [[round(float(x), 6) for x in row] for row in self.scores]}


@dataclass(frozen=True)
class Scoring:
    """How documents are scored by attention: over which rows, pooled how, and against what (see ``attending``)."""

    rows: AttendingRows = "question"
    pool: Pool = "sum"
    calibration: Calibration = "none"

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.to_json().items())

    def to_json(self) -> dict[str, str]:
        """The options under the names that methods and profiles give them."""
        return {"attending_rows": self.rows, "doc_pool": self.pool, "calibration": self.calibration}


def read_scoring(profile: Profile) -> Scoring:
    """How the profile's heads were found; the paper's way where it does not say. ProfileError for unknown ways."""
    options = profile.values.get("options", {})
    given = options if isinstance(options, Mapping) else {}
    default = Scoring().to_json()
    known = {"attending_rows": AttendingRows, "doc_pool": Pool, "calibration": Calibration}
    found = {name: given.get(name, default[name]) for name in default}
    for name, value in found.items():
        if value not in get_args(known[name]):
            raise ProfileError(f"profile {profile.name!r}: {name} is {value!r}, not one of {get_args(known[name])}")
    return Scoring(found["attending_rows"], found["doc_pool"], found["calibration"])


def read_heads(profile: Profile, model: str, layers: int, heads: int) -> tuple[StageHeads, StageHeads]:
    """Heads of both stages; ProfileError if the profile is damaged or was made for another model."""
    if profile.model != model:
        raise ProfileError(
            f"profile {profile.name!r} was made for the model {profile.model!r}, not for {model!r}; heads of one model "
            "mean nothing in another. Choose its own profile or calibrate one."
        )
    return _stage(profile, "coarse", layers, heads), _stage(profile, "fine", layers, heads)


def _stage(profile: Profile, name: str, layers: int, heads: int) -> StageHeads:
    part = profile.values.get(name)
    if not isinstance(part, Mapping) or "scores" not in part:
        raise ProfileError(f"profile {profile.name!r} has no head scores for the {name} stage")
    try:
        scores = np.asarray(part["scores"], dtype=np.float64)
    except (TypeError, ValueError):
        raise ProfileError(f"profile {profile.name!r}: the {name} head scores are not a table of numbers") from None
    if scores.shape != (layers, heads) or not np.isfinite(scores).all():
        raise ProfileError(
            f"profile {profile.name!r}: the {name} head scores are {scores.shape}, but the model has "
            f"{layers} layers of {heads} heads"
        )
    return StageHeads(scores, int(part.get("n", 0)))
