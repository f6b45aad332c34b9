"""What every treatment comes to beside No-Filter (Tables 6 and 14; with F1, Appendix G.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.methods.madara.report import BASELINE
from mdqa.methods.madara.report import report as treatment_rows
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined
from mdqa.reports.common.answers import INTERVALS, MEASURES, beside, columns_beside, correct
from mdqa.reports.grouping import left_out, older
from mdqa.reports.madara.stored import COMPARED, HOW, METHOD, METRIC, Pair, outcomes, pairs

NEEDS = (
    "finished MADARA runs over questions with accepted answers that compared their treatments; make them with: "
    f"{COMPARED} (or runs with No-Filter and another treatment over the same questions: {HOW} --set treatment=nf)"
)

PLACES = ("selection", "extraction", "vote")


def report(runs: Sequence[RunResult]) -> Report:
    """EM, F1 and SubEM of every treatment, and against No-Filter: difference, McNemar's exact test, odds ratio, losses.

    Holm's correction as in Appendix G.3: all tests of scoring treatments are one family, those of isolation another,
    over all models and tasks of the report. ``lost_*``: of the questions whose evidence is marked, the share that a
    vote got wrong at that place (see :mod:`mdqa.methods.madara.report`).
    """
    found = [pair for pair in pairs(runs) if len(pair.treatments) > 1]
    rows = [row for pair in found for row in _rows(pair)]
    correct(rows, lambda row: row["family"])
    mine = [run for run in runs if run.method == METHOD]
    return Report(
        name="madara_treatments",
        title="MADARA's treatments against No-Filter",
        source="MADARA, Tables 6 and 14, Appendix G.1.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Treatment"),
            *sorted(MEASURES, key=lambda column: ("em", "f1", "sub_em").index(column.key)),
            *columns_beside(METRIC, "No-Filter's"),
            Column(key="odds", title="b : c", digits=1),
            *(Column(key=f"lost_{place}", title=f"Lost in {place}", unit="%", digits=0) for place in PLACES),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="variant", y="em", series="group", low="em_low", high="em_high"),
        n=len({run.id for pair in found for run in pair.group.runs.values()}),
        note=joined(
            (
                "EM after SQuAD's normalisation. p: McNemar's exact test on EM against No-Filter over the questions "
                "that both answered, with Holm's correction over all scoring treatments, and over all isolating ones, "
                "of this report. b : c is the odds ratio of the discordant pairs. The last rows are no treatments: "
                "what the best single reading of a gold document, or of any, would give.",
                INTERVALS,
                left_out(
                    len(mine),
                    sum(len(pair.group.members) for pair in found),
                    "they did not end well, no accepted answer is known, or only one treatment was carried out",
                ),
                older([pair.group for pair in found]),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(pair: Pair) -> list[Row]:
    baseline = pair.treatments.get(BASELINE)
    rows = []
    for found in treatment_rows(outcomes(pair), METRIC):
        key = found.get("treatment")
        row: Row = {"group": pair.label, "variant": found["title"], "key": key or found["bound"]}
        row["family"] = str(found["mcnemar"]["family"]) if "mcnemar" in found else None
        for metric in ("em", "f1", "sub_em"):
            row |= _interval(metric, found[metric])
        mine = pair.treatments.get(key or "", {})
        row |= beside(mine, baseline if key not in (None, BASELINE) else None, METRIC)
        b, c = row["b"], row["c"]
        row["odds"] = b / c if isinstance(b, int) and isinstance(c, int) and c else None
        losses = found.get("losses") or {}
        row |= {f"lost_{place}": losses.get(place) for place in PLACES}
        rows.append(row | {"n": found["n"]})
    return rows


def _interval(key: str, found: Mapping[str, Any]) -> Row:
    return {key: found["mean"], f"{key}_low": found["low"], f"{key}_high": found["high"]}
