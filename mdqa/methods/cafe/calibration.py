"""Finding CAFE's retrieval heads on labelled questions (section 4.2; methods.md GAP-C4).

Stage 1 is scored on the full contexts, stage 2 on the same questions with the documents that stage 1 leaves, filtered
and re-ordered; samples whose evidence was all dropped say nothing about stage 2 and are left out of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from mdqa.attention.heads import evidence_share, head_shares, top_heads
from mdqa.backends.base import AttendingRows
from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.attending import Calibration, Pool
from mdqa.methods.cafe.measuring import Measuring
from mdqa.methods.cafe.profile import Scoring, StageHeads, read_heads
from mdqa.methods.cafe.quality import head_quality
from mdqa.methods.cafe.selection import select
from mdqa.passes import Passes
from mdqa.records import Head, Profile, Question


def calibrate(
    questions: Sequence[Question],
    tools: Tools,
    *,
    name: str,
    seed: int = 42,
    cancel: CancelToken | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, text: None,
    passes: Passes | None = None,
    held_out: Sequence[Question] = (),
    before: Profile | None = None,
    data: str = "",
    k1: Annotated[int, Field(ge=1, le=64, description="Heads chosen for coarse filtering (K1)")] = 4,
    m1: Annotated[
        int, Field(ge=1, le=100, description="Documents each of them passes on to the second stage (M1)")
    ] = 4,
    k2: Annotated[int, Field(ge=1, le=64, description="Heads chosen for fine steering (K2)")] = 2,
    attending_rows: Annotated[AttendingRows, Field(description="Prompt rows whose attention is scored")] = "question",
    doc_pool: Annotated[Pool, Field(description="How attention to a document's tokens is pooled")] = "sum",
    calibration: Annotated[
        Calibration, Field(description="Subtract the attention of a question without content (a short pass more each)")
    ] = "none",
    shuffle: Annotated[bool, Field(description="Put each question's documents in a seeded random order")] = True,
) -> Profile:
    """Head scores eta (eq. 2, as means) for both stages over questions whose evidence is marked.

    All heads of all layers are scored and kept; ``chosen`` are the best ``k1`` and ``k2`` of the stages (eq. 3). A
    run may use other numbers of heads. The second stage's contexts are what ``k1`` heads with ``m1`` documents each
    leave of the first.

    ``shuffle`` puts every question's documents in a seeded random order, so that a head that only likes a place in the
    prompt does not look like a retrieval head. ``passes`` keeps every finished pass, so that stopped work goes on
    where it was. ``held_out``: other questions, in their own order, on which the found heads are measured
    (``values["quality"]``), beside the heads of ``before``, another profile of this model. Questions without evidence
    marks are left out, and the profile's note says how many.
    InputError before any model work if none is left, if one is in both sets or does not fit into the model's window.
    """
    scoring = Scoring(attending_rows, doc_pool, calibration)
    measuring = Measuring(tools.inspectable, scoring, cancel or CancelToken(), passes)
    items = [shuffled(item, seed) if shuffle else item for item in _marked(questions)]
    others = [item for item in held_out if item.gold_ids]
    left_out = len(questions) - len(items)
    _check(items, others, measuring)
    earlier = _earlier(before, tools) if before is not None else None
    total = 2 * len(items) + len(others)
    coarse = []
    for done, item in enumerate(items, 1):
        coarse.append(measuring.mass(item, item.document_ids))
        progress(done, total, "coarse filtering: question")
    coarse_eta = np.mean([_eta(m, item, item.document_ids) for m, item in zip(coarse, items, strict=True)], axis=0)
    heads = top_heads(coarse_eta, k1)
    fine: list[np.ndarray] = []
    recall = []
    for done, (item, m) in enumerate(zip(items, coarse, strict=True), len(items) + 1):
        kept = select(item.document_ids, head_shares(m, heads), heads, m1).kept
        found = [d for d in item.gold_ids if d in kept]
        recall.append(len(found) / len(item.gold_ids))
        if found:
            fine.append(_eta(measuring.mass(item, kept), item, kept))
        progress(done, total, "fine steering: question")
    if not fine:
        raise InputError("stage 1 dropped the evidence of every question, so stage 2 has nothing to learn from")
    fine_eta = np.mean(fine, axis=0)
    values: dict[str, Any] = {
        "coarse": StageHeads(coarse_eta, len(items)).to_json(),
        "fine": StageHeads(fine_eta, len(fine)).to_json(),
        "chosen": {"coarse": _lists(heads), "fine": _lists(top_heads(fine_eta, k2))},
        "coarse_recall_on_calibration": float(np.mean(recall)),
        "options": {"k1": k1, "m1": m1, "k2": k2, **scoring.to_json(), "shuffle": shuffle},
    }
    if others:
        values["quality"] = head_quality(
            others,
            heads,
            m1,
            measuring,
            tools,
            before=(before.name, earlier.top(k1)) if before is not None and earlier is not None else None,
            progress=lambda done, _: progress(2 * len(items) + done, total, "quality: held-out question"),
        )
    return Profile(
        name=name,
        method="cafe",
        model=tools.backend.model,
        data=data,
        n=len(items),
        seed=seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={package: version(package) for package in ("torch", "transformers")},
        values=values,
        note=f"Retrieval heads by CAFE equations 1 to 3 ({scoring}); scores are means over the calibration questions."
        + (f" {left_out} questions without evidence marks were left out." if left_out else ""),
    )


def planned(questions: Sequence[Question], *, held_out: Sequence[Question] = (), **_: Any) -> tuple[int, int]:
    """How many of the questions :func:`calibrate` would use, and its passes over documents at most.

    InputError if it could use none.
    """
    used = len(_marked(questions))
    return used, 2 * used + sum(bool(item.gold_ids) for item in held_out)


def _marked(questions: Sequence[Question]) -> list[Question]:
    """The questions with evidence marks; InputError if there are none."""
    marked = [item for item in questions if item.gold_ids]
    if not marked:
        raise InputError(
            f"none of {len(questions)} questions has a document marked as evidence (gold), and CAFE's heads cannot be "
            "found without; give questions whose documents carry gold marks"
        )
    return marked


def shuffled(item: Question, seed: int) -> Question:
    """The question with its documents in a random order that its id and the seed decide."""
    documents = list(item.documents)
    random.Random(f"{seed}:{item.id}").shuffle(documents)
    return item.with_documents(tuple(documents))


def _check(items: Sequence[Question], held_out: Sequence[Question], measuring: Measuring) -> None:
    """InputError for questions that cannot be used, before any model work."""
    both = {item.id for item in items} & {item.id for item in held_out}
    if both:
        raise InputError(
            f"{len(both)} questions are for calibrating and for measuring at once, for example {sorted(both)[:3]}"
        )
    for item in (*items, *held_out):
        measuring.check_length(item)


def _earlier(before: Profile, tools: Tools) -> StageHeads:
    """The coarse heads of another profile; ProfileError if it is another model's."""
    backend = tools.inspectable
    return read_heads(before, backend.model, backend.layers, backend.heads)[0]


def _eta(mass: np.ndarray, item: Question, ids: Sequence[str]) -> np.ndarray:
    gold = set(item.gold_ids)
    return evidence_share(mass, [i for i, d in enumerate(ids) if d in gold])


def _lists(heads: Sequence[Head]) -> list[list[int]]:
    """Heads as JSON has them, so that a profile is equal to what is read back."""
    return [list(head) for head in heads]
