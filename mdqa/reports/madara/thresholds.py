"""What the router's thresholds do (Tables 8 and 9, Appendix D)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.methods.madara.deciding import measured
from mdqa.methods.madara.router import TITLES, Thresholds, treatment_for
from mdqa.methods.madara.sensitivity import RHO1_VALUES, TAU_NF_VALUES, Cell, coupling_sweep, sweep
from mdqa.records import Profile, RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.grouping import left_out
from mdqa.reports.madara.coupling import label, usable_profiles
from mdqa.reports.madara.stored import CALIBRATED, COMPARED, HOW, METHOD, METRIC, Pair, pairs

COUPLING_NEEDS = (
    "finished MADARA runs that compared the 3-Agent Baseline, CoT and SDA over questions with accepted answers "
    f"({COMPARED}), with a profile, which has the correlations"
)
NF_NEEDS = (
    f"calibration profiles of MADARA with No-Filter accuracy (--profile NAME or FILE.json; {CALIBRATED}), or finished "
    f"No-Filter runs over questions with accepted answers ({HOW} --set treatment=nf)"
)


def coupling(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """The threshold of rho 1 moved: how many go to CoT, how many decisions are the best one, mean distance to it.

    As :func:`mdqa.methods.madara.sensitivity.coupling_sweep`: CoT or the 3-Agent Baseline for quality-ordered scores,
    SDA for stochastic ones, No-Filter accuracy left aside.
    """
    found = [(pair, pair.cell(profiles)) for pair in pairs(runs)]
    known = [
        (pair, cell) for pair, cell in found if cell.rho is not None and {"three_agent", "cot", "sda"} <= set(cell.em)
    ]
    cells = [cell for _, cell in known]
    rows: list[Row] = [
        {
            "threshold": outcome.value,
            "to_cot": len(outcome.to_cot),
            "which": ", ".join(outcome.to_cot) or None,
            "matches": outcome.matches,
            "gap": outcome.gap,
            "n": outcome.scored,
        }
        for outcome in (coupling_sweep(cells, RHO1_VALUES) if cells else ())
    ]
    mine = [run for run in runs if run.method == METHOD]
    used = sum(len(pair.group.runs) for pair, _ in known)
    return Report(
        name="madara_coupling_thresholds",
        title="Sensitivity to the threshold of coupling",
        source="MADARA, Table 8.",
        columns=(
            Column(key="threshold", title="Threshold of rho 1", digits=1),
            Column(key="to_cot", title="To CoT", digits=0),
            Column(key="which", title="Which"),
            Column(key="matches", title="Best decisions", digits=0),
            Column(key="gap", title="Mean distance to the best", unit="%", digits=2),
            Column(key="n", title="of", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="lines", x="threshold", y="gap"),
        n=used,
        note=joined(
            (
                "A case is a model and a task. The best is that of CoT and the 3-Agent Baseline on these very "
                "questions (quality-ordered scores), or SDA (stochastic), as the table's numbers suggest; distances "
                "are differences of EM in points. The paper's own cases: python -m mdqa route --published --sweep.",
                left_out(len(mine), used, "a treatment or the correlations are not known, or a newer run has it"),
            )
        ),
        needs="" if rows else COUPLING_NEEDS,
    )


def no_filter(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """No-Filter accuracy of every profile and of stored runs beside the threshold that sends a pair to PDE (Table 9).

    ``changed``: how many of the thresholds of Appendix D.2 (15% to 45%) decide otherwise than the default does; only
    where the correlations are known.
    """
    rows = [row for profile in usable_profiles(profiles) if (row := _of_profile(profile))]
    found = [pair for pair in pairs(runs) if "nf" in pair.treatments]
    rows += [_of_runs(pair, profiles) for pair in found]
    bar = Thresholds().tau_nf
    return Report(
        name="madara_no_filter",
        title="No-Filter accuracy and the routing threshold",
        source="MADARA, Table 9 and Appendix D.2.",
        columns=(
            Column(key="case", title="Model and task"),
            Column(key="origin", title="From"),
            Column(key="nf", title="No-Filter EM", unit="%", digits=1),
            Column(key="tau", title="Threshold", unit="%", digits=0),
            Column(key="margin", title="Margin", unit="%", digits=1),
            Column(key="treatment", title="The router says"),
            Column(key="changed", title="Thresholds that change it", digits=0),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="case", y="nf", series="origin", low="nf_low", high="nf_high"),
        n=sum(len(pair.group.runs) for pair in found),
        note=joined(
            (
                f"Below {100 * bar:g}% the router reads documents alone (PDE). Appendix D.2 tries "
                f"{len(TAU_NF_VALUES)} thresholds from {100 * TAU_NF_VALUES[0]:g}% to {100 * TAU_NF_VALUES[-1]:g}%. "
                "Intervals are 95% bootstrap intervals over questions: where one holds the threshold, more questions "
                "may change the decision.",
                _widest([float(value) for row in rows if isinstance(value := row["nf"], int | float)]),
            )
        ),
        needs="" if rows else NF_NEEDS,
    )


def _of_profile(profile: Profile) -> Row:
    found = measured(profile)
    if found.nf is None:
        return {}
    n = int((profile.values.get("nf") or {}).get("n", 0))
    right = round(found.nf * n)
    interval: Row = mean("nf", [1.0] * right + [0.0] * (n - right)) if n else {}
    decided = _decided(Cell(label(profile), found.rho, found.nf))
    return {**decided, **interval, "nf": found.nf, "origin": "profile", "n": n or None}


def _of_runs(pair: Pair, profiles: Sequence[Profile]) -> Row:
    answers = list(pair.treatments["nf"].values())
    interval = mean("nf", [one.scores[METRIC] for one in answers], [one.source for one in answers])
    return {**_decided(pair.cell(profiles)), **interval, "origin": "runs", "n": len(answers)}


def _decided(cell: Cell) -> Row:
    bars = Thresholds()
    treatment = treatment_for(cell.rho, cell.nf, bars)
    outcomes = sweep([cell], "tau_nf", TAU_NF_VALUES, bars)
    known = cell.rho is not None
    return {
        "case": cell.name,
        "tau": bars.tau_nf,
        "margin": None if cell.nf is None else cell.nf - bars.tau_nf,
        "treatment": TITLES[treatment] if treatment is not None else "needs the probe",
        "changed": sum(bool(outcome.changed) for outcome in outcomes) if known else None,
    }


def _widest(values: Sequence[float]) -> str:
    """Which thresholds would decide alike: the gap around the default (Appendix D.2); empty without both sides."""
    bar = Thresholds().tau_nf
    below, above = [v for v in values if v < bar], [v for v in values if v >= bar]
    if not below or not above:
        return ""
    return (
        f"Any threshold above {100 * max(below):.1f}% and up to {100 * min(above):.1f}% decides as {100 * bar:g}% does."
    )
