"""How often each signal puts the gold document among the first six, alone, in pairs and fused (Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from mdqa.methods.duquad.fusion import Scores, fuse, normalise, rank
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, change, joined, mean
from mdqa.reports.duquad.stored import (
    HOW,
    METHOD,
    SIGNALS,
    TITLES,
    TOP_K,
    gold_first,
    paper_weights,
    signals,
)
from mdqa.reports.grouping import Group, finished, groups, left_out, older, position_of, sources
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.scoring.evidence import gold_recall_at
from mdqa.scoring.losses import own_stage

NEEDS = f"finished DuQUAD runs over questions whose gold documents are marked; make them with: {HOW}"

FUSED, BM25, CHANCE = "Fused (SFS)", "BM25", "Random order (expected)"
EVERYWHERE = "all"

Recall = Callable[[RunResult], float | None]
"""Gold recall of a run's documents as one ranker orders them; None where the ranker has nothing to say."""


def report(runs: Sequence[RunResult], k: int = TOP_K) -> Report:
    """Gold recall at ``k`` by signal, pair, fused and BM25, overall and by the gold document's position.

    Signals come from the stored runs, whatever weights these had; pairs and the whole are fused with the weights of the
    paper (Table 6) after the run's own normalisation. ``Sim`` is the ranking of the sentence encoder alone. Positions
    are told apart for questions with exactly one gold document. ``difference`` is fused minus this ranker, over the
    questions that both rank.
    """
    mine = finished(runs, METHOD)
    usable = [run for run in mine if run.question.gold_ids and signals(run)]
    made = groups(usable, only=("contrast", "normalisation"), pool=True, prefer=lambda run: len(signals(run)))
    rows = [row for group in made for row in _rows(group, k)]
    places = {row["position"] for row in rows if row["position"] is not None}
    by_place = len(places) > 1
    return Report(
        name="signals",
        title=f"Gold recall at {k} by signal and fused",
        source="DuQUAD, Figure 3.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="where", title="Gold at", digits=0),
            Column(key="ranker", title="Ranked by"),
            Column(key="recall", title=f"Recall@{k}", unit="%", digits=1),
            Column(key="difference", title="Fused minus it", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(
            kind="lines" if by_place else "bars",
            x="position" if by_place else "bar",
            y="recall",
            series="ranker" if by_place else "group",
            low="recall_low",
            high="recall_high",
        ),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Sim is the sentence encoder alone. Pairs and the whole use the paper's weights (0.5, 1.0, 0.5). BM25 "
                "takes documents of equal score in random order. "
                "Differences are paired over the same questions; an interval without 0 is a difference at the 95% "
                "level.",
                gold_first(usable),
                left_out(len(mine), len(usable), "no gold document is marked, or no signal was measured"),
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def rankers(k: int) -> dict[str, Recall]:
    """Every way to rank, by its name in the figure."""
    weights = paper_weights()
    found: dict[str, Recall] = {TITLES[name]: _by_signals({name: 1.0}, k) for name in SIGNALS}
    for pair in combinations(SIGNALS, 2):
        found[" + ".join(TITLES[name] for name in pair)] = _by_signals({name: weights[name] for name in pair}, k)
    return {
        **found,
        FUSED: _by_signals(weights, k),
        BM25: lambda run: _bm25(run, k),
        CHANCE: lambda run: _chance(run, k),
    }


def normalised(run: RunResult) -> dict[str, Scores]:
    """The measured signals on one scale, as the run's own option says."""
    kind = run.config.get("normalisation", "z_score")
    return {name: normalise(scores, kind) for name, scores in signals(run).items()}


def fused_recall(run: RunResult, scaled: Mapping[str, Scores], weights: Mapping[str, float], k: int) -> float | None:
    """Gold recall at ``k`` of normalised signals fused with these weights; None where one of them is missing."""
    found = own_stage(run, "structural_fusion")
    if found is None or not set(weights) <= set(scaled):
        return None
    order = rank(found.documents, fuse({name: scaled[name] for name in weights}, weights))
    return gold_recall_at(order, run.question.gold_ids, k)


def _by_signals(weights: Mapping[str, float], k: int) -> Recall:
    return lambda run: fused_recall(run, normalised(run), weights, k)


def _bm25(run: RunResult, k: int) -> float | None:
    """Documents of equal score, as all without a word of the question are, count as if in random order."""
    gold, documents = set(run.question.gold_ids), run.question.documents
    scores = bm25_scores(run.question.question, documents)
    found = 0.0
    for document, score in zip(documents, scores, strict=True):
        if document.id in gold:
            above, level = sum(other > score for other in scores), scores.count(score)
            found += min(max(k - above, 0) / level, 1.0)
    return found / len(gold) if gold else None


def _chance(run: RunResult, k: int) -> float | None:
    """A random order has every document among the first k of n with the chance k / n."""
    return min(k / len(run.question.documents), 1.0) if run.question.gold_ids else None


def _rows(group: Group, k: int) -> list[Row]:
    ways = rankers(k)
    runs = list(group.runs.values())
    found = {name: [way(run) for run in runs] for name, way in ways.items()}
    positions = [position_of(run) for run in runs]
    places = sorted({place for place in positions if place is not None})
    rows = []
    for place in [None, *(places if len(places) > 1 else ())]:
        here = [i for i, position in enumerate(positions) if place is None or position == place]
        for name, recalls in found.items():
            if some := [i for i in here if recalls[i] is not None]:
                rows.append(
                    {
                        "group": group.label,
                        "where": EVERYWHERE if place is None else str(place),
                        "position": place,
                        "ranker": name,
                        "bar": name if place is None else None,
                        **mean("recall", [recalls[i] or 0.0 for i in some], sources(runs[i] for i in some)),
                        **_difference(name, recalls, found[FUSED], some, runs),
                        "n": len(some),
                    }
                )
    return rows


def _difference(
    name: str,
    recalls: Sequence[float | None],
    fused: Sequence[float | None],
    some: Sequence[int],
    runs: Sequence[RunResult],
) -> Row:
    """Fused minus this ranker over the questions that both rank; nothing for the fused ranking itself."""
    both = [i for i in some if fused[i] is not None and name != FUSED]
    ours, theirs = ([values[i] or 0.0 for i in both] for values in (fused, recalls))
    return change("difference", ours, theirs, sources(runs[i] for i in both))
