"""What reading each document alone is worth, and whether the assessment matters to it (Tables 1, 5 and 15)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from mdqa.methods.madara.ranks import spearman
from mdqa.methods.madara.router import Thresholds
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS, beside, correct
from mdqa.reports.grouping import left_out, older
from mdqa.reports.madara.stored import COMPARED, HOW, METHOD, METRIC, Pair, pairs

NEEDS = (
    "finished MADARA runs over questions with accepted answers with No-Filter and PDE; make them with: "
    f"{COMPARED} (or {HOW} --set treatment=nf, and the same with treatment=pde)"
)

VARIANTS = {"nf": "NF", "pde_random": "PDE, random", "pde_uniform": "PDE, equal votes", "pde": "PDE"}
"""The columns of Table 1."""

WEAK, STRONG = "weak", "strong"


def report(runs: Sequence[RunResult]) -> Report:
    """Exact match of No-Filter and of PDE's variants per model and task, and PDE's gain over No-Filter.

    A model is weak on a task where No-Filter is below ``tau_nf`` (Table 15). Means over the pairs of either kind follow
    where there are several. Runs over documents that different retrievers found are different data sets: their rows are
    those of Table 5.
    """
    found = [pair for pair in pairs(runs) if {"nf", "pde"} <= set(pair.treatments)]
    rows = [_row(pair) for pair in found]
    correct(rows, lambda row: None)
    means = [row for kind in (WEAK, STRONG) if (row := _mean(kind, rows))]
    mine = [run for run in runs if run.method == METHOD]
    return Report(
        name="madara_isolation",
        title="What reading documents alone gains",
        source="MADARA, Tables 1, 5 and 15.",
        columns=(
            Column(key="case", title="Model and task"),
            Column(key="kind", title="No-Filter is"),
            *(Column(key=key, title=title, unit="%", digits=1) for key, title in VARIANTS.items()),
            Column(key="em_change", title="PDE minus NF", unit="%", digits=1),
            Column(key="b", title="Only PDE right", digits=0),
            Column(key="c", title="Only NF right", digits=0),
            Column(key="p", title="p"),
            Column(key="p_holm", title="p (Holm)"),
            Column(key="n", title="n", digits=0),
        ),
        rows=(*rows, *means),
        chart=Chart(kind="points", x="nf", y="em_change", series="case", low="em_change_low", high="em_change_high"),
        n=len({run.id for pair in found for run in pair.group.runs.values()}),
        note=joined(
            (
                f"Weak: No-Filter below {100 * Thresholds().tau_nf:g}%. EM after SQuAD's normalisation; p: McNemar's "
                "exact test on EM over the questions that both answered, with Holm's correction over all rows. A run "
                "that compares shares its calls between treatments, so what each would cost alone is seen in the "
                "report costs over runs of one treatment each.",
                _trend(rows),
                INTERVALS,
                left_out(
                    len(mine),
                    sum(len(pair.group.members) for pair in found),
                    "they did not end well, no accepted answer is known, or No-Filter or PDE was not carried out",
                ),
                older([pair.group for pair in found]),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _row(pair: Pair) -> Row:
    row: Row = {"case": pair.label}
    for key in VARIANTS:
        answers = list(pair.treatments.get(key, {}).values())
        row |= mean(key, [one.scores[METRIC] for one in answers], [one.source for one in answers])
    weak = (pair.accuracy("nf") or 0.0) < Thresholds().tau_nf
    change = beside(pair.treatments["pde"], pair.treatments["nf"], METRIC)
    return {**row, **change, "kind": WEAK if weak else STRONG, "n": len(pair.treatments["pde"])}


def _mean(kind: str, rows: Sequence[Row]) -> Row:
    """The plain mean over the pairs of a kind, as in Table 15; empty below two pairs."""
    own = [row for row in rows if row["kind"] == kind]
    if len(own) < 2:
        return {}
    found: Row = {"case": f"mean of {len(own)}", "kind": kind}
    for key in (*VARIANTS, "em_change"):
        values = [float(value) for row in own if isinstance(value := row[key], int | float)]
        found[key] = fmean(values) if len(values) == len(own) else None
    return found | {"n": sum(int(row["n"] or 0) for row in own)}


def _trend(rows: Sequence[Row]) -> str:
    """Spearman's correlation of No-Filter with the gain, as under Table 16; empty below three pairs."""
    known = [(row["nf"], row["em_change"]) for row in rows]
    points = [(float(x), float(y)) for x, y in known if isinstance(x, int | float) and isinstance(y, int | float)]
    rho = spearman([x for x, _ in points], [y for _, y in points]) if len(points) > 2 else math.nan
    if math.isnan(rho):
        return ""
    return f"Over {len(points)} models and tasks No-Filter and the gain have Spearman's correlation {rho:.2f}."
