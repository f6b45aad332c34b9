"""Series of runs compared: accuracy, evidence, costs, and every entry beside the first one of its model.

Every interval is a 95% percentile bootstrap over the questions of the input (10,000 draws, seed 0). A question that was
asked with its evidence in several places is drawn whole, since its versions are no independent draws. Failed runs have
no answer: they are counted and left out of every mean, and differences take the questions that both entries answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdqa.benchmarks.placing import Placement
from mdqa.comparison.draws import Column, Draws, Interval, interval
from mdqa.comparison.observations import COSTS, Name, Series, arrays
from mdqa.scoring.answers import HEADLINE
from mdqa.statistics.clustered import cluster_numbers
from mdqa.statistics.effects import cohens_h
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import mcnemar

TESTED = ("em", "sub_em")
"""The metrics that know right and wrong only: for McNemar's test and Cohen's h."""

SHOWN_ERRORS = 3
"""Messages per kind of failure that a report repeats."""

Row = dict[str, Any]


def report(series: Sequence[Series]) -> dict[str, Any]:
    """The whole comparison, ready for JSON: ``entries`` over all questions, ``placements`` for each place of evidence.

    ``questions`` counts those of the input. See :func:`rows` for what an entry has.
    """
    entries = rows(series)
    placements = sorted({o.placement for one in series for o in one.observations}, key=_order)
    by_placement = []
    for placement in placements if len(placements) > 1 else ():
        parts = [part for one in series if (part := one.at(placement)).observations]
        by_placement.append({"placement": title(placement), **_place(placement), "entries": rows(parts)})
    tables = [part["entries"] for part in by_placement]
    _correct([entries])
    _correct(tables)
    _label([entries, *tables])
    return {
        "questions": len({o.source for one in series for o in one.observations}),
        "runs": sum(len(one.observations) for one in series),
        "intervals": "95% percentile bootstrap over questions, 10,000 draws, seed 0",
        "entries": entries,
        "placements": by_placement,
    }


def rows(series: Sequence[Series]) -> list[Row]:
    """One row per series.

    ``n`` runs are ok, ``failed`` are not. ``remembered`` ones were shortened by what the program remembered of earlier
    runs, so they count for no time and no computed or cached tokens. Answer metrics, ``stages`` (gold recall over all
    gold documents of a question, number of documents kept) and ``cost`` are means with intervals. From the second entry
    of a model on: ``difference`` (paired, this minus first), ``tests`` (McNemar's exact test; ``b`` runs are right here
    only, ``c`` in the first only), ``effect`` (Cohen's h of the shares over the common runs) and ``cost_ratio`` (ratio
    of means over the common runs).
    """
    observations = {o.question: o.source for one in series for o in one.observations}
    numbers = {question: number for number, question in enumerate(observations)}
    clusters = cluster_numbers(list(observations.values()))
    values = [arrays(one, numbers) for one in series]
    draws = Draws(clusters)
    firsts = _firsts(series)
    means = [{name: draws.mean(column) for name, column in own.items()} for own in values]
    pairs = [None if f is None else _Pair(draws, own, values[f]) for own, f in zip(values, firsts, strict=True)]
    draws.draw()
    found = []
    for one, own, pair, first in zip(series, means, pairs, firsts, strict=True):
        row = _own_row(one, own, draws)
        if pair is not None and first is not None:
            row |= {"first": series[first].settings["entry"], **pair.row(clusters)}
        found.append(row)
    return found


class _Pair:
    """An entry beside the first of its model: what is put down, and after the draws what came out."""

    def __init__(self, draws: Draws, mine: Mapping[Name, np.ndarray], theirs: Mapping[Name, np.ndarray]) -> None:
        self._draws = draws
        self._both = {
            name: (mine[name,], theirs[name,]) for name in (*HEADLINE, *COSTS) if _in_both(name, mine, theirs)
        }
        self._differences = {m: draws.mean(np.subtract(*self._both[m])) for m in HEADLINE if m in self._both}
        self._ratios = {name: draws.ratio(*self._both[name]) for name in COSTS if name in self._both}
        self._shares = {metric: self._common(metric) for metric in TESTED if metric in self._both}

    def _common(self, metric: str) -> tuple[Column, Column] | None:
        """The means of both over the questions that both answered."""
        mine, theirs = self._both[metric]
        gaps = mine + theirs
        columns = [self._draws.mean(np.where(np.isnan(gaps), np.nan, side)) for side in (mine, theirs)]
        return None if columns[0] is None or columns[1] is None else (columns[0], columns[1])

    def row(self, clusters: np.ndarray) -> Row:
        """The comparison's part of a row."""
        return {
            "difference": {metric: self._draws.interval(self._differences.get(metric)) for metric in HEADLINE},
            "tests": {metric: self._test(metric, clusters) for metric in TESTED},
            "effect": {metric: self._effect(metric) for metric in TESTED},
            "cost_ratio": {name: self._draws.interval(self._ratios.get(name)) for name in COSTS},
        }

    def _test(self, metric: str, clusters: np.ndarray) -> Row | None:
        if self._shares.get(metric) is None:
            return None
        mine, theirs = self._both[metric]
        common = ~np.isnan(mine + theirs)
        test = mcnemar(mine[common].tolist(), theirs[common].tolist(), clusters[common].tolist())
        return {"b": test.b, "c": test.c, "n": test.n, "p": test.p}

    def _effect(self, metric: str) -> Interval | None:
        shares = self._shares.get(metric)
        if shares is None:
            return None
        mine, theirs = shares
        drawn = cohens_h(self._draws.samples(mine), self._draws.samples(theirs))
        return interval(cohens_h(mine.value, theirs.value), drawn, mine.n)


def _in_both(name: str, mine: Mapping[Name, np.ndarray], theirs: Mapping[Name, np.ndarray]) -> bool:
    return (name,) in mine and (name,) in theirs


def _firsts(series: Sequence[Series]) -> list[int | None]:
    """Per series the place of its model's first one; None for that one itself."""
    first: dict[str, int] = {}
    places = [first.setdefault(one.group.model, number) for number, one in enumerate(series)]
    return [None if place == number else place for number, place in enumerate(places)]


def _own_row(one: Series, means: Mapping[Name, Column | None], draws: Draws) -> Row:
    failed = [o for o in one.observations if o.error is not None]
    done = [o for o in one.observations if o.error is None]
    seconds = [o.values["seconds",] for o in done if not o.remembered]
    stages = dict.fromkeys(name[1] for name in means if name[0] == "stage")
    return {
        "label": one.settings["entry"],
        **one.settings,
        "n": len(done),
        "failed": len(failed),
        "errors": _errors([o.error for o in failed if o.error is not None]),
        "without_answers": sum(not o.has_answers for o in done),
        "without_gold": sum(not o.has_gold for o in done),
        "remembered": sum(o.remembered for o in done),
        **{metric: draws.interval(means.get((metric,))) for metric in HEADLINE},
        "stages": {
            stage: {what: draws.interval(means.get(("stage", stage, what))) for what in ("gold_recall", "kept")}
            for stage in stages
        },
        "cost": {name: draws.interval(means.get((name,))) for name in COSTS},
        "median_seconds": float(np.median(seconds)) if seconds else None,
    }


def _errors(errors: Sequence[tuple[str, str]]) -> list[Row]:
    counts = Counter(kind for kind, _ in errors)
    return [
        {"type": kind, "n": n, "messages": list(dict.fromkeys(m for k, m in errors if k == kind))[:SHOWN_ERRORS]}
        for kind, n in counts.most_common()
    ]


def _correct(tables: Sequence[Sequence[Row]]) -> None:
    """Add ``p_holm`` to the tests of these tables: one family per metric."""
    for metric in TESTED:
        found = [row["tests"][metric] for table in tables for row in table if "tests" in row]
        tests = [test for test in found if test is not None]
        for test, adjusted in zip(tests, holm([test["p"] for test in tests]), strict=True):
            test["p_holm"] = adjusted


def _label(tables: Sequence[Sequence[Row]]) -> None:
    """Name the model in the labels where there are several."""
    if len({row["model"] for table in tables for row in table}) > 1:
        for table in tables:
            for row in table:
                row["label"] = f"{row['entry']} ({row['model']})"


def title(placement: Placement) -> str:
    """A placement in words."""
    parts = [f"gold at {placement.position}"] if placement.position is not None else []
    parts += [f"{placement.documents} documents"] if placement.documents is not None else []
    parts += [placement.setting.replace("_", " ")] if placement.setting != "given" else []
    return ", ".join(parts) or "as given"


def _place(placement: Placement) -> Row:
    return {"position": placement.position, "documents": placement.documents, "setting": placement.setting}


def _order(placement: Placement) -> tuple[str, int, int]:
    return placement.setting, placement.documents or 0, placement.position or 0
