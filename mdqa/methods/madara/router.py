"""MADARA's routing rule (sections 3.2 and 4.5, Appendix E) and everything a decision rests on. Pure.

The text of section 4.5 asks for the model class first, Figure 1 and the released code for No-Filter accuracy first;
only the second explains the published row of Llama-3.1-8B on TriviaQA, so it is the rule here (our reading).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mdqa.errors import ConfigError
from mdqa.methods.madara.ranks import spearman
from mdqa.records import Alternative, Routing

ModelClass = Literal["quality_ordered", "stochastic"]
Rho = tuple[float, float, float]
"""Pooled correlations of normal scores with those after shuffled, contradicted and random reasoning."""

TITLES: Mapping[str, str] = {
    "nf": "No-Filter (NF)",
    "three_agent": "3-Agent Baseline",
    "cot": "CoT De-Polarization",
    "sda": "Score Distribution Alignment (SDA)",
    "atf": "Adaptive Threshold Filtering (ATF)",
    "pde": "Per-Document Extraction (PDE)",
}

NF_UNKNOWN = "No-Filter accuracy is unknown (no gold answers were there to measure it), so the probe alone decided."
DEGENERATE = (
    "The probe's scores are degenerate: nearly all documents got the same one, so its correlations say little about "
    "how the model scores."
)


@dataclass(frozen=True)
class Thresholds:
    """Where the router turns: PDE if EM_NF < ``tau_nf``; CoT instead of ATF if rho_1 < ``rho1_threshold``."""

    tau_nf: float = 0.30
    rho1_threshold: float = 0.5


def model_class(rho: Rho) -> ModelClass:
    """Quality-ordered if rho_1 > rho_2 > rho_3 strictly, on unrounded values (the same as rho* = -1)."""
    return "quality_ordered" if rho[0] > rho[1] > rho[2] else "stochastic"


def trend(rho: Rho) -> float:
    """rho*: Spearman of the levels (1, 2, 3) with the correlations.

    One of -1, -0.5, 0, 0.5, 1; with two equal correlations -0.866 or 0.866 (or 0), with three 0.
    """
    value = spearman((1.0, 2.0, 3.0), rho)
    return 0.0 if math.isnan(value) else value


def decide(
    rho: Rho | None, nf: float | None, thresholds: Thresholds | None = None, *, degenerate: bool = False
) -> Routing:
    """The treatment for a model and task with everything that speaks for it.

    Args:
        rho: the probe's three correlations, each from -1 to 1; None if it was not run.
        nf: No-Filter exact match as a fraction from 0 to 1; None if unknown, then the probe decides alone.
        thresholds: the paper's by default.
        degenerate: whether the probe found nearly one and the same score everywhere; only noted.

    Returns:
        A routing whose measures, thresholds and margins (measure minus threshold) share their names: ``EM_NF``,
        ``rho1``, ``rho_star`` (against -1) and ``rho_gap`` (the smaller of rho1 - rho2 and rho2 - rho3, against 0).
        Alternatives name the threshold as in Thresholds: moved to their value it gives their treatment.

    Raises:
        ConfigError: a measure outside its limits, or too few of them to decide.
    """
    bars = thresholds or Thresholds()
    _check(rho, nf)
    treatment = _treatment(rho, nf, bars)
    if treatment is None:
        raise ConfigError(
            "the router needs the probe's three correlations unless No-Filter accuracy is below tau_nf "
            f"({bars.tau_nf:g}); got {'no' if nf is None else format(nf, 'g')} No-Filter accuracy and no correlations"
        )
    notes = [NF_UNKNOWN] * (nf is None) + [DEGENERATE] * degenerate
    measures = _measures(rho, nf)
    limits = {"EM_NF": bars.tau_nf, "rho1": bars.rho1_threshold, "rho_star": -1.0, "rho_gap": 0.0}
    return Routing(
        treatment=treatment,
        title=TITLES[treatment],
        reason=_reason(treatment, rho, nf, bars),
        model_class="" if rho is None else model_class(rho),
        coupling=_coupling(rho, bars),
        measures=measures,
        thresholds=limits,
        margins={
            name: value - limits[name] for name, value in measures.items() if name in limits and value is not None
        },
        alternatives=_alternatives(rho, nf, bars, treatment),
        note=" ".join(notes),
    )


def chosen_by_hand(treatment: str, found: Routing | None = None) -> Routing:
    """The record of a treatment that the user set; ``found`` is what the router says for the profile, if any."""
    reason = "treatment chosen by hand"
    if found is None:
        return Routing(treatment=treatment, title=TITLES[treatment], reason=reason)
    would = f"The router would choose {found.title}: {found.reason}"
    note = f"{would} {found.note}".strip()
    update = {"treatment": treatment, "title": TITLES[treatment], "reason": reason, "alternatives": (), "note": note}
    return found.model_copy(update=update)


def _check(rho: Rho | None, nf: float | None) -> None:
    if nf is not None and not 0 <= nf <= 1:
        raise ConfigError(f"No-Filter accuracy is {nf!r}; give a fraction from 0 to 1 (13.9% is 0.139)")
    if rho is not None and (len(rho) != 3 or not all(-1 <= value <= 1 for value in rho)):
        raise ConfigError(f"the probe gives three correlations from -1 to 1, got {rho!r}")


def _treatment(rho: Rho | None, nf: float | None, bars: Thresholds) -> str | None:
    """The rule itself; None where the measures do not suffice."""
    if nf is not None and nf < bars.tau_nf:
        return "pde"
    if rho is None:
        return None
    if model_class(rho) == "stochastic":
        return "sda"
    return "cot" if rho[0] < bars.rho1_threshold else "atf"


def _coupling(rho: Rho | None, bars: Thresholds) -> str:
    if rho is None:
        return ""
    if model_class(rho) == "stochastic":
        return "none"
    return "weak" if rho[0] < bars.rho1_threshold else "strong"


def _measures(rho: Rho | None, nf: float | None) -> dict[str, float | None]:
    if rho is None:
        return {"EM_NF": nf}
    return {
        "EM_NF": nf,
        "rho1": rho[0],
        "rho2": rho[1],
        "rho3": rho[2],
        "rho_star": trend(rho),
        "rho_bar": sum(rho) / 3,
        "rho_gap": min(rho[0] - rho[1], rho[1] - rho[2]),
    }


def _alternatives(rho: Rho | None, nf: float | None, bars: Thresholds, now: str) -> tuple[Alternative, ...]:
    """For each threshold the nearest value that changes the decision (the next float where ``<`` asks for it)."""
    found = []
    if nf is not None:
        value = nf if nf < bars.tau_nf else math.nextafter(nf, math.inf)
        other = _treatment(rho, nf, replace(bars, tau_nf=value))
        if other is not None and other != now:
            found.append(Alternative(threshold="tau_nf", value=value, treatment=other))
    if rho is not None and now in ("cot", "atf"):
        value = rho[0] if now == "cot" else math.nextafter(rho[0], math.inf)
        other = _treatment(rho, nf, replace(bars, rho1_threshold=value))
        if other is not None and other != now:
            found.append(Alternative(threshold="rho1_threshold", value=value, treatment=other))
    return tuple(found)


def _reason(treatment: str, rho: Rho | None, nf: float | None, bars: Thresholds) -> str:
    if treatment == "pde":
        return (
            f"No-Filter accuracy {nf:.3f} is below {bars.tau_nf:g}: the model loses the answer among several "
            "documents, so each document is read alone and the answers vote."
        )
    known = "" if nf is None else f"No-Filter accuracy {nf:.3f} reaches {bars.tau_nf:g}. "
    assert rho is not None
    values = ", ".join(f"{value:.3f}" for value in rho)
    if treatment == "sda":
        return (
            f"{known}The correlations {values} do not fall strictly: scores do not follow the reasoning (stochastic), "
            "so only their ranks are used."
        )
    side = "is below" if treatment == "cot" else "reaches"
    what = (
        "weakly coupled scores gain from reasoning first"
        if treatment == "cot"
        else "strongly coupled scores can be held to a threshold"
    )
    order = f"The correlations {values} fall strictly (quality-ordered)"
    return f"{known}{order} and the first {side} {bars.rho1_threshold:g}: {what}."
