"""Where the retrieval heads of the two stages look (Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdqa.records import RunResult, Stage
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.cafe.stored import HOW, METHOD, STAGES, heads_of
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.grouping import Group, finished, groups, left_out, older, sources
from mdqa.scoring.losses import own_stage

NEEDS = f"finished CAFE runs; make them with: {HOW} (a model that gives attention, and its profile)"

GOLD, BREADTH, TOGETHER = "gold documents", "documents it spreads over", "all heads"


def report(runs: Sequence[RunResult]) -> Report:
    """Mean share of a head's attention (beta, eq. 1) on each position of its stage's prompt, and of all its heads.

    ``gold documents``: the share that the marked evidence gets together. ``documents it spreads over``: the exponential
    of the shares' entropy, from 1 (one document gets everything) to their number (all get the same), which puts a
    number on what the paper says of the two stages: few documents in the first, broad in the second.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if any(_found(run, name) for name in STAGES)]
    made = groups(usable, only=("k1", "k2", "attending_rows", "doc_pool", "calibration"), pool=True)
    rows = [row for group in made for name in STAGES for row in _rows(group, name)]
    return Report(
        name="cafe_heads",
        title="Attention of CAFE's retrieval heads",
        source="CAFE, Figures 4 and 5.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="stage", title="Stage"),
            Column(key="head", title="Head"),
            Column(key="where", title="Document at"),
            Column(key="share", title="Share of attention", unit="%", digits=1),
            Column(key="breadth", title="Spreads over", unit="documents", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="grid", x="position", y="stage_head", series="share"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Positions are those of the stage's own prompt: as given in coarse filtering, the best document last "
                "in fine steering. Heads are named layer-head, from 0. Positions that only some questions have rest on "
                "fewer of them (n).",
                INTERVALS,
                left_out(len(mine), len(usable), "no share of a head is stored"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _found(run: RunResult, name: str) -> Stage | None:
    found = own_stage(run, name)
    return found if found is not None and found.documents and heads_of(found) else None


def _rows(group: Group, name: str) -> list[Row]:
    pairs = [(run, found) for run in group.runs.values() if (found := _found(run, name)) is not None]
    shares = [_shares(found) for _, found in pairs]
    rows: list[Row] = []
    for head in dict.fromkeys(head for each in shares for head in each):
        here = [(run, found, each[head]) for (run, found), each in zip(pairs, shares, strict=True) if head in each]
        common: Row = {
            "group": group.label,
            "stage": STAGES[name],
            "head": head,
            "stage_head": f"{STAGES[name]}, {head}",
        }
        for position in range(max(len(beta) for _, _, beta in here)):
            some = [(run, float(beta[position])) for run, _, beta in here if position < len(beta)]
            value = mean("share", [share for _, share in some], sources(run for run, _ in some))
            rows.append({**common, "where": str(position + 1), "position": position + 1, **value, "n": len(some)})
        marked = [(run, _on_gold(run, found, beta)) for run, found, beta in here if run.question.gold_ids]
        if marked:
            value = mean("share", [share for _, share in marked], sources(run for run, _ in marked))
            rows.append({**common, "where": GOLD, "position": None, **value, "n": len(marked)})
        spread = mean("breadth", [_breadth(beta) for _, _, beta in here], sources(run for run, _, _ in here))
        rows.append({**common, "where": BREADTH, "position": None, **spread, "n": len(here)})
    return rows


def _shares(found: Stage) -> dict[str, np.ndarray]:
    """Every head's shares and, where there are several heads, their mean."""
    heads = heads_of(found)
    together = np.mean(np.stack(list(heads.values())), axis=0)
    return {**heads, TOGETHER: together} if len(heads) > 1 else heads


def _on_gold(run: RunResult, found: Stage, beta: np.ndarray) -> float:
    gold = set(run.question.gold_ids)
    return float(sum(share for document, share in zip(found.documents, beta, strict=True) if document in gold))


def _breadth(beta: np.ndarray) -> float:
    some = beta[beta > 0]
    return float(np.exp(-(some * np.log(some)).sum()))
