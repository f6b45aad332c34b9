"""What the router decides and what its choice comes to (Table 2)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mdqa.methods.madara.router import TITLES
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS, Answers, answers_of, beside, correct
from mdqa.reports.grouping import Group, groups, left_out, older
from mdqa.reports.madara.stored import COMPARED, METHOD, METRIC, ROUTING, Pair, pairs

NEEDS = (
    "finished MADARA runs that the router decided (treatment=auto, with a profile) over questions with accepted "
    f"answers; with the other treatments beside it: {COMPARED}"
)

COMPONENTS = {"nf": "NF", "three_agent": "3-Agent", "cot": "CoT", "sda": "SDA"}
"""The component methods of Table 2."""

CLASSES = {"quality_ordered": "quality-ordered", "stochastic": "stochastic"}


def report(runs: Sequence[RunResult]) -> Report:
    """Per model and task: class and coupling of the scores, component methods, what the router chose and its gain.

    MADARA is the run's own answer. McNemar's exact test is on EM against No-Filter, with Holm's correction over all
    rows. Means over the models of a data set follow, as in the table.
    """
    found = [(pair, group) for pair in pairs(runs) for group in _routed(pair)]
    rows = [_row(pair, group, [g for _, g in found]) for pair, group in found]
    correct(rows, lambda row: None)
    means = [row for data in dict.fromkeys(row["data"] for row in rows) if (row := _mean(str(data), rows))]
    mine = [run for run in runs if run.method == METHOD]
    return Report(
        name="madara_routing",
        title="MADARA's routing and what it comes to",
        source="MADARA, Table 2.",
        columns=(
            Column(key="case", title="Model and task"),
            Column(key="class", title="Scores are"),
            Column(key="rho1", title="rho 1", digits=2),
            *(Column(key=key, title=title, unit="%", digits=1) for key, title in COMPONENTS.items()),
            Column(key="strategy", title="Chosen"),
            Column(key="own", title="MADARA", unit="%", digits=1),
            Column(key="em_change", title="MADARA minus NF", unit="%", digits=1),
            Column(key="b", title="Only MADARA right", digits=0),
            Column(key="c", title="Only NF right", digits=0),
            Column(key="p", title="p"),
            Column(key="p_holm", title="p (Holm)"),
            Column(key="n", title="n", digits=0),
        ),
        rows=(*rows, *means),
        chart=Chart(kind="bars", x="case", y="own", series="strategy", low="own_low", high="own_high"),
        n=sum(len(group.runs) for _, group in found),
        note=joined(
            (
                "Exact match after SQuAD's normalisation. p: McNemar's exact test against No-Filter over the questions "
                "that both answered, with Holm's correction over all rows.",
                INTERVALS,
                left_out(
                    len(mine),
                    sum(len(group.members) for _, group in found),
                    "they did not end well, no accepted answer is known, or the treatment was set by hand",
                ),
                older([group for _, group in found]),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _routed(pair: Pair) -> list[Group]:
    """The pair's runs that the router decided, by its own options."""
    routed = [run for run in pair.group.members if run.config.get("treatment") == "auto"]
    options = tuple(name for name in ROUTING if name not in ("treatment", "compare"))
    return groups(routed, only=options)


def _row(pair: Pair, group: Group, among: Sequence[Group]) -> Row:
    mine = answers_of(group)
    routing = [run.routing for run in group.runs.values() if run.routing is not None]
    chosen = dict.fromkeys(TITLES.get(each.treatment, each.treatment) for each in routing)
    classes = dict.fromkeys(CLASSES.get(each.model_class, each.model_class) for each in routing)
    coupling = {each.measures.get("rho1") for each in routing}
    row: Row = {"case": _label(pair, group, among), "data": pair.group.data, "class": ", ".join(filter(None, classes))}
    row["rho1"] = coupling.pop() if len(coupling) == 1 else None
    for key in COMPONENTS:
        row |= _mean_of(key, pair.treatments.get(key, {}))
    row |= {"strategy": ", ".join(chosen), **_mean_of("own", mine)}
    return {**row, **beside(mine, pair.treatments.get("nf"), METRIC), "n": len(mine)}


def _label(pair: Pair, group: Group, among: Sequence[Group]) -> str:
    """The pair, and the router's options where they tell its groups apart."""
    same = [other for other in among if (other.model, other.data) == (group.model, group.data)]
    return f"{pair.label}: {group.label}" if len(same) > 1 else pair.label


def _mean_of(key: str, answers: Answers) -> Row:
    given = list(answers.values())
    return mean(key, [one.scores[METRIC] for one in given], [one.source for one in given])


def _mean(data: str, rows: Sequence[Row]) -> Row:
    """The plain mean over the models of a data set; empty below two rows."""
    own = [row for row in rows if row["data"] == data]
    if len(own) < 2:
        return {}
    found: Row = {"case": f"mean of {len(own)}, {data or 'unnamed data'}"}
    for key in (*COMPONENTS, "own", "em_change"):
        values = [float(value) for row in own if isinstance(value := row[key], int | float)]
        found[key] = fmean(values) if len(values) == len(own) else None
    return found | {"n": sum(int(row["n"] or 0) for row in own)}
