"""CAFE with parts left out and with other settings: Tables 4, 5 and 9, Figure 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.records import RunResult
from mdqa.reports.base import Column, Report
from mdqa.reports.cafe.stored import HOW, METHOD, coarse_recall, kept, steered_recall
from mdqa.reports.common.settings import Study, by_setting

_COARSE = Column(key="coarse_recall", title="Gold kept by filtering", unit="%", digits=1)
_KEPT = Column(key="kept", title="Documents kept", digits=1)
_STEERED = Column(key="steered_recall", title="Gold steered to", unit="%", digits=1)

_MORE = {
    "coarse_recall": (_COARSE, coarse_recall),
    "kept": (_KEPT, kept),
    "steered_recall": (_STEERED, steered_recall),
}

_RUNS = "finished CAFE runs over the same questions with accepted answers, "


def ablations(runs: Sequence[RunResult]) -> Report:
    """CAFE without coarse filtering, without fine steering, without re-ranking, beside the whole method (Table 4)."""
    return by_setting(
        runs,
        Study(
            name="cafe_ablations",
            title="CAFE and its ablations",
            source="CAFE, Table 4.",
            needs=_RUNS + "of the whole method and without one part or more; make them with: "
            f"{HOW}, and with --set coarse_filtering=false, --set fine_steering=false, --set order=random",
            method=METHOD,
            options=("coarse_filtering", "fine_steering", "order"),
            words=_ablation,
            more=_MORE,
        ),
    )


def granularity(runs: Sequence[RunResult]) -> Report:
    """Steering to whole documents, to sentences, and not at all (Table 5)."""
    return by_setting(
        runs,
        Study(
            name="cafe_granularity",
            title="CAFE by what is steered to",
            source="CAFE, Table 5.",
            needs=_RUNS + "steered to documents and to sentences; make them with: "
            f"{HOW}, and with --set granularity=sentence, --set fine_steering=false",
            method=METHOD,
            options=("granularity", "fine_steering"),
            words=_granularity,
            more={"steered_recall": _MORE["steered_recall"]},
            note="Gold steered to: the share of gold documents that are candidates, or hold a candidate sentence.",
        ),
    )


def delta(runs: Sequence[RunResult]) -> Report:
    """Accuracy by the strength of steering (Table 9)."""
    return by_setting(
        runs,
        Study(
            name="cafe_delta",
            title="CAFE by the strength of steering",
            source="CAFE, Table 9.",
            needs=_RUNS + "with two values of delta or more (log 5, log 10, log 13 and log 20 in the paper); make them "
            f"with: {HOW} --set delta=1.609",
            method=METHOD,
            options=("delta",),
            words=lambda config: _log(config["delta"]),
        ),
    )


def hyperparameters(runs: Sequence[RunResult]) -> Report:
    """Recall and accuracy by the numbers of heads and of documents per head, K and M, of both stages (Figure 3)."""
    return by_setting(
        runs,
        Study(
            name="cafe_hyperparameters",
            title="CAFE by number of heads and documents per head",
            source="CAFE, Figure 3.",
            needs=_RUNS + "with several values of k1, m1, k2 or m2; make them with: "
            f"{HOW} --set k1=2 --set m1=8 (recall alone needs no such runs: report cafe_recall)",
            method=METHOD,
            options=("k1", "m1", "k2", "m2"),
            words=lambda config: ", ".join(f"{name.upper()} {config[name]}" for name in ("k1", "m1", "k2", "m2")),
            more=_MORE,
        ),
    )


def _ablation(config: Mapping[str, Any]) -> str:
    parts = ["w/o coarse filtering"] * (not config["coarse_filtering"])
    parts += ["w/o fine steering"] * (not config["fine_steering"])
    parts += {"best_last": [], "random": ["w/o re-ranking"]}.get(config["order"], [f"order={config['order']}"])
    return ", ".join(parts) or "CAFE"


def _granularity(config: Mapping[str, Any]) -> str:
    if not config["fine_steering"]:
        return "w/o steering"
    return f"{str(config['granularity']).capitalize()} level"


def _log(value: float) -> str:
    power = math.exp(value)
    return f"log {power:.3g}" if abs(power - round(power)) < 0.05 else f"{value:g}"
