"""The papers' own methods against each baseline by paired bootstrap (DuQUAD, Table 7; MADARA, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, change, joined, mean
from mdqa.reports.common.answers import BESIDE, answers_of, by_place, correct, place_of, scored, titled
from mdqa.reports.grouping import Group, groups, left_out, older
from mdqa.statistics.significance import bootstrap_p

NEEDS = (
    "finished runs of DuQUAD, MADARA or CAFE and of another method over the same questions with accepted answers; make "
    "them with: python -m mdqa evaluate --methods direct,duquad --output DIR (or answer, once per method)"
)

PROPOSED = ("duquad", "madara", "cafe")
METRIC = "sub_em"
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def report(runs: Sequence[RunResult]) -> Report:
    """Accuracy (SubEM) of both, their paired difference with its 95% interval, and its two-sided p-value.

    10,000 resamples of the questions that both answered, as in Table 7. ``p_holm`` is Holm's correction over all rows
    of a model and data set (the paper gives none); the stars go by ``p``, as the paper's do.
    """
    usable = scored(runs)
    made = groups(usable, ignore=BESIDE)
    rows = [row for same in by_place(made) for row in _rows(same)]
    correct(rows)
    used = {run for row in rows for run in str(row["used"]).split()}
    for row in rows:
        del row["used"]
    return Report(
        name="paired_bootstrap",
        title="Against each baseline: paired bootstrap",
        source="DuQUAD, Table 7; MADARA, Table 6.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            Column(key="mine", title="Its SubEM", unit="%", digits=1),
            Column(key="baseline", title="Baseline"),
            Column(key="theirs", title="Baseline's SubEM", unit="%", digits=1),
            Column(key="difference", title="Difference", unit="%", digits=1),
            Column(key="p", title="p", digits=4),
            Column(key="stars", title="Significance"),
            Column(key="p_holm", title="p (Holm)", digits=4),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(
            kind="bars", x="baseline", y="difference", series="variant", low="difference_low", high="difference_high"
        ),
        n=len(used),
        note=joined(
            (
                "Only questions that both answered count, so a method's SubEM may differ between rows. p comes from "
                "the same 10,000 resamples as the interval and is never below 2/10,001. Stars as in the paper, on the "
                "uncorrected p: * below 0.05, ** below 0.01, *** below 0.001.",
                left_out(len(runs), len(usable), "they did not end well, or no accepted answer is known"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(same: Sequence[Group]) -> list[Row]:
    return [
        row
        for mine in same
        if mine.method in PROPOSED
        for theirs in same
        if _against(mine.method, theirs.method) and (row := _row(mine, theirs))
    ]


def _against(mine: str, theirs: str) -> bool:
    """Another method, and of two proposed ones only the earlier against the later: each pair is tested once."""
    return theirs not in PROPOSED or PROPOSED.index(mine) < PROPOSED.index(theirs)


def _row(one: Group, two: Group) -> Row:
    mine, theirs = answers_of(one), answers_of(two)
    common = [question for question in mine if question in theirs]
    if not common:
        return {}
    names = [mine[question].source for question in common]
    ours, others = ([side[question].scores[METRIC] for question in common] for side in (mine, theirs))
    p = bootstrap_p([a - b for a, b in zip(ours, others, strict=True)], names)
    return {
        "group": place_of(one),
        "variant": titled(one),
        "baseline": titled(two),
        **mean("mine", ours, names),
        **mean("theirs", others, names),
        **change("difference", ours, others, names),
        "p": p,
        "stars": next((stars for level, stars in STARS if p < level), ""),
        "n": len(common),
        "used": " ".join(side[question].run.id for side in (mine, theirs) for question in common),
    }
