"""The probe's results per model and task, from calibration profiles (Tables 4, 10, 11 and 13, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdqa.errors import ProfileError
from mdqa.methods.madara.deciding import measured
from mdqa.methods.madara.probe import LEVELS
from mdqa.methods.madara.ranks import spearman
from mdqa.methods.madara.router import model_class, trend
from mdqa.methods.madara.stability import by_query
from mdqa.records import Profile, RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.madara.stored import CALIBRATED, METHOD

NEEDS = f"calibration profiles of MADARA: --profile NAME or FILE.json; make one with: {CALIBRATED}"

PAPER = LEVELS[1:]
"""The paper's levels; the first one of LEVELS is our control."""

CLASSES = {"quality_ordered": "quality-ordered", "stochastic": "stochastic"}


def report(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """Pooled correlations at each perturbation with intervals, trend, class and how stable it is (Tables 4 and 13)."""
    found = usable_profiles(profiles)
    rows = [_pooled(profile) for profile in found]
    return Report(
        name="madara_coupling",
        title="Reasoning-Score Coupling by model and task",
        source="MADARA, Tables 4 and 13.",
        columns=(
            Column(key="case", title="Profile"),
            *(Column(key=level, title=level.capitalize(), digits=2) for level in PAPER),
            Column(key="trend", title="rho*", digits=1),
            Column(key="mean", title="Mean rho", digits=2),
            Column(key="class", title="Class"),
            Column(key="stability", title="Stability", unit="%", digits=0),
            Column(key="control", title="Control", digits=2),
            Column(key="degenerate", title="Degenerate"),
            Column(key="pairs", title="Pairs", digits=0),
            Column(key="n", title="Queries", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="case", y="shuffled", low="shuffled_low", high="shuffled_high"),
        n=len(found),
        counted="profile",
        note=joined(
            (
                "Intervals (95%) and stability, the share of resamples with the same "
                "class, draw whole queries. Control: the correlation with the unperturbed reasoning given back, which "
                "is not in the paper.",
                _unusable(profiles, found),
            )
        ),
        needs="" if rows else NEEDS,
    )


def by_question(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """Correlations within each query: mean, deviation and quartiles per level (Table 10, Figure 2)."""
    found = usable_profiles(profiles)
    rows = [row for profile in found for row in _within(profile)]
    return Report(
        name="madara_coupling_by_query",
        title="Coupling within each query",
        source="MADARA, Table 10 and Figure 2.",
        columns=(
            Column(key="case", title="Profile"),
            Column(key="class", title="Class"),
            Column(key="level", title="Reasoning"),
            Column(key="rho", title="Mean rho", digits=2),
            Column(key="sd", title="Standard deviation", digits=2),
            Column(key="q25", title="Lower quartile", digits=2),
            Column(key="median", title="Median", digits=2),
            Column(key="q75", title="Upper quartile", digits=2),
            Column(key="n", title="Queries", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="points", x="perturbation", y="median", series="case", low="q25", high="q75"),
        n=len(found),
        counted="profile",
        note=joined(
            (
                "A query counts where its correlation is defined: two documents at "
                "least, and no list of equal scores. The interval of the mean is a 95% bootstrap interval over "
                "queries; the deviation is the population's. In the picture 1 is shuffled, 2 contradicted, 3 "
                "random; the bars go from the lower to the upper quartile, and 0 is our control.",
                _unusable(profiles, found),
            )
        ),
        needs="" if rows else NEEDS,
    )


def stability(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """The class on each half of the queries and on random subsets of 30 (Table 11)."""
    found = usable_profiles(profiles)
    rows = [_stable(profile) for profile in found]
    return Report(
        name="madara_coupling_stability",
        title="Stability of the class",
        source="MADARA, Table 11.",
        columns=(
            Column(key="case", title="Profile"),
            Column(key="class", title="All queries"),
            Column(key="first", title="First half"),
            Column(key="second", title="Last half"),
            Column(key="quality_ordered", title="Quality-ordered subsets", unit="%", digits=0),
            Column(key="stochastic", title="Stochastic subsets", unit="%", digits=0),
            Column(key="draws", title="Subsets", digits=0),
            Column(key="n", title="Queries", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="case", y="quality_ordered"),
        n=len(found),
        counted="profile",
        note=joined(
            (
                "Random subsets have 30 queries; a profile with no more than that has "
                "none, and its halves are smaller than the paper's 50.",
                _unusable(profiles, found),
            )
        ),
        needs="" if rows else NEEDS,
    )


def usable_profiles(profiles: Sequence[Profile]) -> list[Profile]:
    """MADARA's profiles that hold what the router takes."""
    found = []
    for profile in profiles:
        if profile.method == METHOD:
            try:
                measured(profile)
            except ProfileError:
                continue
            found.append(profile)
    return found


def _unusable(given: Sequence[Profile], used: Sequence[Profile]) -> str:
    mine = sum(profile.method == METHOD for profile in given)
    return f"{mine - len(used)} damaged profiles are left out." if len(used) < mine else ""


def label(profile: Profile) -> str:
    """A profile in words: its name, model and calibration set."""
    return f"{profile.name}: {', '.join(part for part in (profile.model, profile.data) if part)}"


def _class(profile: Profile) -> str:
    return CLASSES[model_class(measured(profile).rho)]


def _pooled(profile: Profile) -> Row:
    values, rho = profile.values, measured(profile).rho
    row: Row = {"case": label(profile), "trend": trend(rho), "mean": sum(rho) / 3, "class": _class(profile)}
    intervals = values.get("intervals") or []
    for number, (level, value) in enumerate(zip(PAPER, rho, strict=True), 1):
        low, high = intervals[number] if len(intervals) == len(LEVELS) else (None, None)
        row |= {level: value, f"{level}_low": low, f"{level}_high": high}
    used = values.get("pairs_used") or []
    return row | {
        "stability": values.get("stability"),
        "control": values.get("control"),
        "degenerate": "yes" if values.get("degenerate") else None,
        "pairs": min(used[1:]) if len(used) == len(LEVELS) else None,
        "n": _queries(profile),
    }


def _queries(profile: Profile) -> int:
    return int(profile.values.get("queries", profile.n))


def _within(profile: Profile) -> list[Row]:
    values = profile.values.get("pairs")
    rows: list[Row] = []
    common: Row = {"case": label(profile), "class": _class(profile)}
    if not isinstance(values, list) or not values:
        return rows
    scores = np.array([[np.nan if v is None else float(v) for v in row[2:]] for row in values])  # (n, 1 + levels)
    groups = by_query([str(row[0]) for row in values])
    for number, level in enumerate(LEVELS):
        if level == "control" and profile.values.get("control") is None:
            continue
        found = [rho for group in groups if (rho := _rho(scores[group], number + 1)) is not None]
        if found:
            q25, median, q75 = np.quantile(found, (0.25, 0.5, 0.75)).tolist()
            rows.append(
                {
                    **common,
                    "level": level,
                    "perturbation": number,
                    **mean("rho", found),
                    "sd": float(np.std(found)),
                    **{"q25": q25, "median": median, "q75": q75},
                    "n": len(found),
                }
            )
    return rows


def _rho(scores: np.ndarray, level: int) -> float | None:
    """Spearman within one query; None where it is undefined."""
    both = scores[~np.isnan(scores[:, [0, level]]).any(axis=1)]
    value = spearman(both[:, 0].tolist(), both[:, level].tolist())
    return None if np.isnan(value) else value


def _stable(profile: Profile) -> Row:
    halves: Mapping[str, Any] = profile.values.get("split_half") or {}
    subsets: Mapping[str, Any] = profile.values.get("subsets") or {}
    share = subsets.get("quality_ordered")
    row: Row = {"case": label(profile), "class": _class(profile)}
    for half in ("first", "second"):
        found = halves.get(half)
        row[half] = f"{CLASSES[found['model_class']]} ({found['queries']})" if found else None
    return row | {
        "quality_ordered": share,
        "stochastic": None if share is None else 1 - share,
        "draws": subsets.get("draws"),
        "n": _queries(profile),
    }
