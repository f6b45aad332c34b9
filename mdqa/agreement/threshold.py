"""DocScore's threshold from the documents that people marked as evidence, before and after on held-out questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mdqa.agreement.learning import marked_questions
from mdqa.agreement.ratings import Consensus
from mdqa.benchmarks.base import in_split
from mdqa.methods.duquad.evidence import prune
from mdqa.records import RunResult
from mdqa.reports.base import Column, Report, Row, joined, mean, ratio
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import METHOD, ranking
from mdqa.reports.grouping import Group, finished, groups, older, same_question, sources
from mdqa.scoring.losses import own_stage
from mdqa.statistics.clustered import cluster_numbers, cluster_sums, percentiles, resampled_ratios

NEEDS = (
    "DuQUAD runs with DocScores over questions for which people marked evidence, some in the calibration half and some "
    "in the held-out half"
)

GRID = tuple(round(0.01 * step, 2) for step in range(101))
"""The thresholds that are tried."""

CALIBRATION, HELD_OUT = "calibration", "held-out"


@dataclass(frozen=True)
class Scored:
    """A run's candidates with their DocScores, and which of them people marked."""

    run: RunResult
    marked: frozenset[str]
    threshold: float

    def kept(self, threshold: float) -> tuple[str, ...]:
        """What the method keeps at this threshold, its fallback to one document included."""
        found = own_stage(self.run, "doc_score")
        assert found is not None  # see _scored
        order = ranking(self.run) or self.run.question.document_ids
        best = next((document for document in order if document in found.documents), found.documents[0])
        return prune(found.documents, found.scores["DocScore"], threshold, best).kept

    @property
    def candidates(self) -> tuple[str, ...]:
        """The documents with a DocScore or a reason why there is none."""
        found = own_stage(self.run, "doc_score")
        return found.documents if found is not None else ()


def report(runs: Mapping[str, RunResult], labels: Iterable[Consensus]) -> Report:
    """The threshold with the best balanced accuracy on the calibration half, beside the one that the runs had.

    Balanced accuracy is the mean of two shares over candidates: of those that people marked, how many are kept, and of
    the others, how many are dropped. The halves are those of :func:`~mdqa.benchmarks.base.in_split`. Of equally good
    thresholds the one nearest to the present one is taken.
    """
    marked = {same_question(item): item for item in marked_questions(runs, labels).questions}
    mine = [run for run in finished(list(runs.values()), METHOD) if same_question(run.question) in marked]
    scored = {run.id: found for run in mine if (found := _scored(run, marked[same_question(run.question)].gold_ids))}
    made = groups([run for run in mine if run.id in scored], ignore=("threshold", "compare_ablations"))
    rows = [row for group in made for row in _rows(group, scored)]
    return Report(
        name="threshold_by_people",
        title="DocScore's threshold from people's evidence marks",
        source="DuQUAD, Table 5, with the documents that people marked as the reference.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="half", title="Half"),
            Column(key="setting", title="Threshold"),
            Column(key="balanced", title="Balanced accuracy", unit="%", digits=1),
            Column(key="marked", title="Marked documents kept", unit="%", digits=1),
            Column(key="others", title="Others dropped", unit="%", digits=1),
            Column(key="kept", title="Documents kept", digits=2),
            Column(key="n", title="Questions", digits=0),
        ),
        rows=tuple(rows),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "Estimated on the calibration half only; the held-out half says what it is worth. Marked: by more than "
                "half of the people who marked any document of the question. Only candidates have a DocScore. Set it "
                "with --set threshold=… or in the method's form.",
                INTERVALS,
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def best_threshold(scored: Sequence[Scored], now: float) -> float | None:
    """The best of :data:`GRID` and ``now``; None without both marked and other candidates."""
    found = {value: _balanced(scored, value) for value in (now, *GRID)}
    known = {value: one for value, one in found.items() if one is not None}
    return min(known, key=lambda value: (-round(known[value], 9), abs(value - now))) if known else None


def _scored(run: RunResult, gold: Sequence[str]) -> Scored | None:
    found = own_stage(run, "doc_score")
    if found is None or not found.documents or "DocScore" not in found.scores or "DocScore" not in found.thresholds:
        return None
    return Scored(run, frozenset(gold), found.thresholds["DocScore"])


def _shares(scored: Sequence[Scored], threshold: float) -> np.ndarray:
    """(questions, 4): marked candidates kept, marked candidates, others dropped, others."""
    rows = []
    for one in scored:
        kept, candidates = set(one.kept(threshold)), one.candidates
        hit = [document in kept for document in candidates if document in one.marked]
        miss = [document not in kept for document in candidates if document not in one.marked]
        rows.append([sum(hit), len(hit), sum(miss), len(miss)])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 4)


def _balanced(scored: Sequence[Scored], threshold: float) -> float | None:
    total = _shares(scored, threshold).sum(axis=0)
    return float((total[0] / total[1] + total[2] / total[3]) / 2) if total[1] and total[3] else None


def _rows(group: Group, by_run: Mapping[str, Scored]) -> list[Row]:
    every = [by_run[run.id] for run in group.runs.values()]
    inside = {item.id for item in in_split([one.run.question for one in every], CALIBRATION)}
    halves = {
        CALIBRATION: [one for one in every if one.run.question.id in inside],
        HELD_OUT: [one for one in every if one.run.question.id not in inside],
    }
    now = sorted(one.threshold for one in every)[len(every) // 2]
    best = best_threshold(halves[CALIBRATION], now)
    if best is None or not halves[HELD_OUT]:
        return []
    rows = []
    for half, scored in halves.items():
        for value, word in ((now, "before"), (best, "after")):
            rows.append(_row(group, half, scored, f"{value:.2f}, {word}", value))
    return rows


def _row(group: Group, half: str, scored: Sequence[Scored], setting: str, threshold: float) -> Row:
    shares = _shares(scored, threshold)
    names = sources([one.run for one in scored])
    kept = [float(len(one.kept(threshold))) for one in scored]
    return {
        "group": group.label,
        "half": half,
        "setting": setting,
        "threshold": threshold,
        **_balanced_row(shares, names),
        **ratio("marked", shares[:, 0].tolist(), shares[:, 1].tolist(), names),
        **ratio("others", shares[:, 2].tolist(), shares[:, 3].tolist(), names),
        **mean("kept", kept, names),
        "n": len(scored),
    }


def _balanced_row(shares: np.ndarray, names: Sequence[str]) -> Row:
    """Balanced accuracy with the interval of both shares drawn together, questions whole."""
    sums = cluster_sums(shares, cluster_numbers(names))
    total = sums.sum(axis=0)
    if not (total[1] and total[3]):
        return {"balanced": None, "balanced_low": None, "balanced_high": None}
    draws = resampled_ratios(sums[:, (0, 2)], sums[:, (1, 3)]).mean(axis=1)
    low, high = percentiles(draws) or (None, None)
    value = float((total[0] / total[1] + total[2] / total[3]) / 2)
    return {"balanced": value, "balanced_low": low, "balanced_high": high}
