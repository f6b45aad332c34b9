"""Runs of CAFE with chosen shares of attention, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdqa.attention.heads import union_of_top
from mdqa.methods.cafe.method import CAFEConfig
from mdqa.records import Question, RunResult, Stage
from tests.reports.builders import run, scores

Shares = Mapping[str, Sequence[float]]
"""Per head its share of each document that came into the stage."""


def stage(name: str, documents: Sequence[str], kept: Sequence[str], shares: Shares) -> Stage:
    """A stage with what its heads put on the documents."""
    signals = {f"head {head}": scores(dict(zip(documents, own, strict=True))) for head, own in shares.items()}
    return Stage(name=name, title=name, documents=tuple(documents), kept=tuple(kept), scores=signals)


def cafe(
    item: Question,
    coarse: Shares | None = None,
    fine: Shares | None = None,
    *,
    steered: Sequence[str] = (),
    answer: str = "Danube",
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> RunResult:
    """A run: filtering keeps the union of each coarse head's top M1, steering keeps all, ``steered`` are candidates."""
    config = CAFEConfig.parse(options or {})
    ids = item.document_ids
    stages = []
    if coarse is not None:
        union = union_of_top(np.array(list(coarse.values())), config.m1)
        kept = tuple(ids[index] for index in union)
        stages.append(stage("coarse_filtering", ids, kept, coarse))
        ids = kept
    if fine is not None:
        stages.append(stage("fine_steering", ids, ids, fine))
    steering = scores({document: float(document in steered) for document in ids})
    stages.append(Stage(name="answer", title="Answer", documents=ids, kept=ids, scores={"steered": steering}))
    return run(item, "cafe", answer=answer, stages=tuple(stages), config=config.model_dump(mode="json"), **fields)
