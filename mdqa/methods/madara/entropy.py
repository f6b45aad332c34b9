"""Score entropy and the router that goes by it: the paper's baseline (section 6.3, Appendix I, Table 12). Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from mdqa.errors import ConfigError
from mdqa.methods.madara.router import DEGENERATE, TITLES, Thresholds
from mdqa.records import Alternative, Routing

GRADES = 6
"""Bins of the histogram: the grades 0 to 5."""

ENTROPY_NOTE = (
    "The entropy router is the paper's baseline (section 6.3): it knows CoT and SDA only and looks at neither "
    "No-Filter accuracy nor coupling. Its threshold is our reading; Table 12 fits any above 0.61 up to 0.75."
)


def entropy_bits(histogram: Mapping[str, int]) -> float | None:
    """Shannon entropy, 0 to log2(6) bits, of how often each grade was given; None if none was.

    Args:
        histogram: grade as text -> how often, as profiles keep it. Grades between two whole ones count for the nearer
            one, halves for the upper one.
    """
    bins: Counter[int] = Counter()
    for grade, times in histogram.items():
        bins[math.floor(float(grade) + 0.5)] += times
    total = sum(bins.values())
    if not total:
        return None
    shares = [times / total for times in bins.values() if times]
    return max(0.0, -sum(share * math.log2(share) for share in shares))


def normalised(bits: float) -> float:
    """Entropy as a share, 0 to 1, of the largest one that six grades can have (Table 12)."""
    return min(bits / math.log2(GRADES), 1.0)


def summarise_entropy(histogram: Mapping[str, int]) -> dict[str, float] | None:
    """What a profile says about entropy: ``bits`` and ``normalised``; None without grades."""
    bits = entropy_bits(histogram)
    return None if bits is None else {"bits": bits, "normalised": normalised(bits)}


def decide_by_entropy(
    entropy: float, thresholds: Thresholds | None = None, *, degenerate: bool = False, bits: float | None = None
) -> Routing:
    """SDA where the grades' entropy is high, CoT where it is low.

    Args:
        entropy: normalised, 0 to 1.
        thresholds: ``entropy_threshold`` is what counts; reaching it is high.
        degenerate: whether nearly all grades are the same; only noted.
        bits: the entropy in bits, only reported.

    Returns:
        A routing as :func:`mdqa.methods.madara.router.decide` gives it, with the measure ``entropy``.

    Raises:
        ConfigError: an entropy that is not within 0 to 1 (one in bits has to be divided by log2(6)).
    """
    if not 0 <= entropy <= 1:
        raise ConfigError(
            f"the entropy is {entropy!r}; give it as a share from 0 to 1 (bits divided by {math.log2(GRADES):.3f})"
        )
    bar = (thresholds or Thresholds()).entropy_threshold
    high = entropy >= bar
    treatment, other = ("sda", "cot") if high else ("cot", "sda")
    turn = math.nextafter(entropy, math.inf) if high else entropy
    what = (
        f"reaches {bar:g}: the grades are spread out, which is taken for uncertainty, so only their ranks are used."
        if high
        else f"is below {bar:g}: the grades lie close together, so the agents reason before they grade."
    )
    return Routing(
        treatment=treatment,
        title=TITLES[treatment],
        reason=f"The normalised entropy of the grades, {entropy:.3f}, {what}",
        measures={"entropy": entropy, **({} if bits is None else {"entropy_bits": bits})},
        thresholds={"entropy": bar},
        margins={"entropy": entropy - bar},
        alternatives=(Alternative(threshold="entropy_threshold", value=turn, treatment=other),),
        note=f"{ENTROPY_NOTE} {DEGENERATE if degenerate else ''}".strip(),
    )
