"""From a calibration profile and the options to the treatment of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mdqa.errors import ProfileError
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.entropy import decide_by_entropy, entropy_bits, normalised
from mdqa.methods.madara.router import TITLES, Rho, Thresholds, chosen_by_hand, decide
from mdqa.methods.recorder import Recorder
from mdqa.records import Profile, Routing

Router = Literal["rsc", "entropy"]


LABELS_NOTE = "No-Filter accuracy counts {labels} answers that people judged, not only matches with gold answers."


@dataclass(frozen=True)
class Measured:
    """What a profile holds for the router. ``nf``: No-Filter accuracy, 0 to 1, None if unknown.

    ``entropy``: of the grades, normalised to 0 to 1, and ``bits``; None where the profile has no grades. ``labels``: on
    how many of people's verdicts ``nf`` rests.
    """

    rho: Rho
    nf: float | None
    degenerate: bool = False
    entropy: float | None = None
    bits: float | None = None
    labels: int = 0


def route(config: MADARAConfig, tools: Tools, run: Recorder) -> Routing:
    """The router's decision for the profile, or the treatment set by hand."""
    profile = tools.profile
    if profile is not None and profile.model != tools.backend.model:
        run.notice(
            f"The profile {profile.name!r} was made for the model {profile.model!r}, not for "
            f"{tools.backend.model!r}: its measures may not hold.",
            warning=True,
        )
    found = decided(config, profile) if profile is not None else None
    if config.treatment != "auto":
        return chosen_by_hand(config.treatment, found)
    assert found is not None  # the method refuses to route without a profile
    return found


def decided(config: MADARAConfig, profile: Profile) -> Routing:
    """What the router of these options decides for a profile; ProfileError if the profile has not what it takes."""
    return route_profile(profile, config.thresholds, router=config.router, multi_hop=config.task == "multi-hop")


def route_profile(
    profile: Profile, thresholds: Thresholds, *, router: Router = "rsc", multi_hop: bool = False
) -> Routing:
    """What a router decides for a profile; ProfileError if the profile has not what it takes.

    ``router``: by No-Filter accuracy and coupling (``rsc``), or by the entropy of the grades (``entropy``).
    """
    found = measured(profile)
    if router == "entropy":
        if found.entropy is None:
            raise ProfileError(f"the profile {profile.name!r} has no grades to take the entropy of; calibrate again")
        return decide_by_entropy(found.entropy, thresholds, degenerate=found.degenerate, bits=found.bits)
    routing = decide(found.rho, found.nf, thresholds, degenerate=found.degenerate, multi_hop=multi_hop)
    if not found.labels:
        return routing
    return routing.model_copy(update={"note": f"{LABELS_NOTE.format(labels=found.labels)} {routing.note}".strip()})


def measured(profile: Profile) -> Measured:
    """What a profile holds for the router, of any age; ProfileError if it is damaged."""
    values = profile.values
    try:
        rho = [float(value) for value in values["rho"]]
        nf = values.get("nf")
        accuracy = None if nf is None else float(nf["em_squad"])
        labels = 0 if nf is None else int(nf.get("labels", 0))
        bits = entropy_bits(values.get("histogram") or {})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ProfileError(
            f"the profile {profile.name!r} is damaged ({type(error).__name__}: {error}); calibrate again"
        ) from None
    if len(rho) != 3:
        raise ProfileError(f"the profile {profile.name!r} has {len(rho)} correlations instead of 3; calibrate again")
    return Measured(
        rho=(rho[0], rho[1], rho[2]),
        nf=accuracy,
        degenerate=bool(values.get("degenerate", False)),
        entropy=None if bits is None else normalised(bits),
        bits=bits,
        labels=labels,
    )


def by_conflict(routing: Routing) -> Routing:
    """The decision for a question whose documents are in conflict (``per_query``, ours): each is read alone.

    The measures and thresholds stay those of the model's own decision, which the note keeps.
    """
    return routing.model_copy(
        update={
            "treatment": "pde",
            "title": TITLES["pde"],
            "reason": "The Conflict Agent found this question's documents in conflict, so each is read alone.",
            "alternatives": (),
            "note": f"Decided for this question (per_query). For the model it is {routing.title}: {routing.reason} "
            f"{routing.note}".strip(),
        }
    )
