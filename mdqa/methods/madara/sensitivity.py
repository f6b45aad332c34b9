"""What the router's thresholds do to its decisions (Appendix D), and learning one from an environment. Pure.

A cell is a model and a task with what was measured for them, and, where they are known, the exact matches of the
treatments, so that a decision can be compared with the best one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mdqa.errors import ConfigError
from mdqa.methods.madara.router import Rho, Thresholds, model_class, treatment_for

TAU_NF_VALUES = (0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45)
"""Appendix D.2."""

RHO1_VALUES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Table 8."""

MIN_GAP = 0.10
"""A smaller gap is no separation: over 100 questions an accuracy near 0.3 is known to about 0.09 either way."""

STRONG_NF = 0.60
"""From this No-Filter accuracy on the paper finds no benefit from PDE (section 6.1)."""

_EQUAL = 1e-9


@dataclass(frozen=True)
class Cell:
    """A model and task. ``rho`` and ``nf`` as the router takes them; ``em``: treatment -> exact match, 0 to 1."""

    name: str
    rho: Rho | None = None
    nf: float | None = None
    em: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """All cells' decisions at one value of one threshold.

    Attributes:
        threshold, value: which one was set to what.
        treatments: per cell; None where the measures do not suffice.
        changed: cells whose treatment is not that of the thresholds they are compared with.
        scored: cells with a known exact match of the chosen treatment; ``matches`` of them have the best known one, and
            ``gap`` is the mean distance to it (0 to 1; None without such cells).
    """

    threshold: str
    value: float
    treatments: Mapping[str, str | None]
    changed: tuple[str, ...]
    scored: int
    matches: int
    gap: float | None


@dataclass(frozen=True)
class CouplingOutcome:
    """One row of Table 8: CoT or the 3-Agent Baseline by ``rho1_threshold`` alone.

    ``to_cot``: quality-ordered cells below the threshold (the table's "Changed"), of ``cells``. ``scored``,
    ``matches`` and ``gap`` as in :class:`Outcome`.
    """

    value: float
    to_cot: tuple[str, ...]
    cells: int
    scored: int
    matches: int
    gap: float | None


def sweep(
    cells: Sequence[Cell],
    threshold: str,
    values: Sequence[float],
    bars: Thresholds | None = None,
    *,
    multi_hop: bool = False,
) -> list[Outcome]:
    """The whole router's decisions with one threshold (a field of Thresholds) at each value, the others as in ``bars``.

    Decisions count as changed against those of ``bars`` themselves (the paper's values by default).
    """
    default = bars or Thresholds()
    before = {cell.name: treatment_for(cell.rho, cell.nf, default, multi_hop=multi_hop) for cell in cells}
    found = []
    for value in values:
        moved = replace(default, **{threshold: value})
        treatments = {cell.name: treatment_for(cell.rho, cell.nf, moved, multi_hop=multi_hop) for cell in cells}
        changed = tuple(name for name, treatment in treatments.items() if treatment != before[name])
        gaps = [gap for cell in cells if (gap := _gap(treatments[cell.name], cell.em)) is not None]
        found.append(Outcome(threshold, value, treatments, changed, len(gaps), *_summary(gaps)))
    return found


def coupling_sweep(cells: Sequence[Cell], values: Sequence[float] = RHO1_VALUES) -> list[CouplingOutcome]:
    """Table 8 (Appendix D.1): the second dimension of the router by itself, No-Filter accuracy left aside.

    The table does not say what the oracle is. Its rows follow if a quality-ordered cell has the choice between CoT and
    the 3-Agent Baseline ("baseline-preferred"), and a stochastic one only SDA, which then always matches (our reading;
    the printed 6/10 at 0.3 does not follow from any: between 0.3 and 0.4 one cell changes, but 6 becomes 8).
    """
    known = [cell for cell in cells if cell.rho is not None]
    found = []
    for value in values:
        to_cot, gaps = [], []
        for cell in known:
            assert cell.rho is not None
            options: tuple[str, ...] = ("sda",)
            chosen = "sda"
            if model_class(cell.rho) == "quality_ordered":
                options, chosen = ("cot", "three_agent"), "cot" if cell.rho[0] < value else "three_agent"
                to_cot += [cell.name] * (chosen == "cot")
            gap = _gap(chosen, {name: cell.em[name] for name in options if name in cell.em})
            gaps += [] if gap is None or not set(options) <= set(cell.em) else [gap]
        found.append(CouplingOutcome(value, tuple(to_cot), len(known), len(gaps), *_summary(gaps)))
    return found


def _gap(treatment: str | None, em: Mapping[str, float]) -> float | None:
    """How far the treatment is behind the best known one; None if its exact match is not known."""
    return max(em.values()) - em[treatment] if treatment is not None and treatment in em else None


def _summary(gaps: Sequence[float]) -> tuple[int, float | None]:
    return sum(gap <= _EQUAL for gap in gaps), sum(gaps) / len(gaps) if gaps else None


@dataclass(frozen=True)
class Learned:
    """A threshold in the middle of the widest gap between ``below`` and ``above``, among ``n`` accuracies."""

    threshold: float
    below: float
    above: float
    n: int

    @property
    def gap(self) -> float:
        """Width of the gap: any threshold in it decides the same."""
        return self.above - self.below


def threshold_from(values: Sequence[float]) -> Learned:
    """``tau_nf`` for an environment (its models, tasks and retriever) from the No-Filter accuracies measured there.

    Appendix D.2 argues that what fixes the routing is the wide gap between weak and strong accuracies, and Limitations
    asks for learning the boundary from the calibration distribution: the threshold is the middle of the widest gap
    (ours). A gap counts from MIN_GAP on, and if it begins below STRONG_NF: above that, it separates tasks and not weak
    from strong.

    Args:
        values: fractions from 0 to 1, one per profile.

    Raises:
        ConfigError: no such gap; the fixed threshold has to do.
    """
    ordered = sorted(values)
    if any(not 0 <= value <= 1 for value in ordered):
        raise ConfigError(f"No-Filter accuracies are fractions from 0 to 1, got {ordered!r}")
    gaps = [(above - below, below, above) for below, above in pairwise(ordered)]
    wide = [gap for gap in gaps if gap[0] >= MIN_GAP - _EQUAL and gap[1] < STRONG_NF]
    if not wide:
        raise ConfigError(
            f"{len(ordered)} No-Filter accuracies ({', '.join(f'{value:.3f}' for value in ordered) or 'none'}) have no "
            f"gap of {MIN_GAP:g} that begins below {STRONG_NF:g}, so no threshold can be learned from them; keep the "
            "fixed one"
        )
    _, below, above = max(wide, key=lambda gap: (round(gap[0], 9), -gap[1]))  # of equal ones the lowest
    return Learned((below + above) / 2, below, above, len(ordered))
