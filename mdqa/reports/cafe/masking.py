"""Which attention the answers rest on (Table 2): the results of ``python -m mdqa masking`` as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.methods.cafe.masking import MODES, NO_MASK
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, change, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.grouping import left_out

NEEDS = (
    "the results of the masking probes, which are no runs: python -m mdqa masking --input FILE --output masking.jsonl, "
    "then python -m mdqa report cafe_masking --masking masking.jsonl (a model that gives and takes attention)"
)


def report(runs: Sequence[RunResult], masking: Sequence[Mapping[str, Any]] = ()) -> Report:
    """SubEM under every mask of Table 2, and the change against no mask over the same questions.

    ``masking``: lines of that command. ``runs`` are not used: no method masks.
    """
    usable = [line for line in masking if line.get("status") == "ok" and NO_MASK in line.get("modes", {})]
    made: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for line in usable:
        key = (str(line.get("model", "")), str(line.get("config", {}).get("rows", "")))
        made.setdefault(key, {})[str(line["id"])] = line["modes"]
    rows = [row for (model, masked), lines in made.items() for row in _rows(model, masked, list(lines.values()))]
    return Report(
        name="cafe_masking",
        title="Accuracy with attention masked",
        source="CAFE, Table 2.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="mask", title="Masked"),
            Column(key="sub_em", title="SubEM", unit="%", digits=1),
            Column(key="difference", title="Minus no mask", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="mask", y="sub_em", series="group", low="sub_em_low", high="sub_em_high"),
        n=sum(len(lines) for lines in made.values()),
        note=joined(
            (
                "Modes with a second piece of evidence rest on the questions that have one. Differences are paired.",
                INTERVALS,
                left_out(len(masking), len(usable), "they failed"),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(model: str, masked: str, lines: Sequence[Mapping[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for mode, words in MODES.items():
        pairs = [(float(line[mode]["sub_em"]), float(line[NO_MASK]["sub_em"])) for line in lines if mode in line]
        if pairs:
            own = [one for one, _ in pairs] if mode != NO_MASK else []
            rows.append(
                {
                    "group": f"{model}, rows {masked}",
                    "mask": words,
                    **mean("sub_em", [one for one, _ in pairs]),
                    **change("difference", own, [other for _, other in pairs][: len(own)]),
                    "n": len(pairs),
                }
            )
    return rows
