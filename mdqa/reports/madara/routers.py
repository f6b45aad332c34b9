"""The router by coupling against the router by score entropy (Tables 3 and 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.methods.madara.router import Rho, Thresholds, model_class
from mdqa.records import Profile, RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.grouping import left_out
from mdqa.reports.madara.stored import CALIBRATED, COMPARED, METHOD, pairs, title

NEEDS = (
    "finished MADARA runs that compared No-Filter, the 3-Agent Baseline, CoT and SDA over questions with accepted "
    f"answers ({COMPARED}), and the profile of each of their models, which has the grades' entropy: --profile NAME "
    f"(make one with: {CALIBRATED})"
)

COMPARED_TREATMENTS = ("nf", "three_agent", "cot", "sda")
ORACLE = ("three_agent", "cot", "sda", "sda_cot")
"""What the oracle of Table 12 chooses from: the scoring treatments without ATF, as its column shows (our reading)."""

RSC, ENTROPY = "RSC", "score entropy"

_EQUAL = 1e-9

MEASURES = {
    "beats_nf": "Beats the NF baseline",
    "beats_three_agent": "Beats the 3-Agent baseline",
    "matches_oracle": "Matches the oracle",
}
"""The rows of Table 3."""


@dataclass(frozen=True)
class Case:
    """A model and task as in Table 12. ``entropy``: normalised, 0 to 1. ``em``: treatment -> exact match, 0 to 1."""

    name: str
    rho: Rho
    entropy: float
    em: Mapping[str, float]

    @property
    def choices(self) -> dict[str, str]:
        """What each router recommends in the table's two-way setup: CoT or SDA."""
        by_rsc = "cot" if model_class(self.rho) == "quality_ordered" else "sda"
        return {RSC: by_rsc, ENTROPY: "sda" if self.entropy >= Thresholds().entropy_threshold else "cot"}

    @property
    def oracle(self) -> str:
        """The best treatment; of equal ones the first in the paper's order."""
        return max((key for key in ORACLE if key in self.em), key=lambda key: self.em[key])

    def outcomes(self, router: str) -> dict[str, bool]:
        """Whether a router's choice passes each of the three tests of Table 3."""
        chosen = self.em[self.choices[router]]
        return {
            "beats_nf": chosen > self.em["nf"] + _EQUAL,
            "beats_three_agent": chosen > self.em["three_agent"] + _EQUAL,
            "matches_oracle": chosen >= self.em[self.oracle] - _EQUAL,
        }


def cases(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> tuple[list[Case], int]:
    """The models and tasks that have all of it, and the number of their runs."""
    found, used = [], 0
    for pair in pairs(runs):
        known = pair.known(profiles)
        if known is not None and known.entropy is not None and set(COMPARED_TREATMENTS) <= set(pair.treatments):
            found.append(Case(pair.label, known.rho, known.entropy, pair.em))
            used += len(pair.group.runs)
    return found, used


def report(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """Per model and task what each router recommends, what that comes to, and the best treatment (Table 12).

    Two-way as in the table: coupling sends quality-ordered scores to CoT and stochastic ones to SDA; entropy sends high
    entropy to SDA and low to CoT, from the threshold that is MADARA's option ``entropy_threshold`` by default (ours).
    """
    found, used = cases(runs, profiles)
    rows = [_row(case) for case in found]
    mine = [run for run in runs if run.method == METHOD]
    return Report(
        name="madara_routers",
        title="Routing by coupling and by entropy, case by case",
        source="MADARA, Table 12.",
        columns=(
            Column(key="case", title="Model and task"),
            Column(key="class", title="Scores are"),
            Column(key="entropy", title="Entropy", digits=2),
            Column(key="by_rsc", title="RSC says"),
            Column(key="by_entropy", title="Entropy says"),
            Column(key="nf", title="NF", unit="%", digits=1),
            Column(key="three_agent", title="3-Agent", unit="%", digits=1),
            Column(key="rsc", title="RSC's choice", unit="%", digits=1),
            Column(key="chosen_by_entropy", title="Entropy's choice", unit="%", digits=1),
            Column(key="oracle", title="Best"),
            Column(key="best", title="EM of the best", unit="%", digits=1),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="case", y="rsc"),
        n=used,
        note=joined(
            (
                _agreement(found),
                "EM after SQuAD's normalisation. The best is that of 3-Agent, CoT, SDA and SDA over CoT scores on "
                "these very questions, so it is too good to be reached.",
                left_out(
                    len(mine), used, "a treatment or the entropy of the grades is not known, or a newer run has it"
                ),
            )
        ),
        needs="" if rows else NEEDS,
    )


def summary(runs: Sequence[RunResult], profiles: Sequence[Profile] = ()) -> Report:
    """In how many cases each router beats No-Filter and the 3-Agent Baseline, and matches the best (Table 3)."""
    found, used = cases(runs, profiles)
    rows: list[Row] = []
    for measure, words in MEASURES.items() if found else ():
        for router in (ENTROPY, RSC):
            passed = [float(case.outcomes(router)[measure]) for case in found]
            row: Row = {"measure": words, "router": router, "count": int(sum(passed)), **mean("share", passed)}
            rows.append({**row, "n": len(found)})
    return Report(
        name="madara_router_accuracy",
        title="Routing by coupling against routing by entropy",
        source="MADARA, Table 3.",
        columns=(
            Column(key="measure", title="Measure"),
            Column(key="router", title="Router"),
            Column(key="count", title="Cases", digits=0),
            Column(key="share", title="Share", unit="%", digits=0),
            Column(key="n", title="of", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="measure", y="share", series="router", low="share_low", high="share_high"),
        n=used,
        note=joined(
            (
                _agreement(found),
                "A case is a model and a task; intervals draw cases, and few cases tell little. Case by case: report "
                "madara_routers.",
            )
        ),
        needs="" if rows else NEEDS,
    )


def _row(case: Case) -> Row:
    choices = case.choices
    return {
        "case": case.name,
        "class": model_class(case.rho).replace("_", "-"),
        "entropy": case.entropy,
        "by_rsc": title(choices[RSC]),
        "by_entropy": title(choices[ENTROPY]),
        "nf": case.em["nf"],
        "three_agent": case.em["three_agent"],
        "rsc": case.em[choices[RSC]],
        "chosen_by_entropy": case.em[choices[ENTROPY]],
        "oracle": title(case.oracle),
        "best": case.em[case.oracle],
    }


def _agreement(found: Sequence[Case]) -> str:
    same = sum(case.choices[RSC] == case.choices[ENTROPY] for case in found)
    return f"Both recommend the same in {same} of {len(found)} cases." if found else ""
