"""MADARA's routing rule (sections 3.2 and 4.5, Appendix E) and everything a decision rests on. Pure.

The text of section 4.5 asks for the model class first, Figure 1 and the released code for No-Filter accuracy first;
only the second explains the published row of Llama-3.1-8B on TriviaQA, so it is the rule here (our reading).

The multi-hop rule is ours, after section 6.5 and Limitations: reading documents one by one cannot join facts from
several of them, and the one strongly coupled pair measured there with low No-Filter accuracy gains 16 points from
scoring and 10 from PDE. It goes to the 3-Agent Baseline: of the two treatments with these 16 points it has the better
F1 (39.6, SDA 38.7), and SDA drops the distances between grades, which a coupled model has earned.
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

NF_UNKNOWN = (
    "No-Filter accuracy is unknown (neither gold answers nor people's verdicts were there to measure it), so the probe "
    "alone decided."
)
MULTI_HOP = (
    "Multi-hop rule (ours, after section 6.5): strongly coupled scores with low No-Filter accuracy go to scoring; the "
    "paper's own router would choose Per-Document Extraction (PDE)."
)
MULTI_HOP_PDE = (
    "The task is multi-hop, and PDE cannot join facts from several documents (section 6.5); the multi-hop rule sends "
    "only strongly coupled scores to scoring, and these are not."
)
DEGENERATE = (
    "The probe's scores are degenerate: nearly all documents got the same one, so its correlations say little about "
    "how the model scores."
)


@dataclass(frozen=True)
class Thresholds:
    """Where the routers turn: PDE if EM_NF < ``tau_nf``; CoT instead of ATF if rho_1 < ``rho1_threshold``.

    ``entropy_threshold`` is the entropy router's: SDA from this normalised entropy on, else CoT.
    """

    tau_nf: float = 0.30
    rho1_threshold: float = 0.5
    entropy_threshold: float = 0.70


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
    rho: Rho | None,
    nf: float | None,
    thresholds: Thresholds | None = None,
    *,
    degenerate: bool = False,
    multi_hop: bool = False,
) -> Routing:
    """The treatment for a model and task with everything that speaks for it.

    Args:
        rho: the probe's three correlations, each from -1 to 1; None if it was not run.
        nf: No-Filter exact match as a fraction from 0 to 1; None if unknown, then the probe decides alone.
        thresholds: the paper's by default.
        degenerate: whether the probe found nearly one and the same score everywhere; only noted.
        multi_hop: whether answers need facts from several documents (our rule, see above).

    Returns:
        A routing whose measures, thresholds and margins (measure minus threshold) share their names: ``EM_NF``,
        ``rho1``, ``rho_star`` (against -1) and ``rho_gap`` (the smaller of rho1 - rho2 and rho2 - rho3, against 0).
        Alternatives name the threshold as in Thresholds: moved to their value it gives their treatment.

    Raises:
        ConfigError: a measure outside its limits, or too few of them to decide.
    """
    bars = thresholds or Thresholds()
    check_measures(rho, nf)
    treatment = treatment_for(rho, nf, bars, multi_hop=multi_hop)
    if treatment is None:
        raise ConfigError(
            "the router needs the probe's three correlations unless No-Filter accuracy is below tau_nf "
            f"({bars.tau_nf:g}) and the task is not multi-hop; got {'no' if nf is None else format(nf, 'g')} "
            "No-Filter accuracy and no correlations"
        )
    notes = [NF_UNKNOWN] * (nf is None) + [MULTI_HOP] * (treatment == "three_agent")
    notes += [MULTI_HOP_PDE] * (multi_hop and treatment == "pde") + [DEGENERATE] * degenerate
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
        alternatives=_alternatives(rho, nf, bars, treatment, multi_hop),
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


def check_measures(rho: Rho | None, nf: float | None) -> None:
    """ConfigError for a measure outside its limits."""
    if nf is not None and not 0 <= nf <= 1:
        raise ConfigError(f"No-Filter accuracy is {nf!r}; give a fraction from 0 to 1 (13.9% is 0.139)")
    if rho is not None and (len(rho) != 3 or not all(-1 <= value <= 1 for value in rho)):
        raise ConfigError(f"the probe gives three correlations from -1 to 1, got {rho!r}")


def treatment_for(rho: Rho | None, nf: float | None, bars: Thresholds, *, multi_hop: bool = False) -> str | None:
    """The rule itself; None where the measures do not suffice."""
    low = nf is not None and nf < bars.tau_nf
    if low and not multi_hop:
        return "pde"
    if rho is None:
        return None
    coupling = _coupling(rho, bars)
    if low:
        return "three_agent" if coupling == "strong" else "pde"
    return {"none": "sda", "weak": "cot", "strong": "atf"}[coupling]


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


def _alternatives(
    rho: Rho | None, nf: float | None, bars: Thresholds, now: str, multi_hop: bool
) -> tuple[Alternative, ...]:
    """For each threshold the nearest value that changes the decision (the next float where ``<`` asks for it)."""
    measured = (("tau_nf", nf, bars.tau_nf), ("rho1_threshold", None if rho is None else rho[0], bars.rho1_threshold))
    found = []
    for name, measure, bar in measured:
        if measure is None:
            continue
        value = measure if measure < bar else math.nextafter(measure, math.inf)
        other = treatment_for(rho, nf, replace(bars, **{name: value}), multi_hop=multi_hop)
        if other is not None and other != now:
            found.append(Alternative(threshold=name, value=value, treatment=other))
    return tuple(found)


def _reason(treatment: str, rho: Rho | None, nf: float | None, bars: Thresholds) -> str:
    if treatment == "pde":
        return (
            f"No-Filter accuracy {nf:.3f} is below {bars.tau_nf:g}: the model loses the answer among several "
            "documents, so each document is read alone and the answers vote."
        )
    if treatment == "three_agent":
        assert rho is not None
        return (
            f"No-Filter accuracy {nf:.3f} is below {bars.tau_nf:g}, but the task is multi-hop and the scores are "
            f"strongly coupled to the reasoning ({', '.join(f'{value:.3f}' for value in rho)} fall strictly, the first "
            f"reaches {bars.rho1_threshold:g}): the documents are scored and the best ones read together (multi-hop "
            "rule)."
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
