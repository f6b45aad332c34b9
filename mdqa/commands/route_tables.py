"""The router's decisions and the sweeps of Appendix D as text for people (``route --format table``)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mdqa.methods.madara.router import TITLES
from mdqa.methods.madara.sensitivity import CouplingOutcome, Learned, Outcome
from mdqa.records import Routing

WIDTH = 110


def decision_text(name: str, routing: Routing) -> str:
    """One decision: the treatment and why, every measure with threshold and margin, what would change it."""
    lines = [f"{name}: {routing.title}", _wrapped(routing.reason)]
    for measure, value in routing.measures.items():
        words = f"  {measure:12} {'unknown' if value is None else format(value, '7.3f')}"
        if measure in routing.margins:
            words += f"   threshold {routing.thresholds[measure]:.3f}   margin {routing.margins[measure]:+.3f}"
        lines.append(words)
    for other in routing.alternatives:
        lines.append(f"  with {other.threshold} at {other.value:.3f}: {TITLES[other.treatment]}")
    if routing.note:
        lines.append(_wrapped(routing.note))
    return "\n".join(lines) + "\n"


def learned_text(learned: Learned, unknown: Sequence[str]) -> str:
    """The learned threshold, what it rests on, and how a run gets it."""
    lines = [
        f"tau_nf {learned.threshold:.3f}: the middle of the widest gap, {learned.below:.3f} to {learned.above:.3f}, "
        f"between {learned.n} No-Filter accuracies.",
        f"To run with it: python -m mdqa answer --method madara --set tau_nf={learned.threshold:.3f} ...",
    ]
    if unknown:
        lines.append(f"Without a known accuracy, so not used: {', '.join(unknown)}.")
    return "\n".join(_wrapped(line, 0) for line in lines) + "\n"


def sweep_table(outcomes: Sequence[Outcome], default: float) -> str:
    """One threshold at each value: how many decisions change and to what."""
    lines = [f"{outcomes[0].threshold}, all treatments ({default:g} is what it is compared with)"]
    for outcome in outcomes:
        changed = ", ".join(f"{name}: {outcome.treatments[name] or 'undecided'}" for name in outcome.changed)
        head = f"  {outcome.value:.2f}  changed {len(outcome.changed)}/{len(outcome.treatments)}"
        lines.append(f"{head}{_oracle(outcome.scored, outcome.matches, outcome.gap)}  {changed}".rstrip())
    return "\n".join(lines) + "\n"


def coupling_table(outcomes: Sequence[CouplingOutcome]) -> str:
    """Table 8: CoT or the 3-Agent Baseline by rho1."""
    lines = ["rho1_threshold, CoT or 3-Agent Baseline, No-Filter accuracy left aside (Table 8)"]
    for outcome in outcomes:
        head = f"  {outcome.value:.2f}  to CoT  {len(outcome.to_cot)}/{outcome.cells}"
        lines.append(f"{head}{_oracle(outcome.scored, outcome.matches, outcome.gap)}")
    return "\n".join(lines) + "\n"


def _oracle(scored: int, matches: int, gap: float | None) -> str:
    return "" if gap is None else f"  best {matches}/{scored}  mean gap {gap * 100:.2f} pp"


def _wrapped(text: str, indent: int = 2) -> str:
    return textwrap.fill(text, width=WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)
