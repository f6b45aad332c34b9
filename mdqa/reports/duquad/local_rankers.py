"""Other ways to choose the Local Agent's documents (Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.records import RunResult
from mdqa.reports.base import Column, Report
from mdqa.reports.common.settings import Study, by_setting
from mdqa.reports.duquad.stored import HOW, METHOD, ranking
from mdqa.scoring.evidence import gold_recall_at

TITLES = {"sfs": "Structural Fusion Score", "bm25": "BM25", "dense": "Dense", "rrf": "BM25 and dense (RRF)"}


def report(runs: Sequence[RunResult]) -> Report:
    """Accuracy of DuQUAD by what selects the Local Agent's documents, and the gold documents among those it reads."""
    return by_setting(
        runs,
        Study(
            name="local_rankers",
            title="DuQUAD by how the Local Agent's documents are chosen",
            source="DuQUAD, Figure 4.",
            needs="finished DuQUAD runs over the same questions with two local rankers or more; make them with: "
            f"{HOW} --set local_ranker=bm25 (also dense, rrf, sfs)",
            method=METHOD,
            options=("local_ranker",),
            words=lambda config: TITLES.get(str(config["local_ranker"]), str(config["local_ranker"])),
            more={"recall": (Column(key="recall", title="Gold recall@k", unit="%", digits=1), _recall)},
            note="Accuracy is SubEM. Gold recall@k is that of the documents which the Local Agent reads.",
        ),
    )


def _recall(run: RunResult) -> float | None:
    order, k = ranking(run), run.config.get("k")
    return gold_recall_at(order, run.question.gold_ids, k) if order is not None and isinstance(k, int) else None
