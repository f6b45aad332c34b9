"""Decisions: MADARA's route with its measures on their axes, the bars they are held to, and what else was near."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mdqa.methods.madara.deciding import LABELS_NOTE
from mdqa.methods.madara.router import DEGENERATE, MULTI_HOP, MULTI_HOP_PDE, TITLES
from mdqa.records import Alternative, Routing, RunResult
from ui.views.markup import badge, element, empty, escape, message, number, text

MEASURES: Mapping[str, str] = {
    "EM_NF": "No-Filter accuracy",
    "rho1": "ρ₁ (shuffled)",
    "rho2": "ρ₂ (contradicted)",
    "rho3": "ρ₃ (random)",
    "rho_gap": "ρ gap (smallest step)",
    "rho_star": "ρ* (trend)",
    "rho_bar": "ρ mean",
    "entropy": "score entropy (of 1)",
    "entropy_bits": "score entropy, bits",
}
"""Words for measures that have a symbol, in the order in which they are shown; others keep their own name."""

BARS: Mapping[str, str] = {"tau_nf": "EM_NF", "rho1_threshold": "rho1", "entropy_threshold": "entropy"}
"""Names of movable thresholds, and the measures that are held to them."""

SIDES: Mapping[str, tuple[str, str]] = {
    "EM_NF": ("PDE", "the probe decides"),
    "rho1": ("CoT", "ATF"),
    "rho_gap": ("stochastic: SDA", "quality-ordered"),
    "entropy": ("CoT", "SDA"),
}
"""What follows below and above a measure's bar."""

MULTI_HOP_SIDES: Mapping[str, tuple[str, str]] = {
    "EM_NF": ("coupling decides", "the probe decides"),
    "rho1": ("PDE", "3-Agent"),
    "rho_gap": ("stochastic: PDE", "quality-ordered"),
}
"""The same where the multi-hop rule took over."""

LONGEST = {"entropy_bits": math.log2(6)}
"""Where an axis ends that does not end at 1."""

BESIDE = ("rho_star", "rho_bar", "entropy_bits")
"""Measures that are reported and decide nothing that another one does not."""

BY_HAND = "chosen by hand"

NO_ROUTING = "This method does not route"
NO_ROUTING_HINT = "MADARA shows here what it measured and which treatment follows; DuQUAD its agents and the judge."


def decisions(run: RunResult) -> str:
    """The route of a run; an empty state where the method made no decision and nobody said anything."""
    if run.routing is not None:
        return routing_panel(run.routing)
    return "" if run.opinions else empty(NO_ROUTING, NO_ROUTING_HINT)


def routing_panel(routing: Routing) -> str:
    """Treatment, marks and reason; measures on their axes with bars and margins; what a moved bar would choose."""
    head = (
        element("p", text("span", "Treatment", "mdqa-label") + text("strong", routing.title), "mdqa-treatment")
        + element("div", _marks(routing), "mdqa-badges")
        + text("p", routing.reason[:1].upper() + routing.reason[1:])
    )
    note = message(routing.note, "info") if routing.note else ""
    inner = text("h3", "Route") + head + _axes(routing) + _alternatives(routing) + note
    return element("section", inner, "mdqa-routing", data_testid="routing")


def _marks(routing: Routing) -> str:
    """How the decision came about, as far as it is not the plain rule on plain measures."""
    labels = []
    if BY_HAND in routing.reason:
        labels.append(badge(BY_HAND, "info"))
    if routing.model_class:
        labels.append(badge(f"model: {routing.model_class.replace('_', ' ')}"))
    if routing.coupling:
        labels.append(badge(f"coupling: {routing.coupling.replace('_', ' ')}"))
    if "EM_NF" in routing.measures and routing.measures["EM_NF"] is None:
        labels.append(badge("No-Filter accuracy unknown", "warn"))
    labels += [badge(words, kind) for start, words, kind in NOTED if start in routing.note or start in routing.reason]
    return "".join(labels)


NOTED: tuple[tuple[str, str, str], ...] = (
    (DEGENERATE, "degenerate scores", "warn"),
    (MULTI_HOP, "multi-hop rule", "info"),
    (MULTI_HOP_PDE, "multi-hop task", "warn"),
    (LABELS_NOTE.partition("{")[0], "learned from labels", "info"),
    ("(per_query)", "decided for this question", "info"),
)
"""Words of a routing's reason or note, and the mark that they put on the decision."""


def _axes(routing: Routing) -> str:
    order = list(MEASURES)
    names = sorted(routing.measures, key=lambda name: order.index(name) if name in order else len(order))
    settled = _settled(routing)
    main = [_axis(routing, name, settled) for name in names if name not in BESIDE]
    beside = [_axis(routing, name, settled) for name in names if name in BESIDE]
    if beside:
        main.append(text("p", "Reported beside them", "mdqa-label"))
    return element("div", "".join(main + beside), "mdqa-axes") if main else ""


def _multi_hop(routing: Routing) -> bool:
    """Whether No-Filter accuracy is low and the multi-hop rule looked further."""
    return MULTI_HOP in routing.note or MULTI_HOP_PDE in routing.note


def _settled(routing: Routing) -> frozenset[str]:
    """Measures whose bar this decision did not come to, because an earlier one had settled it."""
    gap, accuracy = routing.margins.get("rho_gap"), routing.margins.get("EM_NF")
    if BY_HAND in routing.reason or _multi_hop(routing):
        return frozenset()
    if routing.treatment == "pde" and accuracy is not None and accuracy < 0:
        return frozenset({"rho1", "rho_gap"})
    if routing.treatment == "sda" and gap is not None and gap <= 0:
        return frozenset({"rho1"})
    return frozenset()


def _axis(routing: Routing, name: str, settled: frozenset[str]) -> str:
    bar, margin = _bar_of(routing, name), routing.margins.get(name)
    if name in BESIDE:
        bar = margin = None
    sides = (MULTI_HOP_SIDES if _multi_hop(routing) else SIDES).get(name)
    return measure_axis(name, routing.measures[name], bar, margin, sides=sides, settled=name in settled)


def _bar_of(routing: Routing, measure: str) -> float | None:
    """The threshold of a measure: by its own name, or worked out from its margin (measure minus threshold)."""
    if measure in routing.thresholds:
        return routing.thresholds[measure]
    value, margin = routing.measures.get(measure), routing.margins.get(measure)
    return None if value is None or margin is None else value - margin


def measure_words(name: str) -> str:
    """A measure's or a threshold's name for people."""
    return MEASURES.get(BARS.get(name, name), name.replace("_", " "))


def measure_axis(
    name: str,
    value: float | None,
    threshold: float | None,
    margin: float | None,
    *,
    sides: tuple[str, str] | None = None,
    settled: bool = False,
) -> str:
    """One measured value on a line from 0 (or -1) to 1 (or a little beyond), with the bar it is held to.

    ``sides``: what follows below and above the bar. ``settled``: the decision was made before this bar was looked at.
    """
    label = text("span", measure_words(name), "mdqa-signal")
    if value is None:
        return element("div", label + badge("not measured", "warn"), "mdqa-axis")
    known = [v for v in (value, threshold) if v is not None]
    low, high = min(-1.0 if name.startswith("rho") else 0.0, *known), max(LONGEST.get(name, 1.0), *known)
    scale = 100 / (high - low)
    marks, words = "", []
    if threshold is not None:
        place = (threshold - low) * scale
        marks += f'<b style="left:{place:.1f}%"></b>' + (_sides(sides, place) if sides else "")
        words.append(f"bar {number(threshold, 2)}")
    marks += f'<i style="left:{(value - low) * scale:.1f}%"></i>'
    if margin is not None:
        words.append(f"margin {'+' if margin >= 0 else ''}{number(margin)}")
    if settled:
        words.append("not asked")
    first, last = (number(end, 0 if float(end).is_integer() else 1) for end in (low, high))
    ends = text("span", first, "end") + element("span", marks, "line") + text("span", last, "end")
    line = element("span", ends, "mdqa-axis-line", aria_hidden="true")
    figure = text("span", number(value), "mdqa-number") + text("span", " · ".join(words), "mdqa-quiet")
    sided = " sided" if threshold is not None and sides else ""
    return element("div", label + line + figure, f"mdqa-axis{sided}{' settled' if settled else ''}")


def _sides(sides: tuple[str, str], place: float) -> str:
    """What follows on both sides of the bar, next to it; ``place`` in percent of the line."""
    return text("small", sides[0], style=f"right:{100 - place:.1f}%") + text(
        "small", sides[1], style=f"left:{place:.1f}%"
    )


def _alternatives(routing: Routing) -> str:
    if not routing.alternatives:
        if not routing.margins or BY_HAND in routing.reason:
            return ""
        return text("p", "No single bar, moved alone, would change this decision.", "mdqa-note")
    rows = "".join(_alternative(routing, alternative) for alternative in routing.alternatives)
    return text("h4", "What else could happen") + element("ul", rows, "mdqa-alternatives")


def _alternative(routing: Routing, alternative: Alternative) -> str:
    """One sentence: which bar would have to go how far for which treatment."""
    name, value = alternative.threshold, alternative.value
    now = routing.thresholds.get(BARS.get(name, name))
    words = f" if the bar of {measure_words(name)} were at {number(value)}"
    away = ""
    if now is not None:
        where = f"{number(value)} or lower" if value < now else f"above {number(value)}"
        words = f" if the bar of {measure_words(name)}, now {number(now, 2)}, were {where}"
        away = text("span", f" · {number(abs(value - now))} away", "mdqa-quiet")
    return element("li", text("strong", treatment_title(alternative.treatment)) + escape(words) + away)


def treatment_title(name: str) -> str:
    """A treatment's title; its own name in words where it has none."""
    return TITLES.get(name) or (name.upper() if len(name) <= 4 else name.replace("_", " "))
