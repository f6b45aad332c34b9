"""What the reports of CAFE read off a stored run."""

from __future__ import annotations

import numpy as np

from mdqa.records import RunResult, Stage
from mdqa.scoring.evidence import gold_recall
from mdqa.scoring.losses import own_stage

METHOD = "cafe"
HOW = "python -m mdqa answer --method cafe"

STAGES = {"coarse_filtering": "Coarse filtering", "fine_steering": "Fine steering"}

_HEAD = "head "


def heads_of(found: Stage) -> dict[str, np.ndarray]:
    """Per head of a stage, the best one first, its share of each incoming document (beta, eq. 1), (D,).

    A stage that steers to sentences has none.
    """
    heads = {}
    for signal, scores in found.scores.items():
        if signal.startswith(_HEAD):
            values = [scores[document].value for document in found.documents]
            if None not in values:
                heads[signal.removeprefix(_HEAD)] = np.array(values, dtype=np.float64)
    return heads


def coarse_recall(run: RunResult) -> float | None:
    """Gold recall of what coarse filtering keeps; None without that stage or without gold marks."""
    found = own_stage(run, "coarse_filtering")
    return gold_recall(found.kept, run.question.gold_ids) if found is not None else None


def kept(run: RunResult) -> float | None:
    """How many documents coarse filtering keeps."""
    found = own_stage(run, "coarse_filtering")
    return float(len(found.kept)) if found is not None else None


def steered_recall(run: RunResult) -> float | None:
    """Gold recall of the documents that are steered to, whole or in part; None where nothing is steered."""
    found = own_stage(run, "answer")
    scores = found.scores.get("steered", {}) if found is not None else {}
    steered = [document for document, score in scores.items() if score.value]
    return gold_recall(steered, run.question.gold_ids) if steered else None
