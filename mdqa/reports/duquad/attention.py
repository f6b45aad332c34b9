"""Where the model looks: attention on each position by where the gold document stands (Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import HOW, METHOD
from mdqa.reports.grouping import Group, finished, groups, left_out, older, position_of

NEEDS = (
    "finished DuQUAD runs that measured attention contrast over two documents or more; make them with: "
    f"{HOW} (a model that gives attention)"
)

STAGES = ("attention", "structural_fusion")
"""The stages whose attention is that of the question in the Global Agent's prompt."""


def report(runs: Sequence[RunResult]) -> Report:
    """Mean z-score of the attention on each position, one series per position of the gold document.

    z_i = (a_i - mean_j a_j) / std_j a_j over the documents of one question (population standard deviation; equal
    masses give 0), our reading of the paper's "attention z-score". a_i is the attention of the question's tokens on
    document i in the Global Agent's prompt, mean over all layers and heads; the paper's figure has no definition.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if len(_z_scores(run)) > 1]
    made = groups(usable, only=("max_cited",), pool=True)
    rows = [row for group in made for row in _rows(group)]
    return Report(
        name="attention_by_position",
        title="Attention by position of the document",
        source="DuQUAD, Figure 1.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="gold", title="Gold at"),
            Column(key="position", title="Position", digits=0),
            Column(key="here", title="Gold document"),
            Column(key="z", title="Attention, z-score", digits=2),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="lines", x="position", y="z", series="series", low="z_low", high="z_high", mark="here"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "z compares the documents of one question with each other: 0 is their mean. Attention is that of "
                "the question's tokens in the Global Agent's prompt, mean over layers and heads (our reading; "
                "the prompt's last token alone would be another).",
                INTERVALS,
                left_out(len(mine), len(usable), "no attention is stored, or there is one document only"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _z_scores(run: RunResult) -> dict[int, float]:
    """The z-score by the document's position from 1; empty where the run stored no attention, or not only numbers."""
    summary = next((s for s in run.attention_summary if s.stage in STAGES), None)
    if summary is None:
        return {}
    places = {document: place for place, document in enumerate(run.question.document_ids, 1)}
    mass = {places[document]: value for document, value in summary.document_mass.items() if document in places}
    values = np.array(list(mass.values()), dtype=np.float64)
    if not np.isfinite(values).all():
        return {}
    spread = float(values.std()) if len(values) else 0.0
    scaled = (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
    return dict(zip(mass, scaled.tolist(), strict=True))


def _rows(group: Group) -> list[Row]:
    series: dict[tuple[int, str], list[dict[int, float]]] = {}
    for run in group.runs.values():
        place = position_of(run)
        other = "several" if run.question.gold_ids else "not marked"
        key = (place or 10**6, str(place) if place else other)
        series.setdefault(key, []).append(_z_scores(run))
    rows: list[Row] = []
    for (place, name), runs in sorted(series.items()):
        for position in sorted({position for scores in runs for position in scores}):
            values = [scores[position] for scores in runs if position in scores]
            rows.append(
                {
                    "group": group.label,
                    "gold": name,
                    "series": f"gold at {name}" if name.isdigit() else f"gold {name}",
                    "position": position,
                    "here": "gold" if position == place else None,
                    **mean("z", values),
                    "n": len(values),
                }
            )
    return rows
