"""Would other weights of the Structural Fusion Score have found more gold documents? Table 6."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import product

import numpy as np

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, change, joined, mean
from mdqa.reports.duquad.signals import fused_recall, normalised
from mdqa.reports.duquad.stored import HOW, METHOD, SIGNALS, TOP_K, gold_first, paper_weights, signals
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources

NEEDS = (
    "finished DuQUAD runs with all three signals over questions whose gold documents are marked; make them with: "
    f"{HOW} (a model that gives likelihoods and attention)"
)

GRID = (0.3, 0.5, 0.7, 1.0)
"""The weights that occur in Table 6."""

PAPER, OTHER, CROSS = "the paper's weights", "other weights", "chosen on the other half"

Weights = tuple[float, ...]
"""The weights of sim, ppl and cont."""


def report(runs: Sequence[RunResult], k: int = TOP_K, grid: Sequence[float] = GRID) -> Report:
    """Gold recall at ``k`` for every setting of the grid, best first, and the paired difference to the paper's.

    Signals are normalised as in the run and fused anew. Only the ratios of weights matter to a ranking: of settings
    with the same ratios the first stands for all. The best of many settings is too good on the questions that chose it,
    so the first row of a group chooses on one half of the questions and measures on the other, both ways round (halves
    by the SHA-256 of the question's id; of equally good settings the first of the grid).
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and set(signals(run)) == set(SIGNALS)]
    made = groups(usable, only=("contrast", "normalisation"), pool=True)
    rows: list[Row] = []
    notes = []
    for group in made:
        found, note = _rows(group, k, settings(grid))
        rows += found
        notes.append(note)
    return Report(
        name="weights",
        title=f"Weights of the Structural Fusion Score: gold recall at {k}",
        source="DuQUAD, Table 6.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="rank", title="Rank", digits=0),
            Column(key="kind", title="Setting"),
            *(Column(key=name, title=name, digits=1) for name in SIGNALS),
            Column(key="recall", title=f"Recall@{k}", unit="%", digits=1),
            Column(key="difference", title="Minus the paper's", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="points", x="place", y="recall", low="recall_low", high="recall_high", mark="paper"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                *notes,
                "The best of many settings looks better than it is on the questions that chose it: trust only the row "
                "that is chosen on one half of the questions and measured on the other.",
                gold_first(usable),
                left_out(len(mine), len(usable), "no gold document is marked, or not all three signals were measured"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def settings(grid: Sequence[float]) -> list[Weights]:
    """All settings of the grid that rank differently, the paper's among them."""
    paper = _paper()
    by_ratio: dict[Weights, Weights] = {_ratios(paper): paper}
    for setting in product(grid, repeat=len(SIGNALS)):
        by_ratio.setdefault(_ratios(setting), setting)
    return sorted(by_ratio.values())


def _paper() -> Weights:
    weights = paper_weights()
    return tuple(weights[name] for name in SIGNALS)


def _ratios(setting: Sequence[float]) -> Weights:
    return tuple(round(weight / max(setting), 9) for weight in setting)


def _rows(group: Group, k: int, grid: Sequence[Weights]) -> tuple[list[Row], str]:
    """The rows of one group, and where the paper's weights stand."""
    runs = list(group.runs.values())
    by_name = [dict(zip(SIGNALS, setting, strict=True)) for setting in grid]
    scaled = [normalised(run) for run in runs]
    recalls = np.array(
        [[fused_recall(run, s, weights, k) for run, s in zip(runs, scaled, strict=True)] for weights in by_name],
        dtype=np.float64,
    )  # (settings, questions)
    means = recalls.mean(axis=1).round(12)
    own = grid.index(_paper())
    rows = []
    for place, i in enumerate(sorted(range(len(grid)), key=lambda i: (-means[i], i != own)), 1):
        kind = PAPER if i == own else OTHER
        row = _row(group, kind, grid[i], recalls[i], recalls[own])
        rows.append({**row, "rank": int((means > means[i]).sum()) + 1, "place": place})
    note = f"{group.label}: the paper's weights rank {int((means > means[own]).sum()) + 1} of {len(grid)} settings."
    if len(set(sources(runs))) > 1:
        measured, how = _crossed(runs, recalls, grid)
        rows.insert(0, _row(group, CROSS, None, measured, recalls[own]))
        note += f" Chosen on one half and measured on the other: {how}."
    return rows, note


def _crossed(runs: Sequence[RunResult], recalls: np.ndarray, grid: Sequence[Weights]) -> tuple[np.ndarray, str]:
    """Every question's recall with the setting that the other half of the questions chose, and the choices in words."""
    names = sources(runs)
    order = sorted(set(names), key=lambda name: sha256(name.encode("utf-8", "replace")).digest())
    first = set(order[::2])
    halves = [np.array([i for i, name in enumerate(names) if (name in first) == side]) for side in (True, False)]
    measured = np.empty(len(runs))
    words = []
    for chooser, other in (halves, halves[::-1]):
        best = int(np.argmax(recalls[:, chooser].mean(axis=1).round(12)))
        measured[other] = recalls[best, other]
        words.append(
            f"({', '.join(f'{weight:g}' for weight in grid[best])}) has {100 * recalls[best, chooser].mean():.1f}% "
            f"where it was chosen and {100 * recalls[best, other].mean():.1f}% on the other half"
        )
    return measured, "; ".join(words)


def _row(
    group: Group,
    kind: str,
    setting: Weights | None,
    values: np.ndarray,
    paper: np.ndarray,
) -> Row:
    weights = dict.fromkeys(SIGNALS) if setting is None else dict(zip(SIGNALS, setting, strict=True))
    names = sources(group.runs.values())
    against = paper if kind != PAPER else np.empty(0)
    return {
        "group": group.label,
        "rank": None,
        "place": None,
        "kind": kind,
        "paper": "yes" if kind == PAPER else None,
        **weights,
        **mean("recall", values.tolist(), names),
        **change("difference", values.tolist()[: len(against)], against.tolist(), names[: len(against)]),
        "n": len(values),
    }
